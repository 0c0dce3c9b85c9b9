"""What asks for more host memory than there is fails, and is told as what it is."""

import resource

import pytest
import torch

from harness.model.errors import NoRoom
from harness.model.problem import AccuracyRule
from harness.reference import host_memory
from harness.reference.host_memory import at_most

GB = 1 << 30


@pytest.mark.parametrize("asks", [
    lambda: torch.empty(4 * GB), lambda: bytearray(4 * GB), lambda: torch.nn.Linear(1 << 16, 1 << 14),
], ids=["tensor", "bytes", "parameters"])
def test_more_than_there_is_fails_and_less_does_not(asks):
    with pytest.raises(MemoryError), at_most(GB // 2):
        asks()
    with at_most(GB // 2):
        torch.empty(GB // 16)


def test_what_the_machine_does_not_have_is_not_within_what_may_be_asked_for(monkeypatch):
    monkeypatch.setattr(host_memory, "available_host_bytes", lambda: GB // 4)
    with pytest.raises(MemoryError), at_most(8 * GB):
        torch.empty(4 * GB, dtype=torch.uint8)  # more than what earlier tests may give back meanwhile


def test_what_came_of_it_is_told_apart_from_other_errors():
    with pytest.raises(MemoryError, match="cannot run"), at_most(GB // 2):
        try:
            torch.empty(4 * GB)
        except RuntimeError as error:
            raise ValueError("the model cannot run") from error
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"), at_most(GB // 2):
        torch.ones(2, 3) @ torch.ones(2, 3)


def test_the_limit_is_gone_afterwards():
    before = resource.getrlimit(resource.RLIMIT_AS)
    with at_most(GB):
        assert resource.getrlimit(resource.RLIMIT_AS) != before
    assert resource.getrlimit(resource.RLIMIT_AS) == before


def reference_of(problem_of, forward, inputs, available_bytes, *, beside=""):
    from harness.reference.reference_model import Reference

    source = f"""
import torch

{beside}


class Model(torch.nn.Module):
    def forward(self, x):
        return {forward}


def get_inputs():
    return [{inputs}]
"""
    return Reference(
        problem_of(source, accuracy=AccuracyRule()), {}, torch.device("cpu"), 1, available_bytes=available_bytes,
    )


def test_a_call_whose_intermediate_results_have_no_room_is_refused(problem_of):
    with pytest.raises(NoRoom, match=r"0\.0 GB of inputs, 0\.0 GB of outputs.*of 1\.0 GB that are free.*--sizes"):
        reference_of(problem_of, "x.expand(1 << 30, -1).contiguous().sum(0)", "torch.rand(4)", 10**9)


def test_a_call_that_has_room_and_whose_judging_has_not_is_refused_by_what_it_took(problem_of):
    with pytest.raises(NoRoom, match=r"0\.1 GB of inputs, 0\.1 GB of outputs.*judging it takes .* of 0\.2 GB that are free"):
        reference_of(problem_of, "x.relu()", "torch.rand(1 << 25)", 2 * 10**8)


@pytest.mark.parametrize("inputs, beside", [
    ("torch.ones(4)[torch.ones(4) > 0.5].sum().item() * torch.ones(1 << 36)", ""),
    ("LARGE", "LARGE = torch.ones(1 << 36)"),
], ids=["from_values", "made_as_the_file_is_read"])
def test_inputs_that_nobody_can_foresee_are_refused_without_figures(problem_of, inputs, beside):
    with pytest.raises(NoRoom, match=r"one call takes more than the 1\.0 GB that are free"):
        reference_of(problem_of, "x.relu()", inputs, 10**9, beside=beside)
