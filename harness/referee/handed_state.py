"""Whether the parameters and buffers that a player handed over are the reference's."""

from __future__ import annotations

from typing import Any

import torch

from harness.referee.element_errors import in_pieces


def state_difference(
    reply: dict[str, Any], state: dict[str, torch.Tensor], specs: dict[str, Any], region: torch.Tensor | None
) -> str | None:
    """A sentence on how the state that `reply` tells of differs from `state`, or None; its bytes lie in `region`."""
    theirs = reply.get("state")
    theirs = theirs if isinstance(theirs, dict) else {}
    missing = [name for name in state if name not in theirs]
    if missing:
        return f"ModelNew has no parameter or buffer named {missing[0]!r}, which the reference has"
    for name, spec in specs.items():
        if theirs[name] != [spec.dtype, list(spec.shape)]:
            return f"{name} is {theirs[name]} where the reference has {[spec.dtype, list(spec.shape)]}"
    if reply.get("alike") is True and region is not None:
        for name, spec in specs.items():
            # Where the reference's own lie: a GPU compares far sooner, and has room for a piece.
            pieces = in_pieces(state[name], spec.view(region))
            if not all(torch.equal(theirs.to(own.device), own) for own, theirs in pieces):
                return f"{name} has other values than the reference's, though both were made under one seed"
    return None
