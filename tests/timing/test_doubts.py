"""What a doubt about a call that could not be queued ahead says of where it comes from."""

from __future__ import annotations

import pytest

from harness.launch import failures
from harness.launch.failures import Failed
from harness.model.device_limits import CUDA, limits_of
from harness.model.verdict import ReasonCode, Status
from harness.timing.doubts import STREAM_TAKES, doubt, told_why_it_scatters
from harness.timing.timings import Timing

ITS_OWN, THE_REFERENCES, TOO_MANY = "torch.cuda.synchronize()", "The reference's launches", "that is how such a call runs"


def told(kind="cuda", *, waits=True, code=ReasonCode.NOISY, kernels=3, hidden=False):
    """What is said of a doubt or rejection with that code, of a call of so many kernels."""
    with pytest.raises(Failed) as caught, told_why_it_scatters(
        Timing(launch_hidden=hidden, waits=waits), limits_of(kind), lambda: kernels
    ):
        status = Status.UNSURE if code is ReasonCode.NOISY else Status.REJECTED
        raise failures.failed(status, code, "its times differ so much")
    said = caught.value.verdict.reason
    assert said.startswith("its times differ so much")
    return said


def test_what_waits_for_the_device_is_told_what_to_leave_out():
    said = told()
    assert ITS_OWN in said and "a stream takes" not in said
    assert ITS_OWN in told(kernels=0) and "or queues more than a stream takes" in told(kernels=0)


def test_a_call_of_more_kernels_than_a_stream_takes_has_nothing_to_leave_out():
    said = told(kernels=2048)
    assert TOO_MANY in said and "2 calls of 2,048 kernels" in said and ITS_OWN not in said
    assert TOO_MANY not in told(kernels=STREAM_TAKES // 2 - 1)


def test_where_it_was_eagers_queue_that_could_not_be_held_a_candidate_is_told_so():
    said = told(waits=False)
    assert THE_REFERENCES in said and ITS_OWN not in said


@pytest.mark.parametrize("other", [
    {"kind": "cpu"}, {"code": ReasonCode.BELOW_FLOOR}, {"hidden": True}, {"hidden": None},
])
def test_of_anything_else_nothing_is_added(other):
    assert told(**other) == "its times differ so much"


def test_the_kernels_are_counted_in_a_doubt_only():
    counted = []
    with told_why_it_scatters(Timing(launch_hidden=False, waits=True), CUDA, lambda: counted.append(1) or 1):
        pass
    assert not counted


@pytest.mark.parametrize(("hidden", "accuses"), [(True, True), (None, True), (False, False)])
def test_where_the_host_is_in_the_times_a_doubt_accuses_nobody(hidden, accuses):
    said = doubt(Timing(launch_hidden=hidden), "its times differ", "it begins before its time")
    assert said.startswith("its times differ") and ("begins" in said) == ("quiet" in said) == accuses
