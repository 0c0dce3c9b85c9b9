"""The strongest sandbox this machine allows, found by a trial of the real thing, once per process. In order:
bubblewrap, `unshare` with as many namespaces as the kernel grants, a process group alone.
"""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.sandbox.limits import default_limits, limited_group
from harness.sandbox.mounts import COVER, EMPTY, SCRATCH_BYTES, WRITE, raw_devices
from harness.sandbox.visible_files import view_for

INIT_PROCESS = Path(__file__).with_name("init_process.py")
_TRIAL_TIMEOUT_S = 20
_UNSHARE_FLAGS = {"user": "--user", "pid": "--pid", "mount": "--mount", "ipc": "--ipc", "net": "--net"}
_LADDER = (("pid", "mount", "ipc", "net"), ("pid", "mount", "ipc"), ("mount", "ipc", "net"), ("mount",))


@dataclass(frozen=True)
class Sandbox:
    """What stands between a child and the machine; `name` is "bubblewrap", "unshare" or "process group only".

    Where it `hides_neighbours`, a child sees of the user's files what it was given and no others.
    """

    name: str
    namespaces: tuple[str, ...] = ()
    read_only_repository: bool = False
    cgroup: bool = False
    hides_neighbours: bool = False

    @property
    def text(self) -> str:
        """The sandbox in words, for a record's `sandbox` field."""
        return "; ".join([
            f"{self.name}: {','.join(self.namespaces)}" if self.namespaces else self.name,
            *(["repository read-only"] if self.read_only_repository else []),
            "neighbours hidden" if self.hides_neighbours else "neighbours readable",
            "cgroup" if self.cgroup else "no memory limit",
        ])

    @property
    def mounts_from_inside(self) -> bool:
        """Whether `init_process` has to make the file system read-only (bubblewrap has done it before)."""
        return self.name == "unshare" and self.read_only_repository

    def command(self, repository: Path, view: Sequence[tuple[str, str]], own_shared_memory: bool = False) -> list[str]:
        """Return the words before a command line so that it runs behind this sandbox (see `mounts.make_read_only`)."""
        if self.name == "bubblewrap":
            covers = [word for path in raw_devices() for word in ("--dev-bind", "/dev/null", path)]
            steps = [word for kind, path in view for word in _bubblewraps(kind, path)]
            closed = [word for kind, path in view if kind == COVER for word in ("--remount-ro", path)]
            return [
                _tool("bwrap"), *(f"--unshare-{space}" for space in self.namespaces if space != "mount"),
                "--die-with-parent", "--ro-bind", "/", "/", "--dev-bind", "/dev", "/dev",
                *covers, *(["--tmpfs", "/dev/shm"] if own_shared_memory else []), "--proc", "/proc", "--ro-bind",
                str(repository), str(repository), *steps, *closed, "--",
            ]
        if self.name == "unshare":
            words = [_tool("unshare"), *(_UNSHARE_FLAGS[space] for space in self.namespaces)]
            if "user" in self.namespaces:
                # Root inside, the same user outside: a CUDA IPC handle does not open for another user.
                words.append("--map-root-user")
            if "pid" in self.namespaces:
                words += ["--fork", "--kill-child", "--mount-proc"]
            return [*words, "--"]
        return []


NO_SANDBOX = Sandbox("process group only")
NO_SANDBOX_HINT = "apt install bubblewrap or util-linux, on a system that lets you make user namespaces"


def why_no_sandbox(sandbox: Sandbox) -> str | None:
    """One sentence on what this machine lacks where nothing but a process group stands between it and candidates."""
    if sandbox.name != NO_SANDBOX.name:
        return None
    tools = [name for name in ("bwrap", "unshare") if shutil.which(name)]
    lacks = f"{' and '.join(tools)} may make no namespaces here" if tools else "neither bwrap nor unshare is on the PATH"
    return f"candidates run without a sandbox and can read and write what you can: {lacks}; {NO_SANDBOX_HINT}"


def _tool(name: str) -> str:
    return shutil.which(name) or name


def _bubblewraps(kind: str, path: str) -> tuple[str, ...]:
    """A step of a view in bubblewrap's words."""
    if kind in (COVER, EMPTY):
        return *_tmpfs_of_a_size(), path
    return "--bind" if kind == WRITE else "--ro-bind", path, path


@functools.lru_cache(maxsize=1)
def _tmpfs_of_a_size() -> tuple[str, ...]:
    """The words by which bubblewrap mounts an empty folder in memory; before 0.5 it knows no size for one."""
    try:
        completed = subprocess.run([_tool("bwrap"), "--help"], capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ("--tmpfs",)
    sized = re.search(r"^\s*--size\b", completed.stdout + completed.stderr, re.MULTILINE)
    return ("--size", str(SCRATCH_BYTES), "--tmpfs") if sized else ("--tmpfs",)


@functools.lru_cache(maxsize=1)
def strongest_sandbox() -> Sandbox:
    """Return the strongest sandbox that passes its trial on this machine. Takes about 0.1 s the first time."""
    cgroup = _cgroup_holds_memory()
    for sandbox in _candidates(cgroup):
        # Without a PID namespace the files of other processes are seen through /proc.
        for tried in [replace(sandbox, hides_neighbours=True), sandbox] if "pid" in sandbox.namespaces else [sandbox]:
            if _passes_trial(tried):
                return tried
    return Sandbox(NO_SANDBOX.name, cgroup=cgroup)


def _candidates(cgroup: bool) -> list[Sandbox]:
    if sys.platform != "linux":
        return []
    walls = []
    if shutil.which("unshare"):
        for spaces in _LADDER:
            walls.append(Sandbox("unshare", ("user", *spaces), True, cgroup))
            if os.geteuid() == 0:
                walls.append(Sandbox("unshare", spaces, True, cgroup))
    if shutil.which("bwrap"):
        # Second: behind it no child is forked from a server that has loaded PyTorch already (`fork_client`). It may make
        # namespaces where an unprivileged `unshare` may not, by AppArmor say.
        walls.insert(1, Sandbox("bubblewrap", ("user", *_LADDER[0]), True, cgroup))
    return walls


def _cgroup_holds_memory() -> bool:
    group = limited_group(default_limits())
    if group is None:
        return False
    try:
        return group.holds_memory
    finally:
        group.remove()


_TRIAL = """
import json, os, sys
def writes(folder):
    try:
        open(os.path.join(folder, "written"), "w").close()
        return True
    except OSError:
        return False
pids = [name for name in os.listdir("/proc") if name.isdigit()]
seen = [path for path in (sys.argv[3], "/proc/1/cwd/../neighbour", f"/proc/1/root{sys.argv[3]}") if os.path.exists(path)]
print(json.dumps({
    "repository": writes(sys.argv[1]), "private": writes(sys.argv[2]), "pids": len(pids), "neighbours": len(seen),
}))
"""


def _passes_trial(sandbox: Sandbox) -> bool:
    """Run a small program behind `sandbox` and see that it could do what it should and nothing else."""
    with tempfile.TemporaryDirectory(prefix="kernel-referee-wall-") as folder:
        repository, private = Path(folder, "repository").resolve(), Path(folder, "private").resolve()
        repository.mkdir()
        private.mkdir()
        neighbour = Path(folder, "neighbour").resolve()
        neighbour.touch()
        view = view_for(repository, [], [str(private)]) if sandbox.hides_neighbours else [(WRITE, str(private))]
        status_read, status_write = os.pipe()
        lifeline_read, lifeline_write = os.pipe()
        plan = {
            "namespaces": sandbox.namespaces, "mounts": sandbox.mounts_from_inside, "repository": str(repository),
            "view": view, "file_bytes": None, "processes": None, "address_bytes": None, "own_shared_memory": False,
            "status_fd": status_write, "lifeline_fd": lifeline_read, "program_fds": [],
            "command": [sys.executable, "-I", "-S", "-c", _TRIAL, *map(str, (repository, private, neighbour))],
        }
        try:
            trial = subprocess.run(
                [*sandbox.command(repository, view), *init_command(plan)], cwd=repository, stdin=subprocess.DEVNULL,
                capture_output=True, timeout=_TRIAL_TIMEOUT_S, pass_fds=(status_write, lifeline_read), check=False,
            )
            seen = json.loads(trial.stdout)
        except (OSError, subprocess.TimeoutExpired, ValueError):
            return False
        finally:
            for fd in (status_read, status_write, lifeline_read, lifeline_write):
                os.close(fd)
    alone = seen["pids"] <= 4 or "pid" not in sandbox.namespaces
    hidden = not (sandbox.hides_neighbours and seen["neighbours"])
    return not seen["repository"] and seen["private"] and alone and hidden


def init_command(plan: dict) -> list[str]:
    """Return the command line that carries out `plan` inside the sandbox (see `init_process`)."""
    return [sys.executable, "-I", "-S", str(INIT_PROCESS), json.dumps(plan)]
