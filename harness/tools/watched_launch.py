"""A small launch under one of NVIDIA's tools, in a process of its own behind the sandbox."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from harness.model.paths import REPOSITORY, python_of
from harness.sandbox.leftovers import content_of, remove_tree
from harness.sandbox.limits import default_limits
from harness.sandbox.sandbox_choice import Sandbox
from harness.sandbox.spawn import Child, spawn
from harness.tools import launch_files

_LARGEST_FILE_BYTES = 16 << 20
# The words that run a target with the report in a log.
Command = Callable[[Path, Sequence[str]], Sequence[str]]


@dataclass(frozen=True)
class WatchedLaunch:
    """A launch that lies in `folder`, for the tool `program` to watch. Made by `laid_out`."""

    program: str
    launch: launch_files.SmallLaunch
    environment: Mapping[str, str]
    sandbox: Sandbox | None
    writable: Sequence[Path]
    folder: Path

    def run(self, command: Command, log: str, limit_s: float, *, profiled: bool = False) -> tuple[Child, bool]:
        """Have the tool make the launch, which may take `limit_s`; its second call alone is `profiled`. Returns the
        process, which is gone, and whether it came to its end. Raises OSError when none can start.
        """
        (self.folder / launch_files.OUTCOME).unlink(missing_ok=True)
        target = python_of("harness.tools.watched_call", str(self.folder), *(["profiled"] if profiled else []))
        child = spawn(
            "harness.tools.start_tool", arguments=list(command(self.folder / log, target)), environment=self.environment,
            private=self.folder, writable=self.writable, hidden=self.launch.hidden,
            readable=[*self.launch.places, self.program, Path(self.program).resolve().parent], repository=REPOSITORY,
            limits=default_limits(), sandbox=self.sandbox,
        )
        try:
            return child, child.wait(limit_s) is not None
        finally:
            child.kill()

    def text(self, name: str) -> str:
        """Return the text of the file `name` in the folder, where the candidate may have put anything; "" without one."""
        return content_of(self.folder / name, _LARGEST_FILE_BYTES).decode(errors="replace")

    @property
    def raised(self) -> str | None:
        """What the candidate raised instead of launching, if it did."""
        try:
            words = json.loads(self.text(launch_files.OUTCOME))["raised"]
            return " ".join(f"{words['type']}: {words['message']}".split())[:400]
        except (ValueError, KeyError, TypeError, RecursionError):
            return None


@contextmanager
def laid_out(
    program: str, launch: launch_files.SmallLaunch, environment: Mapping[str, str], sandbox: Sandbox | None,
    triton_cache: Path | None,
) -> Iterator[WatchedLaunch]:
    """Lay `launch` out in a folder, which goes in the end. `environment` is scrubbed, with the device it may see."""
    folder = Path(tempfile.mkdtemp(prefix="watched-"))
    environment, writable = dict(environment), []
    if triton_cache is not None:
        triton_cache.mkdir(parents=True, exist_ok=True)
        environment["TRITON_CACHE_DIR"] = str(triton_cache)
        writable.append(triton_cache)
    try:
        launch_files.write(folder, launch)
        yield WatchedLaunch(program, launch, environment, sandbox, writable, folder)
    finally:
        remove_tree(folder)
