"""Large tensors changed a piece at a time: the same values, and no more memory than the result and a piece."""

from __future__ import annotations

import pytest
import torch
from torch.profiler import ProfilerActivity, profile

from harness.reference.inputs import pieces
from harness.reference.inputs.families import SIGNS
from harness.reference.inputs.one_way_rounding import can_be_narrowed, one_way_family, rounded_one_way, to_tf32
from harness.reference.inputs.pieces import changed_in_pieces, pieces_of

SKELETON = {"list": [{"tensor": 0}]}


@pytest.fixture
def small_pieces(monkeypatch):
    monkeypatch.setattr(pieces, "_AT_ONCE", 1 << 10)


def most_bytes(call) -> int:
    """The most memory that PyTorch had allocated at once in `call`, beyond what there was before; results are kept."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiled:
        kept = call()
    events = sorted(
        (event for event in profiled.profiler.kineto_results.events() if event.name() == "[memory]"),
        key=lambda event: event.start_ns(),
    )
    assert events and kept is not None
    now = most = 0
    for event in events:
        now += event.nbytes()
        most = max(most, now)
    return most


def test_pieces_are_all_elements_in_their_order(small_pieces):
    tensor = torch.arange(5000.0).view(50, 100)
    assert len(pieces_of(tensor)) == 5
    assert torch.equal(torch.cat(pieces_of(tensor)), tensor.view(-1))
    pieces_of(tensor)[4][-1] = -1.0
    assert tensor[-1, -1] == -1.0  # they are views


@pytest.mark.parametrize("tensor", [torch.rand(10, 100), torch.rand(100, 50).t(), torch.rand(100, 60)[:, ::2]],
                         ids=["small", "transposed", "with gaps"])
def test_what_is_small_or_lies_otherwise_is_one_piece(small_pieces, tensor):
    assert pieces_of(tensor) == (tensor,)
    changed = changed_in_pieces(lambda whole: whole + whole.numel(), tensor)
    assert torch.equal(changed, tensor + tensor.numel())


def test_a_change_in_pieces_is_that_of_the_whole(small_pieces):
    a, b = torch.randn(70, 70), torch.randn(70, 70)
    assert torch.equal(changed_in_pieces(torch.add, a, b), a + b)
    assert torch.equal(changed_in_pieces(torch.add, a, b.t()), a + b.t())  # not in one row: in one step
    assert changed_in_pieces(torch.add, a, b).shape == a.shape


def test_rounding_in_pieces_rounds_every_number(small_pieces):
    tensor, pull = torch.randn(3000), torch.randn(3000)
    assert torch.equal(to_tf32(tensor), torch.cat([to_tf32(piece) for piece in tensor.split(500)]))
    changed = rounded_one_way(tensor, pull)
    lost = to_tf32(changed).abs() - changed.abs()
    assert bool((lost[pull > 0] < 0).any()) and bool((lost[pull > 0] <= 0).all()) and bool((lost[pull <= 0] == 0).all())
    assert not torch.equal(changed[:1024] / tensor[:1024], changed[1024:2048] / tensor[1024:2048])


def test_a_fraction_anywhere_can_be_narrowed(small_pieces):
    tensor = torch.ones(5000)
    assert not can_be_narrowed(tensor)
    tensor[-1] = 0.3
    assert can_be_narrowed(tensor)


def mean_of_squares(x):
    return (x * x).mean()


@pytest.mark.parametrize(("change", "times"), [
    (lambda x: rounded_one_way(x, None), 1), (to_tf32, 1), (lambda x: SIGNS.transform([x], None), 1),
    # A gradient, what it adds to the outputs, and what the model keeps for it; the rounded numbers come after these.
    (lambda x: one_way_family(mean_of_squares).applied(SKELETON, [x], None), 3),
], ids=["rounded", "tf32", "signs", "one way"])
def test_beside_its_results_a_change_takes_little(small_pieces, change, times):
    tensor = torch.rand(1 << 17)
    change(tensor)  # what is loaded at a first call is not counted
    assert most_bytes(lambda: change(tensor)) < (times + 0.3) * 4 * tensor.numel()
