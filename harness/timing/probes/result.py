"""What a call takes on inputs that come at another time than usual, or have other values.

Work begun on another stream, in a thread or by a kernel that lies in wait is missing inside the window, so the call
looks faster the longer the inputs have been there, and slower where a few pieces of them come with the window. A
segment with open inputs beside one as usual tells the first, one launch among others the second, and one launch with
other values whether the call goes by those. Where a GPU's queue is not gated, an honest call too gains by a window that
opens late, since the host runs ahead meanwhile: there all launches of a segment lie open, and the second tells both.

What seems so is probed again, because on a busy machine one probe proves nothing, and the weakest of them counts.
How many seemed so counts too: a load on the machine hides an early start now and then, and who begins early by chance
hides it by himself.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from harness.model.device_limits import CUDA, ProbeLimits

# For how long the inputs lie open: twice the call, in these bounds.
_LEAST_S, _MOST_S = 1e-3, 20e-3
_TRIES = 5
# So many findings among all that one worker showed are a doubt, whatever stands beside them: of 92 probes of honest
# entries on two cores, with one load beside them and with three, 3 were findings.
_OFTEN = 3
# Of a few launches on a GPU: their inputs lie open for twice the call, so that what was begun is over. Honest calls have
# faster and slower launches, too, and not so much faster.
_SHARE_OF_SOME = 0.25
Segment = Callable[[float], Sequence[float]]


@dataclass(frozen=True)
class ProbeResult:
    """What a call takes, and what it takes where its inputs are there earlier, or as given and not others, in µs.

    Of several launches of one kind it is the quartile that says less of a gain. Not the fastest and the slowest: one
    slow launch of many would hide what the others gain. Where a few launches with open inputs took far less than any
    usual one, it is the slowest of the fastest eighth of either: who begins some of them early, drawn by chance. Of one
    launch among others its time is `usual_us`, and theirs `early_us`. `gained_beside_us` is what was gained over launches
    made for this right after, where those of `early_us` were made a while before. `findings` counts the probes, of all
    those that this one stands for, that were such. `limits` are those at that probe: who loses his
    queue later is not acquitted by it of what was seen before.
    """

    usual_us: float
    early_us: float
    gained_beside_us: float | None = None
    findings: int = field(default=0, compare=False)
    limits: ProbeLimits = CUDA.probe

    @property
    def gained_us(self) -> float:
        return self.usual_us - self.early_us

    @property
    def is_finding(self) -> bool:
        """Whether the call was faster with earlier inputs by more than chance."""
        return self.gained_us > max(self.limits.share * self.usual_us, self.limits.least_us)

    @property
    def was_often_one(self) -> bool:
        """Whether too many probes were findings for chance, though this one may be none."""
        return self.findings >= _OFTEN

    @property
    def is_certain(self) -> bool:
        """Whether such a finding is beyond what another load on the machine could make of an honest call.

        A candidate that knows what it was just given could be slow for a while: launches made right after may acquit it
        of the blame, and not of the doubt.
        """
        beside_us = self.gained_us if self.gained_beside_us is None else self.gained_beside_us
        limits = self.limits
        blamed_us = max(limits.share * self.usual_us, limits.least_us, limits.blamed_us)
        return min(self.gained_us, beside_us) > blamed_us

    def to_json(self) -> dict[str, Any]:
        """Return the times of it and whose clock they are by, for the raw samples."""
        return {
            "usual_us": self.usual_us, "early_us": self.early_us, "gained_beside_us": self.gained_beside_us,
            "findings": self.findings, "kind": self.limits.clock,
        }


def open_s(usual_us: Sequence[float]) -> float:
    """For how long the inputs of calls that take so many µs lie open when they do."""
    return min(max(2 * statistics.median(usual_us) / 1e6, _LEAST_S), _MOST_S)


def probe(segment: Segment, limits: ProbeLimits, usual_us: Sequence[float]) -> ProbeResult:
    """The weakest of five pairs of segments, one as usual and one with open inputs; one pair where that is no finding.

    On a GPU, whose times hold from one segment to the next, the first one with open inputs is held against `usual_us`,
    the times of the segment before, and only a finding is worth the pairs. A candidate whose usual calls take longer in
    the last of these than they took before stays in doubt: it may have seen what it was. `segment(early_s)` makes
    verified launches whose inputs lie open for so long, as many as any other segment has, and returns their times in µs
    without the lead-in.
    """
    early_s = open_s(usual_us)

    def against(times_us: Sequence[float]) -> ProbeResult:
        opened_us = segment(early_s)
        by_quartiles = ProbeResult(_lower_quartile(times_us), _upper_quartile(opened_us), limits=limits)
        if not limits.is_steady or by_quartiles.is_finding:
            return by_quartiles
        some = ProbeResult(_lower_eighth(times_us), _lower_eighth(opened_us), limits=limits)
        begun_before = some.is_finding and some.gained_us > _SHARE_OF_SOME * some.usual_us
        return some if begun_before else by_quartiles

    if not limits.is_steady:
        return _weakest(lambda: against(segment(0.0)))
    first = against(usual_us)
    if not first.is_finding:
        return first
    beside: list[float] = []

    def pair() -> ProbeResult:
        beside[:] = segment(0.0)
        return against(beside)

    weakest = _weakest(pair)
    is_slower = ProbeResult(_lower_quartile(beside), _upper_quartile(usual_us), limits=limits).is_finding
    findings = 1 + weakest.findings
    if is_slower and not weakest.is_finding:
        return replace(first, gained_beside_us=weakest.gained_us, findings=findings)
    return replace(weakest, findings=findings)


def probe_one(
    launches: Callable[[], tuple[float, Sequence[float]]], limits: ProbeLimits, usual_us: Sequence[float],
    beside: Callable[[], Sequence[float]],
) -> ProbeResult:
    """The weakest of five segments in each of which the inputs of one launch are complete only with its window, or have
    other values; one segment where that is no finding.

    `launches()` makes such a segment, verified, and returns the time of that launch and those of the ones before it, in
    µs. On a GPU it is held against `usual_us` too, the times of the segment before: who was found out might be slow in
    all that follows. A finding over those alone is one also over what was made beside it, which `beside()` makes where
    nothing was. Where a GPU's queue is not gated, times hold for no longer than their segment, and `beside()` alone
    stands in where nothing was before it.
    """

    def one() -> ProbeResult:
        one_us, before = launches()
        if limits.waits_for_host:
            return ProbeResult(one_us, _upper_quartile(before or beside()), limits=limits)
        outcome = ProbeResult(one_us, _upper_quartile(before or usual_us), limits=limits)
        if before and limits.is_steady and not outcome.is_finding:
            over_usual = ProbeResult(one_us, _upper_quartile(usual_us), outcome.gained_us, limits=limits)
            outcome = over_usual if over_usual.is_finding else outcome
        elif not before and outcome.is_finding:
            outcome = replace(outcome, gained_beside_us=one_us - _upper_quartile(beside()))
        return outcome

    return _weakest(one)


def worse(known: ProbeResult | None, latest: ProbeResult) -> ProbeResult:
    """Of two probes what says more against the candidate: is certain, else gains more; with the findings of both."""
    if known is None:
        return latest
    more = max(known, latest, key=lambda probe: (probe.is_certain, probe.gained_us))
    return replace(more, findings=known.findings + latest.findings)


def _weakest(probe_once: Callable[[], ProbeResult]) -> ProbeResult:
    probes = [probe_once()]
    if probes[0].is_finding:
        probes += [probe_once() for _ in range(_TRIES - 1)]
    beside = [each.gained_beside_us for each in probes if each.gained_beside_us is not None]
    weakest = min(probes, key=lambda each: each.gained_us)
    findings = sum(each.is_finding for each in probes)
    return replace(weakest, gained_beside_us=min(beside) if beside else weakest.gained_beside_us, findings=findings)


def _lower_eighth(times_us: Sequence[float]) -> float:
    """Of 516 pairs of segments of an honest call of 16 µs on an H200 none differed by more than 0.5 µs in it."""
    return sorted(times_us)[len(times_us) // 8]


def _lower_quartile(times_us: Sequence[float]) -> float:
    return sorted(times_us)[len(times_us) // 4]


def _upper_quartile(times_us: Sequence[float]) -> float:
    return sorted(times_us)[3 * len(times_us) // 4]
