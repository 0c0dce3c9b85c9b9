"""An output that is written to once its launch has ended is seen, in the segments that are looked at."""

from __future__ import annotations

import pytest

from harness.launch.failures import Failed
from harness.model.verdict import ReasonCode, Status


def finishes_first_launch_in_the_second(far):
    """Ends launch 1, waits to be let go with launch 2, and only then writes the first one's output."""
    first = far.hear()["first"]
    far.begin(first)
    far.say({"turn": first + 1})
    far.flush(first + 1)
    far.backend._outboxes[0][1].add_(1)
    far.say({"turn": first + 2})
    far.say({"queued": 2})
    far.say({"launched": 2 * [{"host_us": 5.0, "values": [], "time_us": 10.0}], "end_to_end_us": 12.0})


def test_an_output_that_came_after_its_launch_is_rejected(opened):
    session, _, sets = opened(finishes_first_launch_in_the_second)
    with pytest.raises(Failed, match="output of launch 1 of 2 was still being written") as caught:
        session.launch(sets, gate=False, inspect=True)
    assert (caught.value.verdict.status, caught.value.verdict.reason_code) == (
        Status.REJECTED, ReasonCode.CLOCKS_DISAGREE
    )


def test_other_segments_are_not_looked_at(opened):
    session, _, sets = opened(finishes_first_launch_in_the_second)
    assert len(session.launch(sets, gate=False).launches) == 2


def test_outputs_that_were_there_in_time_pass_queue_after_queue(opened):
    def writes_in_time(far):
        for _ in range(2):
            first = far.hear()["first"]
            for index in range(2):
                far.begin(first + index)
                far.backend._outboxes[index][1].add_(1)
            far.say({"turn": first + 2})
            far.say({"queued": 2})
            far.say({"launched": 2 * [{"host_us": 5.0, "values": [], "time_us": 10.0}], "end_to_end_us": 12.0})

    session, _, sets = opened(writes_in_time)
    for _ in range(2):
        assert len(session.launch(sets, gate=False, inspect=True).launches) == 2
