"""Having a player load its candidate for one set of sizes after the other."""

from __future__ import annotations

from harness.referee.judgement import Contestant
from harness.referee.reference import Reference
from harness.referee.session import Session


class Loader:
    """Loads the candidate for a reference, and again where other sizes need another model."""

    def __init__(self, session: Session, contestant: Contestant, model_seed: int) -> None:
        self._session, self._contestant, self._seed = session, contestant, model_seed
        self._loaded: Reference | None = None
        self.state_mismatch: str | None = None

    def __call__(self, reference: Reference) -> None:
        if self._loaded is not None and not (reference.init or self._loaded.init):
            return
        if self._loaded is reference:
            return
        contestant = self._contestant
        difference = self._session.load(
            contestant.path, reference, contestant.manifest, self._seed, contestant.refused, may_ask=contestant.may_ask
        )
        self.state_mismatch = self.state_mismatch or difference
        self._loaded = reference
