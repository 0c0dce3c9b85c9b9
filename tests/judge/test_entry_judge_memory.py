"""What a judge does where a device has no room: the next step down, once more, and the plan of before for whoever is next."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from harness.judge import entry_judge
from harness.judge.entry_judge import EntryJudge
from harness.judge.judgement import Prepared
from harness.judge.stages import JudgingContext
from harness.launch import failures
from harness.model.device_limits import CUDA
from harness.model.verdict import OK, ReasonCode, Status
from harness.reference.memory_plan import CallSizes, MemoryPlan, MemoryStep, smallest_plan

GB = 10**9
SIZES = CallSizes(GB, GB, 0, GB, 2 * GB, is_separable=True)


class ScriptedReference:
    """A reference of a gigabyte in and out, which goes down the real plans."""

    truth_name, terms, problem = "float64", None, None

    def __init__(self):
        self.memory = MemoryPlan(SIZES)

    def have_less(self):
        smaller = self.memory.smaller()
        self.memory = smaller or self.memory
        return smaller is not None

    def restore_memory(self, plan):
        self.memory = plan

    def forget_ready(self):
        """Nothing is."""


@pytest.fixture
def judge(settings, monkeypatch):
    """`judge(attempt, is_baseline)`: the judgement, the steps that were tried, and the plan that is left."""
    device = SimpleNamespace(
        limits=CUDA, peak_bytes=lambda: 7, available_bytes=lambda: 3 * GB, forget_launches=lambda: None,
        release_memory=lambda: None,
    )

    def make(attempt, *, is_baseline=False):
        reference, steps = ScriptedReference(), []
        control = SimpleNamespace(now=None, pool=SimpleNamespace(kernels=0))
        judge = EntryJudge(JudgingContext(device, [reference], settings, None, 1), control)

        def evaluated(tried):
            steps.append(reference.memory)
            attempt(reference.memory)

        monkeypatch.setattr(entry_judge, "evaluate", evaluated)
        monkeypatch.setattr(entry_judge.gc, "collect", lambda: 0)  # 50 times, over all that a suite's process holds
        monkeypatch.setattr(entry_judge, "conclude", lambda *what: None)
        prepared = Prepared("one", "/c/one.py", {}, (), None, "fp32", "torch", is_baseline=is_baseline)
        found = judge._judge_once(prepared, [lambda: None], lambda text: None)
        return found, steps, reference.memory

    return make


def no_room(plan):
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 8.00 GiB")


def workers_no_room(plan):
    raise failures.failed(Status.OUT_OF_MEMORY, ReasonCode.DEVICE_MEMORY, "out of memory in forward")


def test_the_judges_own_want_of_room_takes_one_step_after_the_other_and_stays_so(judge):
    found, steps, left = judge(lambda plan: None if plan.tight else no_room(plan))
    assert found.verdict == OK and found.memory.step is MemoryStep.SINGLE and found.peak_bytes == 7
    assert [plan.launches for plan in steps] == [17, 4, 2, 2]
    assert left == steps[-1]


def test_only_after_the_last_step_it_is_a_verdict_that_says_how_much_is_needed(judge):
    found, steps, _ = judge(no_room)
    assert found.verdict.reason_code is ReasonCode.DEVICE_MEMORY
    assert steps[-1] == smallest_plan(SIZES)
    assert "GB are needed, and 3.0 GB are free (CUDA out of memory." in found.verdict.reason


@pytest.mark.parametrize("has_room_in_the_end", [True, False])
def test_a_candidate_whose_worker_has_no_room_has_the_last_step_for_itself_alone(judge, has_room_in_the_end):
    last = smallest_plan(SIZES)
    found, steps, left = judge(
        lambda plan: None if has_room_in_the_end and plan == last else workers_no_room(plan)
    )
    assert steps == [MemoryPlan(SIZES), last]
    assert (found.verdict == OK) == has_room_in_the_end
    assert left == MemoryPlan(SIZES)


def test_a_baseline_whose_worker_has_no_room_shows_that_the_plan_was_too_large_for_all(judge):
    last = smallest_plan(SIZES)
    found, _, left = judge(lambda plan: None if plan == last else workers_no_room(plan), is_baseline=True)
    assert found.verdict == OK and left == last
