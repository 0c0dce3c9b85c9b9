"""Starting the judge of one GPU as a process of its own, and ending it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path

from harness.model.errors import HarnessError, InputError, NothingToRun
from harness.model.paths import REPOSITORY, SHIPPED
from harness.model.verdict import traceback_of

_PROGRAM = """
import importlib, shutil, sys
sys.path[0] = sys.argv[1]
import harness
sys.path[0] = sys.argv[2]
try:
    importlib.import_module(sys.argv[4]).main(int(sys.argv[3]))
except KeyboardInterrupt:
    pass
finally:
    for folder in sys.argv[5:]:
        shutil.rmtree(folder, ignore_errors=True)
"""
_PATIENCE_S = 20.0


class JudgeProcess:
    """The judge on `device` ("cuda:1", "cpu"), which sees that one and no other, and the pipe to it: the `main` of the
    module `program`. `folder` is removed at its end: whoever made it may be gone by then.
    """

    def __init__(
        self, device: str, program: str = "harness.runs.fleet.device_judge", folder: Path | None = None
    ) -> None:
        self.device = device
        near, far = socket.socketpair()
        places = [REPOSITORY, SHIPPED, far.fileno(), program, *([] if folder is None else [folder])]
        with far:
            self._process = subprocess.Popen(  # in a new session: Ctrl-C is the parent's, who passes it on once
                [sys.executable, "-c", _PROGRAM, *map(str, places)], stdin=subprocess.DEVNULL, start_new_session=True,
                env={**os.environ, **visible_alone(device, os.environ)}, pass_fds=(far.fileno(),),
            )
        self.pipe = Connection(near.detach())

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def device_inside(self) -> str:
        """What the process itself calls its device."""
        return "cpu" if self.device == "cpu" else "cuda:0"

    def interrupt(self) -> None:
        """Tell it to put its workers away and end, whatever it is doing."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)

    def end(self) -> None:
        """Wait some seconds for its end, then make one."""
        self.pipe.close()
        try:
            self._process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def how_it_ended(self) -> str:
        """A few words on the end of a process whose pipe is closed: "ended by SIGKILL"."""
        code = self._process.wait()
        return f"ended by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"


def visible_alone(device: str, environment: Mapping[str, str]) -> dict[str, str]:
    """The environment in which `device`, counted among the visible ones, is the only GPU: cuda:0."""
    if device == "cpu":
        return {}
    index, visible = int(device.partition(":")[2]), environment.get("CUDA_VISIBLE_DEVICES")
    return {"CUDA_VISIBLE_DEVICES": str(index) if visible is None else visible.split(",")[index].strip()}


@contextmanager
def errors_sent(pipe: Connection) -> Iterator[None]:
    """Send what a judge's process ends with to its parent, for `error_of`; end in silence where that has ended."""
    try:
        yield
    except (EOFError, BrokenPipeError, ConnectionResetError, KeyboardInterrupt):
        pass  # the parent has ended
    except HarnessError as error:
        pipe.send(("failed", error.exit_code, str(error)))
    except Exception as error:  # a reference runs in a judge's process, and may raise anything
        print(traceback_of(error), file=sys.stderr, flush=True)  # what is sent is one line
        pipe.send(("failed", 1, f"{type(error).__name__}: {' '.join(str(error).split())[:500]}"))


def error_of(exit_code: int, text: str) -> HarnessError:
    """The error that a judge reported, as it would have been raised here."""
    kinds = {each.exit_code: each for each in (InputError, NothingToRun)}
    return kinds.get(exit_code, HarnessError)(text)


@contextmanager
def started(devices: Sequence[str]) -> Iterator[list[JudgeProcess]]:
    """A judge on each device; none is left when this ends, however it does."""
    judges: list[JudgeProcess] = []
    try:
        for device in devices:
            judges.append(JudgeProcess(device))
        yield judges
    finally:
        for judge in judges:
            judge.interrupt()
        for judge in judges:
            judge.end()
