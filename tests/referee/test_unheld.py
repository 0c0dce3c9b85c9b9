"""What a doubt about a call that waits for the device says of where it comes from."""

from __future__ import annotations

import pytest

from harness.referee import failures
from harness.referee.failures import Failed
from harness.referee.timed import Timing
from harness.referee.unheld import told_why_it_scatters
from harness.verdict import ReasonCode, Status


@pytest.mark.parametrize(("kind", "waits", "code", "is_told"), [
    ("cuda", True, ReasonCode.NOISY, True), ("cuda", False, ReasonCode.NOISY, False),
    ("cpu", True, ReasonCode.NOISY, False), ("cuda", True, ReasonCode.BELOW_FLOOR, False),
])
def test_a_doubt_about_launches_that_could_not_be_queued_ahead_says_what_to_leave_out(kind, waits, code, is_told):
    """Where it was eager's queue that could not be held, a candidate has nothing to leave out."""
    with pytest.raises(Failed) as caught, told_why_it_scatters(Timing(launch_hidden=False, waits=waits), kind):
        status = Status.UNSURE if code is ReasonCode.NOISY else Status.REJECTED
        raise failures.failed(status, code, "its times differ so much")
    said = caught.value.verdict.reason
    assert said.startswith("its times differ so much") and ("torch.cuda.synchronize()" in said) == is_told
