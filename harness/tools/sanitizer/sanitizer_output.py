"""Reading what compute-sanitizer prints. Pure: text in, findings out.

A report is made of lines that begin with a row of equals signs. A block opens with a line that is not indented and goes
on with indented ones. Which blocks are findings depends on the tool; what the tool says of itself (that it could not
attach, that no kernel was launched) is kept apart.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass

from harness.model.verdict import ReasonCode

CODES = {
    "memcheck": ReasonCode.MEMORY_ERROR, "racecheck": ReasonCode.RACE, "initcheck": ReasonCode.UNINITIALIZED,
    "synccheck": ReasonCode.BARRIER,
}
_LINE = re.compile(r"^=========( ?)(.*)$")
_SUMMARY = re.compile(r"^(?:ERROR|RACECHECK) SUMMARY: (\d+)")
_NO_LAUNCH = "terminated before first instrumented"
# What a tool says that is no finding on device code.
_OF_ITSELF = re.compile(
    r"^(?:COMPUTE-SANITIZER|CUDA-MEMCHECK|Program hit|CUDA API|Host API|Leaked|LEAK SUMMARY|Target application|"
    r"Tracking kernels|(?:Error|Warning): (?!Race|\(|Potential)|Internal Sanitizer|The application may)",
)
_TROUBLE = re.compile(
    r"^(?:Error: (?!Race|\(|Potential)|Internal Sanitizer|Target application returned|.*not supported)"
)
_HEADLINES = {
    "memcheck": re.compile(r"."),
    "racecheck": re.compile(r"^(?:(?:ERROR|Error): .*(?:Race reported|hazard)|Potential invalid __)"),
    "initcheck": re.compile(r"^Uninitialized __"),
    "synccheck": re.compile(r"^(?:Barrier error|Warpgroup MMA|Invalid|Missing|cuda::barrier|Mbarrier|Cluster)", re.I),
}
# `at kernel(float *)+0x90 in file.cu:12` since 2023, `at 0x90 in file.cu:12:kernel(float *)` before.
_PLACE = re.compile(r"(?:^|\b(?:access )?)at (?P<name>.+?)\+0x[0-9a-f]+(?: in .+)?$")
_OLD_PLACE = re.compile(r"\bat 0x[0-9a-f]+ in (?:[^:]+:\d+:)?(?P<name>.+)$")
_FRAME = re.compile(r"^Device Frame: ?(?P<name>.+?)(?:\+0x[0-9a-f]+| ?\[0x).*$")
_GOES_ON = ("at ", "by ", "and ")
_HAZARDS = re.compile(r" *\[\d+ hazards?\]$")


@dataclass(frozen=True)
class Finding:
    """One error on the device. `kernel` as the tool names it, "" when it does not; `lines` what it printed of it."""

    tool: str
    kernel: str
    lines: tuple[str, ...]

    @property
    def code(self) -> ReasonCode:
        return CODES[self.tool]

    @property
    def is_read(self) -> bool:
        """Whether it is a read out of bounds, and not a write."""
        return bool(re.search(r"__ read\b", self.lines[0]))

    @property
    def text(self) -> str:
        """What the tool printed, on one line: kind of access, kernel, thread, address."""
        first, *rest = (line.rstrip(".") for line in self.lines)
        return first + "".join(f" {line}" if line.startswith(_GOES_ON) else f"; {line}" for line in rest)


@dataclass(frozen=True)
class Report:
    """`findings` in the order printed, each place once. `complete` when the tool came to its summary; `launched` is
    False when it saw no kernel that it was to check; `troubles` are sentences of the tool's own on what went wrong.
    """

    findings: tuple[Finding, ...] = ()
    complete: bool = False
    launched: bool = True
    troubles: tuple[str, ...] = ()


def read_report(tool: str, text: str) -> Report:
    """What `tool` (memcheck, racecheck, initcheck or synccheck) reported. Raises nothing."""
    findings: dict[tuple[str, ...], Finding] = {}
    troubles: list[str] = []
    complete, launched = False, True
    for head, *rest in _blocks(text):
        summary = _SUMMARY.match(head)
        complete = complete or summary is not None
        launched = launched and _NO_LAUNCH not in head
        if _TROUBLE.match(head):
            troubles.append(head)
        if summary or _OF_ITSELF.match(head) or not _HEADLINES[tool].match(head):
            continue
        shown = list(itertools.takewhile(lambda line: not line.startswith("Saved host"), rest))
        kernel = _kernel(head, shown)
        if kernel or any("by thread" in line for line in shown):
            lines = (_HAZARDS.sub("", head), *(_HAZARDS.sub("", line) for line in shown if not _FRAME.match(line)))
            findings.setdefault((head, *shown[:1]), Finding(tool, kernel, lines))
    return Report(tuple(findings.values()), complete, launched, tuple(dict.fromkeys(troubles)))


def _blocks(text: str) -> Iterator[list[str]]:
    """Each block's lines, without the equals signs and the indentation."""
    block: list[str] = []
    for match in filter(None, (_LINE.match(line.rstrip()) for line in text.splitlines())):
        content, indented = match[2].strip(), match[2].startswith("   ")
        if block and (not indented or not content):
            yield block
            block = []
        if content and (block or not indented):
            block.append(content)
    if block:
        yield block


def _kernel(head: str, rest: list[str]) -> str:
    """The kernel of a block: the outermost device frame if there are frames, else what stands behind "at"."""
    frames = [match["name"] for line in rest if (match := _FRAME.match(line))]
    if frames:
        return frames[-1].strip()
    lines = (_HAZARDS.sub("", line) for line in (head, *rest))
    places = (_PLACE.search(line) or _OLD_PLACE.search(line) for line in lines)
    return next((place["name"].strip() for place in places if place), "")
