"""What a source gives away about itself, put beside its verdict: where to look, and what is not taken from it."""

from __future__ import annotations

from dataclasses import replace

from harness.reading.suspicions import suspicions_in
from harness.referee.judgement import Judgement
from harness.verdict import Status, Verdict


def with_suspicions(verdict: Verdict, source: str, judgement: Judgement) -> Verdict:
    """Where to look in the source, beside a finding; beside a good row, what it says of its own kernels is not taken.

    What tells whose kernels ran is written down in its process, where such a source reaches.
    """
    found = suspicions_in(source)
    if verdict.status is Status.OK and found:
        judgement.warnings += [f"its {each.text}: look at it" for each in found if each.patches]
        provenance = judgement.provenance
        if provenance is not None and provenance.kind in ("custom", "mixed"):
            judgement.provenance = replace(provenance, kind="unknown", own_share=None)
            judgement.warnings.append(
                f"its {found[0].text}: what its process says of its own kernels is not taken from such a source, so "
                "it has no rank; leave that out and run again"
            )
    elif verdict.status in (Status.REJECTED, Status.INCORRECT) and found:
        return replace(verdict, reason=f"{verdict.reason}; its {found[0].text}")
    return verdict
