"""One process for problem after problem: it stays as long as nothing in it has changed."""

from __future__ import annotations

import os

import pytest

from harness.runs.suite import children
from harness.runs.suite.children import ChildFailed, WarmChild

pytestmark = [pytest.mark.processes, pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork.*:DeprecationWarning")]


@pytest.fixture
def warm(monkeypatch):
    """A warm child whose work is to say which process it is; "change" has it end, "die" kills it, "raise" raises."""
    def work(pipe, device, *, silent, label):
        asks, parents_end = pipe

        def carry_out():
            parents_end.close()
            while (asked := asks.recv()) is not None:
                if asked == "die":
                    os._exit(9)
                if asked == "raise":
                    raise ValueError("of this problem")
                fault = "its reference is no reference" if asked == "fault" else None
                yield [str(os.getpid()), device], fault, asked != "change"
                if asked == "change":
                    return

        return carry_out

    monkeypatch.setattr(children, "_judging_all", work)
    child = WarmChild("cpu", silent=True)
    yield child
    child.close()


def said(child, asked):
    child.ask(asked)
    return child.answer()


def test_problem_after_problem_is_judged_in_one_process(warm):
    first, second = said(warm, "a"), said(warm, "b")
    assert first == second and first[1] == "cpu" and first[0] != str(os.getpid())


def test_after_a_problem_that_changed_the_process_comes_another_process(warm):
    first = said(warm, "change")
    assert said(warm, "a") != first


@pytest.mark.parametrize("fault", ["die", "raise"])
def test_a_problem_that_ends_the_process_costs_its_own_answer_alone(warm, fault):
    first = said(warm, "a")
    with pytest.raises(ChildFailed):
        said(warm, fault)
    assert said(warm, "b") != first


def test_what_is_wrong_with_a_problem_is_told_and_the_process_stays(warm):
    first = said(warm, "a")
    with pytest.raises(ChildFailed, match="its reference is no reference"):
        said(warm, "fault")
    assert said(warm, "b") == first


def test_one_that_was_never_asked_is_let_go():
    child = WarmChild("cpu", silent=True)
    child.close()
    child.interrupt()  # nor does an end that comes twice wait for anybody
    assert child._child is None


def test_what_a_reference_changes_of_pytorch_is_seen():
    import torch

    from harness.runs.suite.children import torch_defaults

    before = torch_defaults()
    torch.set_default_dtype(torch.float64)
    try:
        assert torch_defaults() != before
    finally:
        torch.set_default_dtype(torch.float32)
    assert torch_defaults() == before
