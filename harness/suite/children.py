"""One child process for each problem of a suite, so that a reference that crashes, fills the memory or changes torch's
defaults costs its own problem. The parent never imports torch: that is what makes forking it sound and cheap.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from multiprocessing.connection import Connection
from typing import Any

from harness.device.identity import DeviceIdentity
from harness.errors import HarnessError, NothingToRun
from harness.report.progress import open_progress
from harness.sandbox.ahead import start_ahead


Work = Callable[[], Any]


class ChildFailed(HarnessError):
    """Raised when a child ended without an answer, or could not do what it was asked; the text says which."""


def identify(device: str) -> DeviceIdentity:
    """What `auto`, `cpu` or `cuda:N` is on this machine, asked in a child. Raises NothingToRun or ChildFailed."""
    def ask() -> dict[str, Any]:
        from harness.device.choose import open_bench

        return asdict(open_bench(device).identity)

    return DeviceIdentity(**in_child(ask))


def devices_here(names: Sequence[str], tell: Callable[[str], None]) -> tuple[str, ...]:
    """What `all` or `cuda:N` names are on this machine, asked in a child. Raises NothingToRun or ChildFailed."""
    def ask() -> tuple[tuple[str, ...], list[str]]:
        from harness.device.choose import devices_of

        said: list[str] = []
        return devices_of(names, said.append), said

    devices, said = in_child(ask)
    for text in said:
        tell(text)
    return devices


def judging(asked: Mapping[str, Any], devices: Sequence[str], *, silent: bool, label: str | None = None) -> Work:
    """The work of carrying out a `pipeline.RunRequest` of the fields `asked` on `devices`: the paths of its CSVs.

    `label` names the device in what is told meanwhile, where other children tell of theirs.
    """
    def carry_out() -> list[str]:
        start_ahead()  # here: a process that has threads, or shares the one it forks from, must not be forked
        from harness.fleet.running import run  # imports torch
        from harness.pipeline import RunRequest

        with open_progress(silent=silent, device=label) as progress:
            return [str(each.csv_path) for each in run(RunRequest(**asked), devices, progress)]

    return carry_out


def in_child(work: Work) -> Any:
    """What `work` returns, a plain value, when called in a forked child.

    Raises NothingToRun where the child did, ChildFailed for every other end.
    """
    return Child(work).answer()


class Child:
    """A forked child that does its `work`; wait for `pipe`, then ask for its `answer`."""

    def __init__(self, work: Work) -> None:
        context = multiprocessing.get_context("fork")
        self.pipe, sender = context.Pipe(duplex=False)
        sys.stdout.flush()
        sys.stderr.flush()
        self._process = context.Process(target=_answer, args=(work, sender))
        self._process.start()
        sender.close()

    def answer(self) -> Any:
        """What its work returned. Raises NothingToRun where the child did, ChildFailed for every other end."""
        try:
            kind, said = self.pipe.recv()
        except EOFError:
            self._process.join()
            kind, said = "failed", _end_of(self._process.exitcode)
        except KeyboardInterrupt:
            self.interrupt()
            raise
        finally:
            self.pipe.close()
        self._process.join()
        if kind == "nothing":
            raise NothingToRun(said)
        if kind == "failed":
            raise ChildFailed(said)
        return said

    def interrupt(self) -> None:
        """End it as Ctrl-C does, if it has not had the same signal already, and wait while it puts its players away."""
        if self._process.is_alive():
            os.kill(self._process.pid, signal.SIGINT)
        self._process.join(60)


def _answer(work: Callable[[], Any], sender: Connection) -> None:
    def interrupted(*_: object) -> None:
        for each in (signal.SIGINT, signal.SIGTERM):  # once is enough: what follows puts things away
            signal.signal(each, signal.SIG_IGN)
        raise KeyboardInterrupt

    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, interrupted)
    try:
        answer = ("done", work())
    except NothingToRun as error:
        answer = ("nothing", str(error))
    except HarnessError as error:
        answer = ("failed", str(error))
    except KeyboardInterrupt:
        return
    except BaseException as error:  # a reference runs in here, and may raise anything, SystemExit too
        answer = ("failed", f"{type(error).__name__}: {' '.join(str(error).split())[:500]}")
    sender.send(answer)


def _end_of(code: int | None) -> str:
    if code is not None and code < 0:
        return f"its process ended by {signal.Signals(-code).name}; what it had measured is in the results"
    return f"its process ended with code {code} and no result"
