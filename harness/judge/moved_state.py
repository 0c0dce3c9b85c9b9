"""Whether a candidate's call moves its model's state as the reference's does: running statistics in training mode."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from harness.launch.session import Session
from harness.reference.reference_model import Reference

# How far from where the reference moves a tensor a candidate's may end, as a share of the way.
_OFF_SHARE = 0.1


def moves_alike(session: Session, reference: Reference, timeout_s: float) -> bool | None:
    """Have the candidate that is loaded and open make one call, and see what became of its state; None where the
    reference's call moves none. Raises Failed.
    """
    if not reference.moved_state:
        return None
    before = session.state(reference)
    if before is None:
        return False
    inputs = reference.draw()
    session.launch([inputs], gate=False, timeout_s=timeout_s)
    after = session.state(reference)
    if after is None:
        return False
    wanted = reference.state_after(before, inputs)
    return all(_moved(before, wanted, after, name) for name in reference.moved_state)


def _moved(
    before: Mapping[str, torch.Tensor], wanted: Mapping[str, torch.Tensor], after: Mapping[str, torch.Tensor], name: str
) -> bool:
    if not wanted[name].is_floating_point():
        return torch.equal(after[name], wanted[name])
    start, goal, end = (state[name].double() for state in (before, wanted, after))
    way, off = (start - goal).abs().amax(), (end - goal).abs().amax()
    return bool(off <= _OFF_SHARE * way)
