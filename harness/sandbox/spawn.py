"""Starting an untrusted module behind the sandbox, and ending it with everything it started. `spawn` hands back a
`Child`: a channel of frames, what it printed, how it died, and `kill`. What the frames say is the caller's.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import signal
import subprocess
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from harness.model.paths import python_of
from harness.protocol.frames import Channel, channel_pair
from harness.sandbox import processes
from harness.sandbox.environment import named_in, private_places
from harness.sandbox.fork_client import ForkedProcess, server_for
from harness.sandbox.limits import Group, ResourceLimits, limited_group
from harness.sandbox.mounts import WRITE
from harness.sandbox.sandbox_choice import Sandbox, init_command, strongest_sandbox
from harness.sandbox.visible_files import view_for

# Freeing the context of a killed process keeps the GPU driver busy for seconds.
_END_TIMEOUT_S = 15.0
HEAD_BYTES = 16 * 1024
TAIL_BYTES = 64 * 1024
_READ_BYTES = 1 << 20
_PAUSE_S = 0.001
_SET_PIPE_SIZE = 1031  # Linux's F_SETPIPE_SZ
_living: weakref.WeakSet[Child] = weakref.WeakSet()


class Child:
    """An untrusted process behind a sandbox. Made by `spawn`; `kill` it when done, whatever became of it."""

    def __init__(
        self, process: subprocess.Popen | ForkedProcess, channel: Channel, sandbox: Sandbox, limits: ResourceLimits,
        group: Group | None, status_fd: int, lifeline_fd: int,
    ) -> None:
        self.channel, self.sandbox = channel, sandbox
        self.has_greeted = False  # whether whoever started it has received its first frame already
        self._process, self._limits, self._group = process, limits, group
        self._output = _OutputTail(os.dup(process.stdout.fileno()))
        process.stdout.close()
        self._status = os.fdopen(status_fd, "rb", buffering=0)
        # The only write end: closing it, or the end of this process, ends everything behind the sandbox.
        self._lifeline = os.fdopen(lifeline_fd, "wb", buffering=0)
        self._report: dict | None = None
        self._killed = self._ended_by_us = self._out_of_memory = False
        self._lock = threading.RLock()
        _living.add(self)

    @property
    def pid(self) -> int:
        """The outermost process, as this machine counts."""
        return self._process.pid

    def output(self) -> str:
        """The first and last kilobytes of what it printed on both streams so far."""
        return self._output.text()

    def poll(self) -> int | None:
        """None while it lives; else its exit status, or minus the number of the signal that killed it."""
        with self._lock:
            if self._process.poll() is None:
                return None
            return self._code()

    def wait(self, timeout_s: float | None = None) -> int | None:
        """Wait for the end, `timeout_s` seconds at most. Returns what `poll` returns."""
        if not self._status.closed:
            select.select([self._status], [], [], timeout_s)
        deadline = time.monotonic() + _END_TIMEOUT_S
        while self._status_has_ended() and self._process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.001)
        return self.poll()

    def _status_has_ended(self) -> bool:
        return self._status.closed or bool(select.select([self._status], [], [], 0)[0])

    def _code(self) -> int:
        """Translate what `init_process` reported, or without a report how the outermost process ended."""
        if self._report is None:
            self._report = {}
            if not self._status.closed and select.select([self._status], [], [], 0)[0]:
                with suppress(ValueError):
                    self._report = json.loads(self._status.read(65536) or b"{}")
        if "status" in self._report:
            return os.waitstatus_to_exitcode(self._report["status"])
        if self._ended_by_us:
            return -9
        code = self._process.returncode
        # unshare and bwrap pass a signal on as 128 + its number.
        return 128 - code if code > 128 else code

    @property
    def ran_out_of_memory(self) -> bool:
        """Whether the kernel killed one of its processes for going over the memory limit."""
        with self._lock:
            if self._group is not None:
                self._out_of_memory = self._group.out_of_memory_kills() > 0
            return self._out_of_memory

    def death(self) -> str:
        """Say in a few words how it ended: "killed by SIGSEGV", "exited with status 0", "still running"."""
        code = self.poll()
        if code is None:
            return "still running"
        if self._report and "refused" in self._report:
            return f"not started: the sandbox could not be built ({self._report['refused']})"
        if self.ran_out_of_memory:
            gigabytes = (self._limits.memory_bytes or 0) / 1e9
            return f"killed by the system for using more than {gigabytes:.1f} GB of memory"
        if code >= 0:
            return f"exited with status {code}"
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"signal {-code}"
        return f"killed by {name}"

    def kill(self, meanwhile: Callable[[], None] | None = None) -> None:
        """End it and everything it started, at once; safe to call again and after its end. While it goes, which takes a
        tenth of a second where a GPU's context is taken apart, `meanwhile` is called.
        """
        with self._lock:
            if self._killed:
                return
            self._killed = True
            try:
                if self._process.poll() is None:
                    self._end(meanwhile)
            finally:  # whatever interrupts that
                self._clear_away()

    def _clear_away(self) -> None:
        self.poll()
        self.ran_out_of_memory  # noqa: B018  read before the group, and its count, are gone
        if self._group is not None:
            self._group.remove()
        self._group = None
        self.channel.close()
        self._status.close()
        self._close_lifeline()
        self._output.finish(1.0)
        _living.discard(self)

    def _end(self, meanwhile: Callable[[], None] | None) -> None:
        self._ended_by_us = True
        below = processes.descendants(self.pid)
        if "pid" in self.sandbox.namespaces:
            # The first one dies only when its whole namespace has, and the outermost waits for it.
            for pid in below:
                processes.kill(pid)
        self._close_lifeline()
        has_ended = False
        try:
            if meanwhile is not None:
                meanwhile()
            has_ended = self._ends_within(_END_TIMEOUT_S if below else 1.0)
        finally:  # a wait that is interrupted leaves nothing behind either
            if not has_ended:
                self._kill_group()

    def _kill_group(self) -> None:
        for pid in [*processes.descendants(self.pid), self.pid]:
            processes.kill(pid)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        self._ends_within(_END_TIMEOUT_S)

    def _ends_within(self, timeout_s: float) -> bool:
        deadline = time.monotonic() + timeout_s
        while self._process.poll() is None:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.002)
        return True

    def _close_lifeline(self) -> None:
        with suppress(OSError):
            self._lifeline.close()


@atexit.register
def _kill_all() -> None:
    for child in list(_living):
        child.kill()


def spawn(
    module: str, *, arguments: Sequence[str] = (), environment: Mapping[str, str], private: Path,
    writable: Sequence[Path] = (), readable: Sequence[Path | str] = (), hidden: Sequence[Path | str] = (), repository: Path,
    inherit: Sequence[int] = (), limits: ResourceLimits, sandbox: Sandbox | None = None, preloaded: Sequence[str] = (),
) -> Child:
    """Start ``python -m module CHANNEL_FD *arguments`` behind `sandbox` (default: the best there is).

    Its folder is the repository. `environment` should come from `scrubbed`; the places of `private_places` are added to
    it. The child may write below `private` and `writable` (existing folders) only, and into a /tmp of its own where
    `limits` say so: of the machine's files it then sees the system's, those folders, the interpreter's, what
    `environment` names and `readable`, and of the folders in `hidden` nothing else (see `view`). It holds the
    descriptors in `inherit` under their own numbers. Modules `preloaded` are imported once, and all children that name
    the same are forked from there, where the sandbox allows it. Raises OSError when no process can be started.
    """
    sandbox = strongest_sandbox() if sandbox is None else sandbox
    private, repository = private.resolve(), repository.resolve()
    places = private_places(private)
    for place in places.values():
        Path(place).mkdir(parents=True, exist_ok=True)
    folders = [str(private), *(str(path.resolve()) for path in writable)]
    view = [(WRITE, folder) for folder in folders]
    if limits.own_scratch and sandbox.hides_neighbours:
        view = view_for(repository, [*map(str, readable), *named_in(environment)], folders, map(str, hidden))
    words = sandbox.command(repository, view, limits.own_shared_memory)
    channel, far = channel_pair()
    status_read, status_write = os.pipe()
    lifeline_read, lifeline_write = os.pipe()
    plan = {
        "namespaces": sandbox.namespaces, "mounts": sandbox.mounts_from_inside, "repository": str(repository),
        "view": view, "file_bytes": limits.file_bytes, "processes": limits.processes,
        "address_bytes": limits.address_bytes, "own_shared_memory": limits.own_shared_memory,
        "status_fd": status_write, "lifeline_fd": lifeline_read,
        "program_fds": [far.fileno(), *inherit], "module": module, "arguments": [str(far.fileno()), *arguments],
        "command": python_of(module, str(far.fileno()), *arguments, repository=repository),
    }
    descriptors = (far.fileno(), *inherit, status_write, lifeline_read)
    group = None
    try:
        group = limited_group(limits)
        process = _forked(sandbox, plan, {**places, **environment}, descriptors, group, preloaded)
        if process is None:
            process = subprocess.Popen(
                [*_joining(group), *words, *init_command(plan)],
                cwd=repository, env={**places, **environment}, start_new_session=True,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, pass_fds=descriptors,
            )
        return Child(process, channel, sandbox, limits, group, status_read, lifeline_write)
    except BaseException:
        for fd in (status_read, lifeline_write):
            os.close(fd)
        channel.close()
        if group is not None:
            group.remove()
        raise
    finally:
        far.close()
        os.close(status_write)
        os.close(lifeline_read)


def _forked(
    sandbox: Sandbox, plan: Mapping[str, Any], environment: Mapping[str, str], descriptors: Sequence[int],
    group: Group | None, preloaded: Sequence[str],
) -> ForkedProcess | None:
    server = server_for(sandbox, environment, preloaded) if preloaded else None
    with suppress(OSError, ValueError, KeyError):
        return server.fork(plan, environment, descriptors, str(group.path) if group else None) if server else None
    return None


def _joining(group: Group | None) -> list[str]:
    """Return words that put the process into its group before anything else runs in it."""
    script = 'echo 0 > "$0/cgroup.procs" || exit 125; exec "$@"'
    return [] if group is None else ["/bin/sh", "-c", script, str(group.path)]


class _OutputTail:
    """The first and the last kilobytes of what a child prints, which may be endless: read in a daemon thread, so that
    the writer never blocks.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        _widen(fd)
        self._head = bytearray()
        self._tail = bytearray()
        self.total_bytes = 0
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._drain, name="child output", daemon=True)
        self._thread.start()

    def _drain(self) -> None:
        try:
            while chunk := os.read(self._fd, _READ_BYTES):
                self._keep(chunk)
                # Let the pipe fill: taking the interpreter from a thread that spins costs more than a page is worth.
                time.sleep(_PAUSE_S)
        except OSError:
            pass
        finally:
            os.close(self._fd)

    def _keep(self, chunk: bytes) -> None:
        with self._lock:
            self.total_bytes += len(chunk)
            room = HEAD_BYTES - len(self._head)
            self._head += chunk[:room]
            self._tail += chunk[room:][-TAIL_BYTES:]
            if len(self._tail) > 2 * TAIL_BYTES:
                del self._tail[:-TAIL_BYTES]

    def finish(self, timeout_s: float) -> None:
        """Wait until the stream has ended, `timeout_s` seconds at most."""
        self._thread.join(timeout_s)

    def text(self) -> str:
        """Return what was kept, with a line that says how much was left out."""
        with self._lock:
            tail = bytes(self._tail[-TAIL_BYTES:])
            left_out = self.total_bytes - len(self._head) - len(tail)
            gap = f"\n[{left_out} bytes left out]\n".encode() if left_out else b""
            return (bytes(self._head) + gap + tail).decode("utf-8", errors="replace")


def _widen(fd: int) -> None:
    """Let a pipe hold as much as one read takes: a chatty program then waits less often for this thread's turn."""
    with suppress(ImportError, OSError):
        import fcntl

        fcntl.fcntl(fd, _SET_PIPE_SIZE, _READ_BYTES)
