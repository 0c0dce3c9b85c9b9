"""One small launch under each tool in turn, and what the reports come to.

The first finding that can be believed ends it. A finding of a kind that the tool is known to get wrong for what the
candidate uses is told and not held against it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from harness.attribution.kernel_names import is_shipped
from harness.model.verdict import Status, Verdict
from harness.sandbox.sandbox_choice import Sandbox
from harness.tools.launch_files import SmallLaunch
from harness.tools.sanitizer.compute_sanitizer import TOOLS, command
from harness.tools.sanitizer.sanitizer_output import Finding, Report, read_report
from harness.tools.watched_launch import laid_out

_LIMIT_S = 180.0
# From the release notes of compute-sanitizer: false alarms that were mended between 2025.4 and 2026.4, or are known
# and open. The pattern is looked for in the candidate's source and in the PTX that Triton made of it.
_NAMED_BARRIER = r"\bbar(?:rier)?(?:\.cta)?\.(?:sync|arrive)(?:\.aligned)?\s+(?!0\s*;)\S"
_ASYNCHRONOUS = r"cp\.async|memcpy_async|pipeline_memcpy|cutlass/|cute/"
_WARP_SPECIALIZED = (
    rf"mbarrier|cuda::barrier|cuda/barrier|cp\.async\.bulk|wgmma|tcgen05|setmaxnreg|cutlass/|cute/|{_NAMED_BARRIER}"
)
_TENSOR_MAPS = r"tensormap|TensorMap|tensor_descriptor|st\.async|red\.async|cp\.reduce|tcgen05"
_DOUBTS = {
    "memcheck": (_ASYNCHRONOUS, "asynchronous copies, whose zero-fill is taken for a read out of bounds"),
    "racecheck": (_WARP_SPECIALIZED, "barriers between groups of warps, which it does not always follow"),
    "initcheck": (f"{_ASYNCHRONOUS}|{_TENSOR_MAPS}", "asynchronous copies and stores, which it does not always see"),
    "synccheck": (f"cooperative_groups|{_WARP_SPECIALIZED}", "barriers that are not for all threads of a block"),
}
_AFTER_LIBRARY = "what a library's kernel has stored, which it does not always see"


@dataclass(frozen=True)
class Uses:
    """What decides whether a tool can be believed: the candidate's `text` (source and PTX), and a library's kernels."""

    text: str = ""
    library: bool = False


@dataclass(frozen=True)
class Examination:
    """`verdict` None when nothing was found that holds; `raised` what the candidate raised instead of launching."""

    verdict: Verdict | None = None
    warnings: tuple[str, ...] = ()
    raised: str | None = None


class Examiner:
    """Runs the tools of `program` over launches, each in a process behind `sandbox` with the scrubbed `environment`."""

    def __init__(
        self, program: str, environment: Mapping[str, str], sandbox: Sandbox | None = None, limit_s: float = _LIMIT_S
    ) -> None:
        self._program, self._environment, self._sandbox, self._limit_s = program, dict(environment), sandbox, limit_s

    def examine(
        self, launch: SmallLaunch, uses: Uses, tell: Callable[[str], None], triton_cache: Path | None = None
    ) -> Examination:
        """Put `launch` under every tool, until one finds something. Raises OSError when no process can be started."""
        warnings: list[str] = []
        with laid_out(self._program, launch, self._environment, self._sandbox, triton_cache) as watched:
            for tool in TOOLS:
                tell(f"compute-sanitizer {tool}")
                _, has_ended = watched.run(partial(command, self._program, tool), f"{tool}.txt", self._limit_s)
                report = read_report(tool, watched.text(f"{tool}.txt"))
                verdict, doubted = judge(report, uses)
                warnings += doubted
                if verdict is not None:
                    return Examination(verdict, tuple(warnings))
                if report.findings:
                    continue
                if watched.raised is not None:
                    return Examination(None, tuple(warnings), watched.raised)
                trouble = trouble_of(report) if has_ended else f"it did not end within {self._limit_s:g} s"
                if trouble is not None:
                    warnings.append(f"compute-sanitizer {tool} could not look at it: {trouble}")
                    if not has_ended or report.troubles:
                        break  # what keeps one tool from working keeps the others
        return Examination(None, tuple(warnings))


def judge(report: Report, uses: Uses) -> tuple[Verdict | None, list[str]]:
    """The verdict of the first finding that can be believed, and a sentence on the first that cannot."""
    doubted: list[str] = []
    for finding in (each for each in report.findings if not is_shipped(each.kernel)):
        doubt, told = doubt_of(finding, uses), f"compute-sanitizer {finding.tool}: {finding.text}"
        if doubt is None:
            return Verdict(Status.INCORRECT, finding.code, told), []
        doubted.append(f"{told}; not held against it, since it uses {doubt}")
    return None, doubted[:1]


def doubt_of(finding: Finding, uses: Uses) -> str | None:
    """What the candidate uses that this tool is known to misjudge; None when the finding stands."""
    if finding.tool == "memcheck" and not finding.is_read:
        return None
    pattern, what = _DOUBTS[finding.tool]
    if re.search(pattern, uses.text):
        return what
    return _AFTER_LIBRARY if finding.tool == "initcheck" and uses.library else None


def trouble_of(report: Report) -> str | None:
    """Why a report without a finding is no clean bill: the tool's own words, or that it saw nothing."""
    if report.troubles:
        return report.troubles[0]
    if not report.launched:
        return "it saw no kernel of the candidate's"
    return None if report.complete else "its report has no end"
