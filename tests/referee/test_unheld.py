"""What a doubt about a call that waits for the device says of where it comes from."""

from __future__ import annotations

import pytest

from harness.referee import failures
from harness.referee.failures import Failed
from harness.referee.timed import Timing
from harness.referee.unheld import told_why_it_scatters
from harness.verdict import ReasonCode, Status


@pytest.mark.parametrize(("kind", "hidden", "code", "is_told"), [
    ("cuda", False, ReasonCode.NOISY, True), ("cuda", True, ReasonCode.NOISY, False),
    ("cpu", False, ReasonCode.NOISY, False), ("cuda", False, ReasonCode.BELOW_FLOOR, False),
])
def test_a_doubt_about_launches_that_could_not_be_queued_ahead_says_what_to_leave_out(kind, hidden, code, is_told):
    with pytest.raises(Failed) as caught, told_why_it_scatters(Timing(launch_hidden=hidden), kind):
        status = Status.UNSURE if code is ReasonCode.NOISY else Status.REJECTED
        raise failures.failed(status, code, "its times differ so much")
    said = caught.value.verdict.reason
    assert said.startswith("its times differ so much") and ("torch.cuda.synchronize()" in said) == is_told
