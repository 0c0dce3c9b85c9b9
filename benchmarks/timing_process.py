"""Processes that time one function against itself: started ahead of their turn, asked once, ended with what they
started.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[1]
_PATIENCE_S = 10.0


class Died(Exception):
    """A process ended before it had said all; its last words."""


class Timed:
    """A process of timing_peers.py; it imports PyTorch and waits for its turn. `visible` goes into its environment."""

    def __init__(self, kind: str, visible: Mapping[str, str] | None = None) -> None:
        self.kind = kind
        self._said = tempfile.TemporaryFile(mode="w+", encoding="utf-8", errors="replace")
        command = [sys.executable, str(REPOSITORY / "benchmarks" / "timing_peers.py"), kind]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._said, text=True, cwd=REPOSITORY,
            env={**os.environ, **(visible or {})},
            start_new_session=True,  # an interrupt is this process's, which ends them
        )

    def ask(self, asked: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """The figures of this process as they come. Raises Died."""
        try:
            self._process.stdin.write(json.dumps(asked) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # it has ended: its last words say why
        self._process.stdout.readline()  # its hello
        for line in self._process.stdout:
            yield json.loads(line)
        if self._process.wait():
            self._said.seek(0)
            raise Died((self._said.read().strip().splitlines() or ["it said nothing"])[-1])

    def interrupt(self) -> None:
        """Have it put its workers away and end, whatever it is doing."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)

    def end(self) -> None:
        """The same, and wait for it; a process that stays is killed."""
        self.interrupt()
        try:
            self._process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def interrupt_once() -> None:
    """Have the first SIGINT or SIGTERM raise KeyboardInterrupt, and no later one: `timeout` sends two."""

    def end(number: int, frame: object) -> None:
        for each in (signal.SIGINT, signal.SIGTERM):
            signal.signal(each, signal.SIG_IGN)
        raise KeyboardInterrupt

    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, end)
