"""The harness's end of `fork_server`: one server for each set of what is read when libraries load, started at first
asking. What cannot be forked (another sandbox than `unshare` with PID and user namespaces, no pidfd, a server that does
not come up or fails its trial) is None here, and `spawn` starts a process of its own instead.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import weakref
from collections.abc import Mapping, Sequence
from typing import Any

from harness.model.paths import REPOSITORY, python_of
from harness.sandbox.sandbox_choice import Sandbox

_START_TIMEOUT_S = 60.0
_ANSWER_TIMEOUT_S = 10.0
_TRIAL_TIMEOUT_S = 20.0
_DOES_NOTHING = "harness.sandbox.processes"  # a module that only defines: a child that runs it ends with 0
# What libraries read when they are loaded; all else a fork can still be told.
_READ_AT_LOAD = ("LD_", "PYTHON", "OMP_", "GOMP_", "KMP_", "MKL_", "OPENBLAS_", "LANG", "LC_", "TZ")
_Key = tuple[tuple[str, str], ...]
_servers: dict[_Key, ForkServer | None] = {}
_begun: dict[_Key, ForkServer] = {}  # that nobody has asked for yet
_living: weakref.WeakSet[ForkServer] = weakref.WeakSet()
_registry_lock = threading.Lock()


class ForkedProcess:
    """A process forked by a server: what `subprocess.Popen` offers of pid, `poll` and `returncode`."""

    def __init__(self, server: ForkServer, pid: int, stdout: int) -> None:
        self.pid, self.returncode = pid, None
        self.stdout = os.fdopen(stdout, "rb", buffering=0)
        self._server = server
        self._polling = threading.Lock()
        self.ended = os.pidfd_open(pid)  # readable from its end on

    def poll(self) -> int | None:
        """The exit status, or minus the number of the signal that killed it; None while it lives.

        Whoever kills it may ask beside whoever waits for it: closed twice, a descriptor would be another's by then.
        """
        with self._polling:
            if self.returncode is None and select.select([self.ended], [], [], 0)[0]:
                self.returncode = self._server.exit_code(self.pid)
                os.close(self.ended)
            return self.returncode


class ForkServer:
    """A `fork_server` that was started; `wait_until_ready` before the first fork."""

    def __init__(self, environment: Mapping[str, str], modules: Sequence[str]) -> None:
        self._control, far = socket.socketpair()
        self._lock, self._is_ready = threading.Lock(), False
        with far:
            # In a session of its own: an interrupt at the keyboard is the harness's to handle.
            self._process = subprocess.Popen(
                python_of("harness.sandbox.fork_server", str(far.fileno()), *modules), cwd=REPOSITORY,
                env={**environment, "HOME": os.devnull, "TMPDIR": tempfile.gettempdir()}, pass_fds=[far.fileno()],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
            )
        _living.add(self)

    def wait_until_ready(self) -> None:
        """Return once it has imported all. Raises OSError where it does not come up."""
        if self._is_ready:
            return
        self._control.settimeout(_START_TIMEOUT_S)
        try:
            self._read()
        except OSError:
            self.close()
            raise
        self._control.settimeout(_ANSWER_TIMEOUT_S)
        self._is_ready = True

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def fork(
        self, plan: Mapping[str, Any], environment: Mapping[str, str], numbers: Sequence[int], group: str | None
    ) -> ForkedProcess:
        """A child that carries out `plan`, holding this process's descriptors `numbers` under the same numbers."""
        read, write = os.pipe()
        request = {"plan": dict(plan), "environment": dict(environment), "numbers": list(numbers), "group": group}
        try:
            answer = self._ask(request, [write, *numbers])
            return ForkedProcess(self, int(answer["pid"]), read)
        except BaseException:
            os.close(read)
            raise
        finally:
            os.close(write)

    def exit_code(self, pid: int) -> int:
        """How an ended child ended, once; minus SIGKILL where the server is gone too."""
        try:
            return os.waitstatus_to_exitcode(int(self._ask({"wait": pid}, [])["status"]))
        except (OSError, ValueError, KeyError):
            return -signal.SIGKILL

    def end(self) -> None:
        """Kill it, whatever it is doing; who waits for it hears of it."""
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        self._control.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self.end()

    def _ask(self, request: Mapping[str, Any], descriptors: Sequence[int]) -> dict[str, Any]:
        body = json.dumps(request).encode()
        with self._lock:
            socket.send_fds(self._control, [struct.pack(">I", len(body))], list(descriptors))
            try:
                self._control.sendall(body)
                return self._read()
            except (OSError, ValueError):
                self._process.kill()  # what it answers late would be taken for the answer to the next question
                raise

    def _read(self) -> dict[str, Any]:
        return json.loads(self._exactly(struct.unpack(">I", self._exactly(4))[0]))

    def _exactly(self, count: int) -> bytes:
        body = b""
        while len(body) < count:
            chunk = self._control.recv(count - len(body))
            if not chunk:
                raise OSError("the fork server is gone")
            body += chunk
        return body


def begin(environment: Mapping[str, str], modules: Sequence[str]) -> None:
    """Start the server for these already, if it can be of use on any sandbox; `server_for` waits for it."""
    if not hasattr(os, "pidfd_open"):
        return
    key = _key(environment, modules)
    with _registry_lock:
        if key not in _servers and key not in _begun:
            _begun[key] = ForkServer(dict(key[1:]), modules)


def _key(environment: Mapping[str, str], modules: Sequence[str]) -> _Key:
    at_load = {name: value for name, value in environment.items() if name.startswith(_READ_AT_LOAD)}
    return ("", " ".join(modules)), *sorted(at_load.items())


def server_for(sandbox: Sandbox, environment: Mapping[str, str], modules: Sequence[str]) -> ForkServer | None:
    """The server whose children may stand for ones started anew behind `sandbox`; None where there is none. They must
    not be able to reach it, and so need PID and user namespaces of their own.
    """
    alone = sandbox.name == "unshare" and {"user", "pid", "mount"} <= set(sandbox.namespaces)
    key = _key(environment, modules)
    with _registry_lock:
        begun = _begun.pop(key, None)
        if not alone or not hasattr(os, "pidfd_open"):
            if begun is not None:
                begun.end()
            return None
        if key not in _servers or not (_servers[key] is None or _servers[key].is_alive):
            _servers[key] = _tried(sandbox, dict(key[1:]), modules, begun)
        return _servers[key]


def _tried(
    sandbox: Sandbox, environment: Mapping[str, str], modules: Sequence[str], begun: ForkServer | None = None
) -> ForkServer | None:
    """`begun` or a new server whose first child came up behind the sandbox, or None: a system may allow the tool
    `unshare` what it forbids a Python process that makes the same calls.
    """
    try:
        server = begun or ForkServer(environment, modules)
        server.wait_until_ready()
    except OSError:
        return None
    if _first_child_ends_well(server, sandbox):
        return server
    server.close()
    return None


def _first_child_ends_well(server: ForkServer, sandbox: Sandbox) -> bool:
    status_read, status_write = os.pipe()
    lifeline_read, lifeline_write = os.pipe()
    plan = {
        "namespaces": sandbox.namespaces, "mounts": sandbox.mounts_from_inside, "repository": str(REPOSITORY),
        "view": [], "file_bytes": None, "processes": None, "address_bytes": None, "own_shared_memory": False,
        "status_fd": status_write, "lifeline_fd": lifeline_read, "program_fds": [], "module": _DOES_NOTHING,
        "arguments": [],
    }
    try:
        child = server.fork(plan, {}, (status_write, lifeline_read), None)
        ended = select.select([child.ended], [], [], _TRIAL_TIMEOUT_S)[0]
        child.stdout.close()
        if not ended:
            return False
        child.poll()
        readable = select.select([status_read], [], [], 0)[0]
        return bool(readable) and json.loads(os.read(status_read, 65536) or b"{}").get("status") == 0
    except (OSError, ValueError, KeyError):
        return False
    finally:
        for descriptor in (status_read, status_write, lifeline_read, lifeline_write):
            os.close(descriptor)


@atexit.register
def close_all() -> None:
    """End every server, one that is still importing too; children that still live end with their lifelines."""
    for server in list(_living):  # first: who waits for one holds the lock
        server.end()
    with _registry_lock:
        _servers.clear()
        _begun.clear()
