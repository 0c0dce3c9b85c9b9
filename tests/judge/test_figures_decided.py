"""What figures of error amount to."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.judge.check import decide
from harness.launch.failures import Failed
from harness.model.verdict import ReasonCode, Status


def test_deciding_on_nothing_but_good_figures_raises_nothing(reference_of):
    from harness.reference.error_figures import judge_outputs

    reference = reference_of()
    inputs = reference.draw()
    figures = [judge_outputs(reference, inputs, reference.truth(inputs), reference.eager(inputs), "fp32")]
    decide(figures, reference, "fp32")
    wrong = replace(figures[0], max_u=1e12, rms_u=1e12, got=1.0, expected=2.0, worst_index=(3, 4))
    with pytest.raises(Failed, match=r"\[3, 4\] is 1 where 2 is expected") as caught:
        decide([*figures, wrong], reference, "fp32")
    assert caught.value.verdict.reason_code is ReasonCode.WRONG_VALUES
    narrowed = replace(figures[0], max_u=9000.0, rms_u=400.0, family="identity")
    with pytest.raises(Failed, match="tf32-class: 9000 u") as caught:
        decide([*figures, narrowed], reference, "fp32")
    assert caught.value.verdict.status is Status.IMPRECISE
