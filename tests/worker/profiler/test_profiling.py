"""What a profiled launch leaves behind, and what patches of the profiler change: nothing."""

from __future__ import annotations

import sys

import pytest
import torch


def test_a_forward_that_raises_leaves_no_profiler_behind(listed):
    def model(a, b):
        raise ValueError("not today")

    with pytest.raises(ValueError, match="not today"):
        listed(model)
    assert not torch.autograd._profiler_enabled()
    assert sys.getprofile() is None


def test_patches_of_torchs_profiler_are_too_late(listed, monkeypatch):
    monkeypatch.setattr(torch.profiler, "profile", None)
    monkeypatch.setattr(torch.autograd.profiler, "profile", None)
    monkeypatch.setattr(torch.autograd, "_disable_profiler", None)
    monkeypatch.setattr(torch._C._autograd._KinetoEvent, "name", lambda event: "mine")
    monkeypatch.setattr(torch._C._autograd._ProfilerResult, "events", lambda result: [])
    assert "aten::mm" in {operator["name"] for operator in listed(torch.matmul)["operators"]}


def test_a_traced_launch_waits_for_its_window_as_a_timed_one_does(steps_of):
    """What waits for it says to the judge that the cache is cold, and without that word the launch is none."""
    assert steps_of(lambda a: a + 1, 5) == ["turn 5", "fill", "window 5", "end 6"]


def test_what_a_result_does_when_it_is_asked_for_its_form_is_not_listed(launcher_asking):
    """The asking itself would be taken for the candidate's time."""
    listing = launcher_asking(lambda result: torch.cos(result))
    assert "aten::cos" not in {operator["name"] for operator in listing["operators"]}
