"""Starting a fresh worker for an entry: what it may see, write and use."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from harness.device.backend import Backend
from harness.model.paths import REPOSITORY
from harness.protocol.clocks.idle_threads import SPIN
from harness.protocol.frames import WireError
from harness.sandbox.environment import scrubbed
from harness.sandbox.leftovers import remove_tree
from harness.sandbox.limits import default_limits
from harness.sandbox.prestart import PRELOADED
from harness.sandbox.sandbox_choice import Sandbox
from harness.sandbox.spawn import Child, spawn

# For a GPU's context; beside a candidate that keeps the GPU busy it may take longer than this.
_OPENING_S = 5.0


class WorkerLauncher:
    """Starts workers of one entry; `private` folders go when `close` is called.

    `warm` is a folder of the entry's own that outlives the run: compiled Triton and Inductor kernels. `imports`
    are modules that a worker has imported when it says that it is there, and `readable` what it has to see of the
    user's files: the entry and what it was built to. Nothing else is seen of the folders in `hidden`.
    """

    def __init__(
        self, backend: Backend, sandbox: Sandbox, warm: Path, imports: Sequence[str] = (), readable: Sequence[Path] = (),
        hidden: Sequence[Path] = (),
    ) -> None:
        self._backend, self._sandbox, self._warm, self._imports = backend, sandbox, warm, imports
        self._readable, self._hidden = tuple(readable), tuple(hidden)
        self._folders: list[str] = []
        self._prestart: Child | None = None
        self._is_opening = False

    @property
    def is_opening(self) -> bool:
        """Whether a worker waits that has opened the device, or was asked to."""
        return self._prestart is not None and self._is_opening

    def prestart(self, *, open_device: bool = False) -> None:
        """Start the first worker already; it waits, and touches the device only to open it where that is asked for.

        It cannot always be forked from a process that has torch, and takes seconds to import it otherwise. One that was
        started before and is not there yet is not asked to open the device: nobody knows when it would.
        """
        is_fresh = self._prestart is None
        if is_fresh:
            self._prestart = self._spawn(open_device=open_device)
        if open_device and not self._is_opening and (is_fresh or self._prestart.channel.readable()):
            try:
                self._prestart.channel.send({"op": "open_device", "device": self._backend.kind}, _OPENING_S)
                self._is_opening = True
            except WireError:
                self._end_prestart()

    def wait_until_open(self) -> int | None:
        """The pid of the waiting worker, once the device is open in it; None without one, or where it had to end."""
        if self._prestart is None or not self._is_opening:
            return None
        if not self._prestart.has_greeted:
            try:
                for _ in ("that it is there", "that the device is open"):
                    self._prestart.channel.receive(_OPENING_S)
            except WireError:
                self._end_prestart()
                return None
            self._prestart.has_greeted = True
        return self._prestart.pid

    def start(self) -> Child:
        """A process that has inherited the arena and has imported torch or is about to."""
        self.wait_until_open()
        ahead, self._prestart = self._prestart, None
        self._is_opening = False
        return self._spawn() if ahead is None else ahead

    def _spawn(self, *, open_device: bool = False) -> Child:
        opened = self._backend.kind if open_device else "nothing"
        private = tempfile.mkdtemp(prefix="worker-")
        self._folders.append(private)
        caches = {"TRITON_CACHE_DIR": self._warm / "triton", "TORCHINDUCTOR_CACHE_DIR": self._warm / "inductor"}
        for folder in caches.values():
            folder.mkdir(parents=True, exist_ok=True)
        environment = scrubbed(os.environ, {
            **self._backend.visible_devices(), **{name: os.environ[name] for name in SPIN if name in os.environ},
            **{name: str(folder) for name, folder in caches.items()},
        })
        descriptor = self._backend.arena.descriptor
        return spawn(
            "harness.worker", arguments=[str(descriptor), opened, *self._imports], environment=environment,
            private=Path(private), writable=[self._warm], readable=self._readable, hidden=self._hidden,
            repository=REPOSITORY, inherit=[descriptor], limits=default_limits(gpu=not self._backend.limits.is_host),
            sandbox=self._sandbox, preloaded=PRELOADED,
        )

    def close(self) -> None:
        """End a worker that was never used, and remove the private folders."""
        self._end_prestart()
        for folder in self._folders:
            remove_tree(folder)

    def _end_prestart(self) -> None:
        if self._prestart is not None:
            self._prestart.kill()
        self._prestart, self._is_opening = None, False
