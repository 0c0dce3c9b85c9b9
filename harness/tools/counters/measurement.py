"""One launch of a candidate under ncu, in a process of its own behind the sandbox."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from harness.sandbox.strongest import Sandbox
from harness.tools.counters.ncu import command
from harness.tools.counters.ncu_output import Read, read_log
from harness.tools.launch_files import SmallLaunch
from harness.tools.watched_launch import laid_out

_REPORT = "counters.csv"


def measure(
    program: str, launch: SmallLaunch, environment: Mapping[str, str], sandbox: Sandbox | None, limit_s: float,
    triton_cache: Path | None = None,
) -> Read:
    """What ncu (`program`) counts in the second call of `launch`, or why it could not.

    `environment` is the child's, scrubbed, with the device that it may see. Raises OSError when no process can start.
    """
    with laid_out(program, launch, environment, sandbox, triton_cache) as watched:
        child, has_ended = watched.run(partial(command, program), _REPORT, limit_s, profiled=True)
        if watched.raised is not None:
            return Read(trouble=f"the candidate raised {watched.raised}")
        read = read_log(watched.text(_REPORT))
        if not read.kernels and not has_ended:
            return Read(trouble=f"ncu did not end within {limit_s:g} s")
        if not read.kernels and not (watched.folder / _REPORT).exists():
            said = " ".join(child.output().split())[-300:] or "and printed nothing"
            return Read(trouble=f"ncu wrote nothing ({child.death()}): {said}")
        return read
