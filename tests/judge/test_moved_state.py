"""Whether a candidate moves its state as the reference does, seen over a wire with a scripted worker."""

from __future__ import annotations

import pytest
import torch

from harness.judge import loader
from harness.judge.loader import moves_alike
from harness.model.problem import AccuracyRule
from harness.protocol.layout import plan

NORM = """
import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(8)

    def forward(self, x):
        return self.norm(x)


def get_inputs():
    return [torch.rand(32, 8)]
"""


@pytest.fixture
def norm(reference_of):
    return reference_of(NORM, {}, accuracy=AccuracyRule())


@pytest.fixture
def moved_by(session_with, norm):
    """`moved_by(change, alike)`: what is found of a worker whose call does `change(state, x)` to its state; `late`, once
    batch norm's statistics have converged in so many calls.
    """

    def make(change, alike=True, late=0):
        state = {name: tensor.clone() for name, tensor in norm.state.items()}
        for _ in range(late):
            as_batch_norm(state, torch.rand(32, 8))
        specs = dict(zip(state, plan(list(state.values()), contiguous=True)))

        def hand_over(far):
            assert far.hear()["op"] == "state"
            region = far.backend.arena.map(**far.backend.arena.named("state", 1))
            for name, spec in specs.items():
                spec.view(region).copy_(state[name])
            far.say({"state": {}, "alike": alike})

        def script(far):
            far.make_ready()
            hand_over(far)
            if alike:
                far.launches(1)
                change(state, norm.specs[0].view(far.backend._slots[0][1]))
                hand_over(far)

        session = session_with(script)
        session.load("/x.py", norm, {}, 1)
        session.open(norm, 1)
        return moves_alike(session, norm, 5.0, is_late=bool(late))

    return make


def as_batch_norm(state, x):
    state["norm.running_mean"].lerp_(x.mean(0), 0.1)
    state["norm.running_var"].lerp_(x.var(0), 0.1)
    state["norm.num_batches_tracked"] += 1


def with_the_biased_variance(state, x):
    as_batch_norm(state, x)
    state["norm.running_var"].sub_(0.1 * (x.var(0) - x.var(0, unbiased=False)))


def the_other_way_round(state, x):
    state["norm.running_mean"].lerp_(x.mean(0), 0.9)
    state["norm.running_var"].lerp_(x.var(0), 0.9)
    state["norm.num_batches_tracked"] += 1


def all_but_the_count(state, x):
    as_batch_norm(state, x)
    state["norm.num_batches_tracked"] -= 1


@pytest.mark.parametrize(
    ("change", "found"),
    [(as_batch_norm, True), (with_the_biased_variance, True), (the_other_way_round, False), (all_but_the_count, False),
     (lambda state, x: None, False), (lambda state, x: state["norm.running_mean"].fill_(float("nan")), False)],
    ids=["as batch norm does", "nearly so", "another momentum", "all but the count", "nothing", "NaN"],
)
def test_state_counts_as_moved_where_it_ends_near_where_the_references_does(moved_by, change, found):
    assert moved_by(change) is found


@pytest.mark.parametrize(
    ("change", "found"),
    [(as_batch_norm, True), (with_the_biased_variance, True), (the_other_way_round, False), (all_but_the_count, False),
     (lambda state, x: None, False), (lambda state, x: state["norm.num_batches_tracked"].add_(1), False),
     (lambda state, x: state["norm.running_mean"].fill_(float("nan")), False)],
    ids=["as batch norm does", "nearly so", "another momentum", "all but the count", "nothing", "the count alone", "NaN"],
)
def test_so_it_does_behind_the_timed_calls(moved_by, change, found):
    assert moved_by(change, late=100) is found


def test_a_step_that_rounding_drowns_is_not_held_against_who_does_not_make_it():
    goal = {"mean": torch.full((4,), 1.0)}
    for end, found in ((1.0 + 2e-7, True), (1.0 + 2e-6, True), (1.0 + 1e-5, False)):
        state = {"mean": torch.full((4,), end)}
        assert loader._moved({"mean": torch.full((4,), 1.0 + 2e-7)}, goal, state, "mean", is_late=True) is found
    assert not loader._moved({"mean": torch.full((4,), 1.0 + 1e-6)}, goal, {"mean": torch.full((4,), 1.0 + 1e-6)}, "mean", is_late=True)


def test_state_of_other_names_or_forms_has_not_moved(moved_by):
    assert moved_by(as_batch_norm, alike=False) is False


def test_nothing_is_asked_where_the_reference_moves_nothing(reference_of):
    plain = reference_of(NORM.replace("BatchNorm1d(8)", "LayerNorm(8)"), {}, accuracy=AccuracyRule())
    assert plain.moved_state == () and moves_alike(None, plain, 5.0) is None
    assert torch.equal(plain.state["norm.weight"], torch.ones(8))
