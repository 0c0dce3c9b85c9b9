"""One child process for each problem of a suite, so that a reference that crashes, fills the memory or changes torch's
defaults costs its own problem. The parent never imports torch: that is what makes forking it sound and cheap.
"""

from __future__ import annotations

import multiprocessing
import signal
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from harness.device.identity import DeviceIdentity
from harness.errors import HarnessError, NothingToRun
from harness.report.progress import open_progress


class ChildFailed(HarnessError):
    """Raised when a child ended without an answer, or could not do what it was asked; the text says which."""


def identify(device: str) -> DeviceIdentity:
    """What `auto`, `cpu` or `cuda:N` is on this machine, asked in a child. Raises NothingToRun or ChildFailed."""
    def ask() -> dict[str, Any]:
        from harness.device.choose import open_bench

        return asdict(open_bench(device).identity)

    return DeviceIdentity(**in_child(ask))


def judge(asked: Mapping[str, Any], *, silent: bool) -> Path:
    """Carry out a `pipeline.RunRequest` of the fields `asked` in a child; the CSV that it wrote.

    Raises ChildFailed or NothingToRun.
    """
    def carry_out() -> str:
        from harness.pipeline import RunRequest, run  # imports torch

        with open_progress(silent=silent) as progress:
            return str(run(RunRequest(**asked), progress).csv_path)

    return Path(in_child(carry_out))


def in_child(work: Callable[[], Any]) -> Any:
    """What `work` returns, a plain value, when called in a forked child.

    Raises NothingToRun where the child did, ChildFailed for every other end.
    """
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    sys.stdout.flush()
    sys.stderr.flush()
    child = context.Process(target=_answer, args=(work, sender))
    child.start()
    sender.close()
    try:
        kind, said = receiver.recv()
    except EOFError:
        child.join()
        kind, said = "failed", _end_of(child.exitcode)
    except KeyboardInterrupt:
        child.join(60)  # it had the same signal, and puts its players away
        raise
    finally:
        receiver.close()
    child.join()
    if kind == "nothing":
        raise NothingToRun(said)
    if kind == "failed":
        raise ChildFailed(said)
    return said


def _answer(work: Callable[[], Any], sender: Connection) -> None:
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
