"""One launch of a candidate under ncu, behind the sandbox: a row of raw values for each kernel, or why it has none."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from harness.sandbox.sandbox_choice import Sandbox
from harness.tools.counters.ncu import command
from harness.tools.launch_files import SmallLaunch
from harness.tools.watched_launch import laid_out

_REPORT = "counters.csv"
# ncu ends every message of its own in one of two ways; its words are kept, its frame is not.
_MESSAGE = re.compile(r"^==(?P<level>ERROR|WARNING|PROF)== (?P<text>.*)$")
_NO_PERMISSION = "ERR_NVGPUCTRPERM"
_PERMISSION = (
    "this user may not read the GPU's counters (ERR_NVGPUCTRPERM). Run it as root, or let every user read them: "
    "options nvidia NVreg_RestrictProfilingToAdminUsers=0 in /etc/modprobe.d, then a restart; a container also needs "
    "--cap-add=SYS_ADMIN"
)


@dataclass(frozen=True)
class KernelCounters:
    """One launch of a kernel: its demangled name, and its counters by metric in base units (ns, bytes)."""

    name: str
    values: Mapping[str, float]


@dataclass(frozen=True)
class Read:
    """What a log of ncu comes to. `trouble` is why there are no kernels, in a sentence; None where there are some."""

    kernels: tuple[KernelCounters, ...] = ()
    trouble: str | None = None


def read_log(text: str) -> Read:
    """The kernels in `text`, ncu's CSV of the page "raw" with its messages before it."""
    lines = text.splitlines()
    messages = [(match["level"], match["text"].strip()) for match in map(_MESSAGE.match, lines) if match]
    kernels = tuple(_kernels([line for line in lines if line.startswith('"')]))
    if kernels:
        return Read(kernels)
    if _NO_PERMISSION in text:
        return Read(trouble=_PERMISSION)
    said = next((text for wanted in ("ERROR", "WARNING") for level, text in messages if level == wanted), None)
    return Read(trouble="ncu saw no kernel in the call" if said is None else f"ncu says: {said}")


def _kernels(rows: list[str]) -> Iterator[KernelCounters]:
    """The rows below the header of names, but for that of units, which has no name of a kernel."""
    for named in csv.DictReader(io.StringIO("\n".join(rows)), restval="", restkey=""):
        if named.get("Kernel Name"):
            numbers = {name: _number(text) for name, text in named.items() if "__" in name}
            values = {name: value for name, value in numbers.items() if value is not None}
            yield KernelCounters(named["Kernel Name"], values)


def _number(text: str) -> float | None:
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return None


def measure(
    program: str, launch: SmallLaunch, environment: Mapping[str, str], sandbox: Sandbox | None, limit_s: float,
    triton_cache: Path | None = None,
) -> Read:
    """What ncu (`program`) counts in the second call of `launch`, or why it could not. `environment` is scrubbed, with
    the device that the child may see. Raises OSError when no process can start.
    """
    with laid_out(program, launch, environment, sandbox, triton_cache) as watched:
        child, has_ended = watched.run(partial(command, program), _REPORT, limit_s, profiled=True)
        if watched.raised is not None:
            return Read(trouble=f"the candidate raised {watched.raised}")
        read = read_log(watched.text(_REPORT))
        if not read.kernels and not has_ended:
            return Read(trouble=f"ncu did not end within {limit_s:g} s")
        if not read.kernels and not (watched.folder / _REPORT).exists():
            output = " ".join(child.output().split())[-300:] or "and printed nothing"
            return Read(trouble=f"ncu wrote nothing ({child.death()}): {output}")
        return read
