"""What the outputs of launches are found to be, whichever of them are looked at together."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from harness.judge import check
from harness.launch.conversation import Launch, Launches
from harness.launch.failures import Failed
from harness.reference.inputs.families import PRODUCT_FAMILIES
from harness.reference.reference_model import Reference


def made_of(count, changes):
    """A report of `count` launches without fault, but for `changes` by number; their inputs are kept."""
    plain = Launch(1.0, 1.0, 1.0, None, [])
    return Launches([replace(plain, **changes.get(index, {})) for index in range(count)], 1.0, None, [True] * count)


class Segment:
    """The outputs of launches that are eager's own, but for `wrong` by number, which is added to them."""

    def __init__(self, sets, wrong):
        self._sets, self._wrong = sets, wrong

    def outputs(self, reference, index):
        return [each + self._wrong.get(index, 0) for each in reference.eager(self._sets[index])]


@pytest.fixture
def at_once(monkeypatch):
    """`at_once(count)`: so many launches are verified together from now on."""
    return lambda count: monkeypatch.setattr(check, "launches_at_once", lambda reference: count)


def assert_alike_in_any_batches(reference, at_once, counts=(1, 2, 4, 9)):
    """Launches of all families, one with a mistake and one a little off, verified in several ways."""
    families = [family for family in PRODUCT_FAMILIES if family in reference.families]
    sets = [reference.draw(family) for family in families] + [reference.draw() for _ in range(3)]
    session, made = Segment(sets, {1: 1.0, len(sets) - 2: 1e-4}), made_of(len(sets), {})
    for how in ({}, {"with_eager": True}, {"only": [7, 1, 4]}):
        found = []
        for count in counts:
            at_once(count)
            found.append(check.verify(session, reference, sets, made, "fp32", **how))
        assert all(each == found[0] for each in found)
        assert [each.evidence for each in found[0]] == [each.evidence for each in found[-1]]
        assert {each.evidence is None for each in found[0]} == {True, False}
        assert len(found[0]) == len(how.get("only", sets))


def test_launches_that_are_verified_together_have_the_figures_that_each_has_alone(reference_of, at_once):
    assert_alike_in_any_batches(reference_of(), at_once)


@pytest.mark.gpu
def test_so_they_have_on_a_gpu(problem_of, at_once):
    reference = Reference(problem_of(), {"M": 200}, torch.device("cuda:0"), seed=1)
    assert_alike_in_any_batches(reference, at_once)


WRONG_SHAPE = {"fault": {"code": "wrong_shape", "detail": "the output is (1,)"}}
VALUED = """
import torch


class Model(torch.nn.Module):
    def forward(self, A, B):
        return torch.matmul(A, B), 3


def get_inputs():
    return [torch.rand(8, 8), torch.rand(8, 8)]
"""


@pytest.mark.parametrize("count", [1, 2, 3, 5])
@pytest.mark.parametrize(("changes", "first", "said"), [
    ({1: {"values": [4]}, 2: WRONG_SHAPE}, 1, "forward returned the values"),
    ({1: WRONG_SHAPE, 2: {"values": [4]}}, 1, "the output is"),
    ({2: {"beyond": (4, 252)}, 3: WRONG_SHAPE}, 2, "writes beyond its output"),
    ({0: WRONG_SHAPE, 4: {"beyond": (4, 252)}}, 0, "the output is"),
])
def test_of_several_faults_the_first_launchs_is_told_with_its_recipe(
    reference_of, at_once, count, changes, first, said
):
    reference = reference_of(VALUED)
    sets = [reference.draw() for _ in range(5)]
    made = made_of(5, {index: {"values": [3]} for index in range(5)} | changes)
    at_once(count)
    with pytest.raises(Failed, match=said) as caught:
        check.verify(Segment(sets, {}), reference, sets, made, "fp32")
    assert caught.value.evidence.recipe.seed == sets[first].seed
    assert len(caught.value.evidence.recipe.before) == first


def test_inputs_that_were_written_to_are_told_in_their_turn(reference_of, at_once):
    reference = reference_of()
    sets = [reference.draw() for _ in range(3)]
    made = replace(made_of(3, {2: WRONG_SHAPE}), inputs_kept=[True, False, True])
    at_once(3)
    with pytest.raises(Failed, match="inputs were written to") as caught:
        check.verify(Segment(sets, {}), reference, sets, made, "fp32")
    assert caught.value.evidence.recipe.seed == sets[1].seed


@pytest.mark.parametrize(("device", "memory_gib", "truth_bytes", "together"), [
    ("cuda:0", 8, 320 << 20, 1), ("cuda:0", 8, 1 << 20, 256), ("cuda:0", 128, 256 << 20, 8), ("cuda:0", 8, None, 1),
    ("cuda:0", 8, 0, 1 << 28), ("cpu", 8, 1 << 20, 1),
])
def test_as_many_are_verified_together_as_have_room_beside_each_other(
    monkeypatch, device, memory_gib, truth_bytes, together
):
    found = SimpleNamespace(total_memory=memory_gib << 30)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: found)
    reference = SimpleNamespace(
        device=torch.device(device), truth_bytes=truth_bytes, memory=SimpleNamespace(tight=False)
    )
    assert check.launches_at_once(reference) == together
