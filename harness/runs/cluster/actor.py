"""What Ray places on a node, beside one device: it starts the judge there and passes on what is said.

Nothing of a candidate's runs in this process, nor does PyTorch: the judge is a process of its own, as on one machine,
and its candidates are in that machine's sandbox.
"""

from __future__ import annotations

import json
import os
import queue
import shutil
import socket
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

from harness import __version__
from harness.model.errors import HarnessError
from harness.results.assembly import harness_hash
from harness.runs.cluster.parcel import Carried, Shelf, Unpacker
from harness.runs.fleet.judge_process import JudgeProcess

# What only says how far a judge is waits so long for more, so that a candidate takes a few messages and not ten.
_LINGER_S = 0.25
# The last of several that come together.
_LAST = ("free", "answer", "gone", "failed", "device", "until quiet")


class RefereeActor:
    """One device of a node, and the judge process on it, which runs `program`."""

    def __init__(self, program: str, device: str) -> None:
        self._said: queue.SimpleQueue[tuple] = queue.SimpleQueue()
        self._folder = Path(tempfile.mkdtemp(prefix="kernel-referee-node-"))
        self._unpacker = Unpacker(Shelf(self._folder))
        with suppress(OSError):  # Ray's workers have less priority than Ray itself, which a judge's clock would show
            os.setpriority(os.PRIO_PROCESS, 0, os.getpriority(os.PRIO_PROCESS, os.getppid()))
        self._referee = JudgeProcess(device, program, self._folder)
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        while True:
            try:
                self._said.put(self._referee.pipe.recv())
            except (EOFError, OSError, TypeError):  # TypeError: closed meanwhile
                self._said.put(("gone", self._referee.how_it_ended()))
                return

    def open(self) -> str:
        """Return what is here, as JSON: which version of this software, and which process."""
        return json.dumps({"version": __version__, "hash": harness_hash(), "pid": self._referee.pid})

    def hear(self, timeout_s: float, text: str | None = None, *builds: Carried) -> list[str]:
        """Return what the judge has said since, each as JSON; wait for it up to `timeout_s`. Before it, `send` what there is."""
        if text is not None:
            self.send(text, *builds)
        messages: list[str] = []
        until = time.monotonic() + timeout_s
        while True:
            try:
                words = self._said.get(timeout=max(0.0, until - time.monotonic()))
            except queue.Empty:
                return messages
            messages.append(json.dumps(words))
            if words[0] in _LAST:
                return messages
            until = time.monotonic() + _LINGER_S

    def send(self, text: str, *builds: Carried) -> None:
        """Tell the judge what `text` says; `builds` are those that it counts, one after the other."""
        try:
            self._referee.pipe.send(self._unpacker.said(text, builds))
        except (HarnessError, OSError) as error:  # what is wrong with a job costs that job, and not the device
            job = json.loads(text).get("number")
            self._said.put(("failed", 1, str(error)) if job is None else ("answer", job, None, (1, str(error)), None))

    def interrupt(self) -> None:
        """Have the judge put its workers away and end."""
        self._referee.interrupt()

    def end(self) -> None:
        """Wait some seconds for the judge's end, then make one; its files go."""
        with suppress(OSError), socket.socket(fileno=os.dup(self._referee.pipe.fileno())) as pipe:
            pipe.shutdown(socket.SHUT_RDWR)  # a thread of this process still listens to it, so that closing it tells nobody
        self._referee.end()
        shutil.rmtree(self._folder, ignore_errors=True)
