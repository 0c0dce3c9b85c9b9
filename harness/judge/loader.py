"""Having a worker load its candidate for each set of sizes, and whether its state is and moves as the reference's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch

from harness.judge.judgement import Judgement, Prepared
from harness.launch import failures
from harness.launch.failures import Failed
from harness.launch.session import Session
from harness.model.verdict import ReasonCode, Status
from harness.reference.accuracy.bounds import UNIT_ROUNDOFF
from harness.reference.reference_model import Reference

# How far from where the reference moves a tensor a candidate's may end, as a share of the way.
_OFF_SHARE = 0.1
# And once statistics have converged: a step is then no more than what draws differ by, of which another way to take a
# variance may be an eighth, and another order of summation so many units in the last place of the tensor's largest.
_LATE_OFF_SHARE, _LATE_OFF_U, _STILL_U = 0.5, 64.0, 4.0


class Loader:
    """Loads the candidate for a reference, and again where other sizes need another model."""

    def __init__(self, session: Session, prepared: Prepared, model_seed: int) -> None:
        self._session, self._prepared, self._seed = session, prepared, model_seed
        self._loaded: Reference | None = None
        self.state_mismatch: str | None = None

    def __call__(self, reference: Reference) -> None:
        if self._loaded is reference or (self._loaded is not None and not (reference.init or self._loaded.init)):
            return
        prepared = self._prepared
        difference = self._session.load(
            prepared.path, reference, prepared.manifest, self._seed, prepared.refused, may_ask=prepared.may_ask,
            stand_in_gpu=prepared.stand_in_gpu,
        )
        self.state_mismatch = self.state_mismatch or difference
        self._loaded = reference


@contextmanager
def blaming_the_state(loader: Loader, judgement: Judgement | None) -> Iterator[None]:
    """Have wrong outputs be the fault of a state that is not the reference's, right ones a warning. Raises Failed."""
    try:
        yield
    except Failed as failure:
        mismatch = loader.state_mismatch
        wrong = failure.verdict.status in (Status.INCORRECT, Status.IMPRECISE)
        if mismatch and wrong and failure.verdict.reason_code is not ReasonCode.RAISED:
            reason = f"{mismatch}; with it {failure.verdict.reason}"
            raise failures.failed(Status.INCORRECT, ReasonCode.STATE_MISMATCH, reason, failure.evidence) from None
        raise
    if judgement is not None and (mismatch := loader.state_mismatch):
        judgement.warnings.append(f"its outputs are right, but its state is not the reference's: {mismatch}")


def moves_alike(session: Session, reference: Reference, timeout_s: float, *, is_late: bool = False) -> bool | None:
    """Have the candidate that is loaded and open make one call, and see whether that moves its state as the reference's does
    (running statistics in training mode); None where the reference's call moves none. Raises Failed.

    It `is_late` behind the timed calls: what is asked then is whether the work is still done, not how well.
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
    return all(_moved(before, wanted, after, name, is_late=is_late) for name in reference.moved_state)


def _moved(
    before: Mapping[str, torch.Tensor], wanted: Mapping[str, torch.Tensor], after: Mapping[str, torch.Tensor], name: str,
    *, is_late: bool,
) -> bool:
    if not wanted[name].is_floating_point():
        return torch.equal(after[name], wanted[name])
    start, goal, end = (state[name].double() for state in (before, wanted, after))
    way, off = (start - goal).abs().amax(), (end - goal).abs().amax()
    if not is_late:
        return bool(off <= _OFF_SHARE * way)
    u = UNIT_ROUNDOFF["float32"] * goal.abs().amax()
    is_left = torch.equal(start, end) and way > _STILL_U * u
    return bool(not is_left and off <= torch.maximum(_LATE_OFF_SHARE * way, _LATE_OFF_U * u))
