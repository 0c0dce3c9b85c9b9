"""All that a comparison found, as values, and the gates that an exit code can hang on."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from harness.model.errors import InputError
from harness.model.spelling import hint_for
from harness.results.across_devices import AcrossDevices, across_of
from harness.results.changes import WRONG, Pair, pairs_of
from harness.results.joined_runs import Case, Joined, is_forcible
from harness.results.record import Record

GATES = ("slower", "incorrect")


@dataclass(frozen=True)
class Compared:
    """The runs joined, each against the first on the same device, and devices beside each other. `notes` are on files
    that were passed over or say too little; `forced` when different methods were compared all the same.
    """

    joined: Joined
    pairs: tuple[Pair, ...]
    across: tuple[AcrossDevices, ...]
    notes: tuple[str, ...]
    forced: bool = False

    @classmethod
    def of(cls, joined: Joined, notes: Iterable[str] = (), *, force: bool = False) -> Compared:
        pairs, across = pairs_of(joined, force=force), across_of(joined, force=force)
        nameless = [
            f"{run.path} does not say which GPU it is from (no uuid): it is taken for another than all others"
            for run in joined.runs if run.device[0] == "file"
        ]
        return cls(joined, tuple(pairs), tuple(across), (*notes, *nameless), force)

    def refusals(self) -> list[tuple[Case, int, int, tuple[tuple[str, str, str], ...]]]:
        """(case, run, other run, what differs) for each two that were not compared because of their methods."""
        refusals = [(each.case, each.reference, each.run, each.refused) for each in self.pairs if each.refused]
        for each in self.across:
            refusals += [(each.case, min(each.case.runs), run, mixed) for run, mixed in each.refused.items()]
        return [each for each in refusals if not (self.forced and is_forcible(each[3]))]


@dataclass(frozen=True)
class Gate:
    """`--fail-on`: "slower" by more than `threshold` (0.01 for 1 %, 0 for the margin alone), or "incorrect"."""

    kind: str
    threshold: float = 0.0

    @classmethod
    def parse(cls, text: str) -> Gate:
        """`slower`, `slower:1%` or `incorrect`. Raises InputError."""
        kind, colon, amount = text.partition(":")
        if kind not in GATES:
            raise InputError(f"--fail-on {text}: there is no gate '{kind}'", hint=hint_for(kind, GATES, "There are"))
        if not colon:
            return cls(kind)
        number = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*%\s*", amount)
        if kind != "slower" or number is None or float(number.group(1)) >= 100:
            hint = "Type --fail-on slower:1%" if kind == "slower" else "Type --fail-on incorrect"
            raise InputError(f"--fail-on {text}: '{amount}' is no share in per cent", hint=hint)
        return cls(kind, float(number.group(1)) / 100)


@dataclass(frozen=True)
class Tripped:
    """A candidate that a gate stops, in which case and run, against which, and why."""

    gate: str
    case: Case
    name: str
    reference: int | None
    run: int
    reason: str


def tripped(compared: Compared, gates: Sequence[Gate]) -> list[Tripped]:
    """What the gates stop: slower only where the whole interval lies beyond the threshold and the margin. Raises
    InputError when a gate has nothing to judge: a gate that is never closed is no gate.
    """
    found = [_slower(compared, gate) if gate.kind == "slower" else _incorrect(compared) for gate in gates]
    return [trip for trips in found for trip in trips]


def _slower(compared: Compared, gate: Gate) -> list[Tripped]:
    judged, trips = 0, []
    for pair in compared.pairs:
        for row, change in pair.changes:
            if row.is_baseline or change.ratio is None:
                continue
            judged += 1
            beyond = max(gate.threshold, change.margin or 0.0)
            if change.ratio.hi < 1 - beyond:
                reason = f"at least {100 * (1 - change.ratio.hi):.2g} % slower, where {100 * beyond:.2g} % is allowed"
                trips.append(Tripped("slower", pair.case, row.name, pair.reference, pair.run, reason))
    if not judged:
        raise InputError(
            "--fail-on slower has nothing to judge: no candidate has a speedup in two runs on one device",
            hint="Name two runs of the same GPU, and join edited candidates with --by name",
        )
    return trips


def _incorrect(compared: Compared) -> list[Tripped]:
    """Candidates that are wrong in a run and were not wrong before, whether their source was edited or not."""
    if not any(len(case.runs) > 1 for case in compared.joined.cases):
        raise InputError("--fail-on incorrect has nothing to judge: no problem is in two of these runs")
    trips = []
    for case in compared.joined.cases:
        held = [_candidates(case, run) for run in case.runs]
        for position, run in enumerate(case.runs[1:], 1):
            for record in held[position]:
                if record.status in WRONG and not _known_wrong(record, held[:position]):
                    words = " ".join((record.reason or record.status.value).split())
                    reason = f"{record.status.value}: {words}"
                    trips.append(Tripped("incorrect", case, record.candidate, None, run, reason))
    return trips


def _candidates(case: Case, run: int) -> list[Record]:
    joined = [row.records[run] for row in case.rows if row.records[run] is not None]
    alone = [record for each in case.unmatched for number, record in each.found if number == run]
    return [record for record in (*joined, *alone) if record.role == "candidate"]


def _known_wrong(record: Record, earlier: Sequence[Sequence[Record]]) -> bool:
    for records in reversed(earlier):
        for each in records:
            same_source = each.source_hash is not None and each.source_hash == record.source_hash
            if same_source or each.candidate == record.candidate:
                return each.status in WRONG
    return False
