"""A run's turn on a device: one job times there at a time, by a file lock for each GPU's UUID and one for the CPU.

The lock is held while something is timed, and not for builds or imports. Whoever waits for it is told who has it since
when; what may be done meanwhile is the caller's to know.
"""

from __future__ import annotations

import os
import pwd
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from harness.model.errors import DeviceBusy
from harness.sandbox.locks import Lock

if TYPE_CHECKING:
    from harness.device.backend import Backend
    from harness.report.progress import Progress

LONGEST_WAIT_S = 3600.0
OF_THE_MACHINE = Path("/tmp")  # whatever TMPDIR says
_POLL_S = 0.25
_COMMAND_CHARACTERS = 100


class DeviceLock:
    """The turns of one run on the device `name`; `held` is one. Who waits for longer than `wait_s` gives up."""

    def __init__(
        self, uuid: str | None, name: str, progress: Progress, settle: Callable[[], None] = lambda: None,
        wait_s: float | None = None,
    ) -> None:
        """`settle` is called when the device was waited for: what was seen of it before is the other run's."""
        self._lock, self._name, self._progress, self._settle = device_lock(uuid), name, progress, settle
        self._wait_s = LONGEST_WAIT_S if wait_s is None else wait_s

    @classmethod
    def on(cls, backend: Backend, progress: Progress, wait_s: float | None = None) -> DeviceLock:
        """The turns on the device of `backend`."""
        uuid = backend.identity.uuid
        name = f"{backend.identity.name} ({uuid[:12]})" if uuid else "this CPU"
        return cls(uuid, name, progress, backend.settle, wait_s)

    @property
    def is_another_runs(self) -> bool:
        """Whether another run has the device now."""
        if self._lock.is_taken:
            return False
        is_free = self._lock.take()
        self._lock.release()
        return not is_free

    @contextmanager
    def held(self, is_built: Callable[[], bool] | None = None) -> Iterator[None]:
        """Hold the device, waited for if need be; `is_built` says if what is built meanwhile is. Raises DeviceBusy."""
        self._take(is_built)
        try:
            yield
        finally:
            self._lock.release()

    def _take(self, is_built: Callable[[], bool] | None = None) -> None:
        """Return once the device is this run's own. Raises DeviceBusy."""
        if self._lock.take():
            return
        is_built = None if is_built is None or is_built() else is_built
        meanwhile = ", and building meanwhile" if is_built else ""
        holder = self._lock.holder()
        self._progress.note(f"{self._holder()} is timing on {self._name}: waiting for it to end{meanwhile}")
        until = time.monotonic() + self._wait_s
        while not self._lock.take(min(_POLL_S, max(0.0, until - time.monotonic()))):
            if is_built is not None and is_built():
                self._progress.note(f"all candidates are built; still waiting for the other run on {self._name}")
                is_built = None
            if (now := self._lock.holder()) not in (holder, None):  # the one before ended, and another was sooner
                holder = now
                self._progress.note(f"{self._holder()} is timing on {self._name} now: waiting for it to end")
            if time.monotonic() >= until:
                raise DeviceBusy(
                    f"{self._holder()} still has {self._name} after {self._wait_s:g} s. Try again later, or wait for "
                    "longer with --wait SECONDS"
                )
        self._settle()

    def _holder(self) -> str:
        """Who has the device and since when, as far as that can be told."""
        process, since_s = self._lock.holder(), self._lock.taken_at_s()
        known = [] if process is None else [f"process {process}{_command_of(process)}"]
        if since_s is not None:
            known.append(f"since {datetime.fromtimestamp(since_s):%H:%M:%S}")
        return f"another run ({', '.join(known)})" if known else "another run"


def _command_of(process: int) -> str:
    """`" of anna: python run.py …"` of a process, as far as this user may see it."""
    with suppress(OSError, KeyError):
        owner = pwd.getpwuid(os.stat(f"/proc/{process}").st_uid).pw_name
        with open(f"/proc/{process}/cmdline", "rb") as file:
            words = file.read(4 * _COMMAND_CHARACTERS).decode("utf-8", "replace").split("\0")
        text = "".join(each if each.isprintable() else " " for each in " ".join(filter(None, words)))
        return f" of {owner}: {text[:_COMMAND_CHARACTERS].strip()}"
    return ""


@contextmanager
def alone_on(backend: Backend, progress: Progress, wait_s: float | None = None) -> Iterator[None]:
    """Hold the device, with a word to the user when another run has it. Raises DeviceBusy."""
    with DeviceLock.on(backend, progress, wait_s).held():
        yield


def device_lock(uuid: str | None) -> Lock:
    """A lock by GPU UUID, shared by all runs of this machine, or for the CPU, by all with this temporary folder:
    schedulers give each job a TMPDIR and cores of its own, and a GPU that two of them see is one all the same.
    """
    is_shared = uuid is not None and os.access(OF_THE_MACHINE, os.W_OK)
    folder = (OF_THE_MACHINE if is_shared else Path(tempfile.gettempdir())) / "kernel-referee-locks"
    folder.mkdir(exist_ok=True)
    with suppress(PermissionError):
        folder.chmod(0o1777)  # the umask would keep another user of this machine from locking
    return Lock(folder / f"{uuid or 'cpu'}.lock", for_all=True)
