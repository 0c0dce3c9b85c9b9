"""One launch of a candidate under ncu, in a process of its own behind the sandbox."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path

from harness.model.places import REPOSITORY
from harness.sandbox.leftovers import content_of, remove_tree
from harness.sandbox.limits import default_limits
from harness.sandbox.spawn import spawn
from harness.sandbox.strongest import Sandbox
from harness.tools import launch_files
from harness.tools.counters.ncu_output import Read, read_log
from harness.tools.counters.start_ncu import REPORT

_LARGEST_REPORT_BYTES = 16 << 20


def measure(
    program: str, launch: launch_files.SmallLaunch, environment: Mapping[str, str], sandbox: Sandbox | None, limit_s: float,
    triton_cache: Path | None = None,
) -> Read:
    """What ncu (`program`) counts in the second call of `launch`, or why it could not.

    `environment` is the child's, scrubbed, with the device that it may see. Raises OSError when no process can start.
    """
    private = Path(tempfile.mkdtemp(prefix="counters-"))
    environment = dict(environment)
    writable = []
    if triton_cache is not None:
        triton_cache.mkdir(parents=True, exist_ok=True)
        environment["TRITON_CACHE_DIR"] = str(triton_cache)
        writable.append(triton_cache)
    try:
        launch_files.write(private, launch)
        child = spawn(
            "harness.tools.counters.start_ncu", arguments=[str(private), program], environment=environment, private=private,
            writable=writable, readable=[*launch.places, program, Path(program).resolve().parent], hidden=launch.hidden,
            repository=REPOSITORY, limits=default_limits(), sandbox=sandbox,
        )
        try:
            ended = child.wait(limit_s) is not None
        finally:
            child.kill()
        raised = _raised(private)
        if raised is not None:
            return Read(trouble=f"the candidate raised {raised}")
        read = read_log(_text(private / REPORT))
        if not read.kernels and not ended:
            return Read(trouble=f"ncu did not end within {limit_s:g} s")
        if not read.kernels and not (private / REPORT).exists():
            said = " ".join(child.output().split())[-300:] or "and printed nothing"
            return Read(trouble=f"ncu wrote nothing ({child.death()}): {said}")
        return read
    finally:
        remove_tree(private)


def _text(path: Path) -> str:
    return content_of(path, _LARGEST_REPORT_BYTES).decode(errors="replace")


def _raised(private: Path) -> str | None:
    try:
        words = json.loads(_text(private / launch_files.OUTCOME))["raised"]
        return " ".join(f"{words['type']}: {words['message']}".split())[:400]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
