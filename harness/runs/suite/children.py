"""Child processes for the problems of a suite, so that a reference that crashes, fills the memory or changes torch's
defaults costs its own problem: a new one follows. The parent never imports torch: forking it is sound and cheap.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from multiprocessing.connection import Connection
from typing import Any

from harness.device.identity import DeviceIdentity
from harness.model.errors import HarnessError, NothingToRun
from harness.report.progress import open_progress
from harness.sandbox.prestart import prestart, uncollected

Work = Callable[[], Any]
_ENDING = (signal.SIGINT, signal.SIGTERM)


class ChildFailed(HarnessError):
    """Raised when a child ended without an answer, or could not do what it was asked; the text says which."""


def identify(device: str) -> DeviceIdentity:
    """What `auto`, `cpu` or `cuda:N` is on this machine, asked in a child. Raises NothingToRun or ChildFailed."""
    def ask() -> dict[str, Any]:
        from harness.device.choice import open_backend

        return asdict(open_backend(device).identity)

    return DeviceIdentity(**in_child(ask))


def devices_here(names: Sequence[str], tell: Callable[[str], None]) -> tuple[str, ...]:
    """What `all` or `cuda:N` names are on this machine, asked in a child. Raises NothingToRun or ChildFailed."""
    def ask() -> tuple[tuple[str, ...], list[str]]:
        from harness.device.choice import devices_of

        notes: list[str] = []
        return devices_of(names, notes.append), notes

    devices, notes = in_child(ask)
    for text in notes:
        tell(text)
    return devices


def judging(asked: Mapping[str, Any], devices: Sequence[str], *, silent: bool) -> Work:
    """The work of carrying out a `judge.run.RunRequest` of the fields `asked` on `devices`: the paths of its CSVs."""
    def carry_out() -> list[str]:
        prestart()  # here: a process that has threads, or shares the one it forks from, must not be forked
        from harness.judge.run import RunRequest
        from harness.runs.fleet.fleet import run  # imports torch

        with open_progress(silent=silent) as progress:
            return [str(each.csv_path) for each in run(RunRequest(**asked), devices, progress)]

    return carry_out


class WarmChild:
    """A child that judges problem after problem on one `device`: PyTorch, the device and its kernels stay warm.

    What a problem leaves changed in the process (a default of PyTorch's, say) ends it with that problem, as every error
    does. `label` names the device in what is told meanwhile, where other children tell of theirs. `pipe` is as a
    `Child`'s; the answer of each problem is waited for before the next is asked.
    """

    fault: str | None = None  # it has one device: what that cannot judge is raised

    def __init__(self, device: str, *, silent: bool, label: str | None = None) -> None:
        self._device, self._silent, self._label = device, silent, label
        self._child: Child | None = None
        self._asks: Connection | None = None

    @property
    def pipe(self) -> Connection:
        return self._child.pipe

    def ask(self, asked: Mapping[str, Any]) -> None:
        """Have it judge the fields of a `judge.run.RunRequest`; in a new process where there is none."""
        if self._child is None:
            context = multiprocessing.get_context("fork")
            receiver, self._asks = context.Pipe(duplex=False)
            work = _judging_all((receiver, self._asks), self._device, silent=self._silent, label=self._label)
            self._child = Child(work, goes_on=True)
            receiver.close()
        self._asks.send(asked)

    def answer(self) -> list[str]:
        """The paths of the CSVs of what was asked last. Raises NothingToRun or ChildFailed as a `Child` does."""
        child, self._child = self._child, None
        paths, fault, goes_on = child.answer()
        if goes_on:
            self._child = child
        else:
            child.join()
        if fault is not None:
            raise ChildFailed(fault)
        return paths

    def interrupt(self) -> None:
        """End what it does as Ctrl-C would, and wait for it."""
        if self._child is not None:
            self._child.interrupt()

    def close(self) -> None:
        """Let it go: it has nothing more to do."""
        if self._child is not None:
            with suppress(OSError):  # it may have ended by itself
                self._asks.send(None)
            self._child.join()


def _judging_all(
    pipe: tuple[Connection, Connection], device: str, *, silent: bool, label: str | None
) -> Callable[[], Iterator[tuple[list[str], str | None, bool]]]:
    """The work of a `WarmChild`, until asked for nothing: for each thing paths or a fault, and whether it goes on."""
    asks, parents_end = pipe

    def carry_out() -> Iterator[tuple[list[str], str | None, bool]]:
        parents_end.close()  # so that the parent's end is seen
        prestart()
        with uncollected():
            from harness.device.choice import open_backend
            from harness.judge.run import RunRequest, run  # imports torch

        backend, before, goes_on = None, torch_defaults(), True
        while goes_on:
            try:
                asked = asks.recv()
            except EOFError:
                asked = None
            if asked is None:
                return
            paths, fault = [], None
            with open_progress(silent=silent, device=label) as progress:
                if backend is None:
                    progress.note("opening the device")
                    backend = open_backend(device)
                try:
                    paths = [str(run(RunRequest(**asked), progress, backend).csv_path)]
                except NothingToRun:
                    raise
                except HarnessError as error:  # what is wrong with a problem says nothing of this process
                    fault = str(error)
            goes_on = torch_defaults() == before
            yield paths, fault, goes_on

    return carry_out


def torch_defaults() -> tuple[Any, ...]:
    """What of PyTorch a reference can change for all that comes after it in a process, and results or times hang on."""
    import torch

    return (
        torch.get_default_dtype(), str(torch.get_default_device()), torch.is_grad_enabled(), torch.get_num_threads(),
        torch.are_deterministic_algorithms_enabled(), torch.backends.cudnn.enabled, torch.backends.cudnn.benchmark,
        torch.backends.cudnn.deterministic, torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction,
        torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction, torch.backends.cuda.flash_sdp_enabled(),
        torch.backends.cuda.mem_efficient_sdp_enabled(), torch.backends.cuda.math_sdp_enabled(),
        torch.Tensor.__add__, torch.nn.functional.relu, torch.nn.Module.__call__,
    )


def in_child(work: Work) -> Any:
    """What `work`, called in a forked child, returns: a plain value. Raises as `Child.answer`."""
    return Child(work, daemon=True).answer()


class Child:
    """A forked child that does its `work`; wait for `pipe`, then ask for its `answer`. One that `goes_on` has an answer
    after the other, which its work yields. One that is a `daemon` starts no child of its own, and ends with its parent.
    """

    fault: str | None = None  # of one model among several, on a cluster alone

    def __init__(self, work: Work, *, goes_on: bool = False, daemon: bool = False) -> None:
        self._goes_on = goes_on
        context = multiprocessing.get_context("fork")
        self.pipe, sender = context.Pipe(duplex=False)
        sys.stdout.flush()
        sys.stderr.flush()
        self._process = context.Process(target=_answer, args=(work, sender, goes_on), daemon=daemon)
        # A signal that comes before the child knows what to do about it waits until it does.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
        try:
            self._process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        sender.close()

    def join(self) -> None:
        """Wait until it has ended."""
        self._process.join()

    def answer(self) -> Any:
        """What its work returned. Raises NothingToRun where the child did, ChildFailed for every other end."""
        try:
            kind, payload = self.pipe.recv()
        except EOFError:
            self._process.join()
            kind, payload = "failed", _end_of(self._process.exitcode)
        except KeyboardInterrupt:
            self.interrupt()
            raise
        if self._goes_on and kind == "done":
            return payload
        self.pipe.close()
        self._process.join()
        if kind != "done":
            raise (NothingToRun if kind == "nothing" else ChildFailed)(payload)
        return payload

    def interrupt(self) -> None:
        """End it as Ctrl-C does, if it has not had the same signal already, and wait while it puts its workers away."""
        if self._process.is_alive():
            os.kill(self._process.pid, signal.SIGINT)
        self._process.join(60)


def _answer(work: Work, sender: Connection, goes_on: bool) -> None:
    """Send the answer of `work`, or each that it yields where it `goes_on`, and after it how it ended, if not well."""
    def interrupted(*_: object) -> None:
        for each in _ENDING:  # once is enough: what follows puts things away
            signal.signal(each, signal.SIG_IGN)
        raise KeyboardInterrupt

    for each in _ENDING:
        signal.signal(each, interrupted)
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)
        for answer in work() if goes_on else [work()]:
            sender.send(("done", answer))
    except NothingToRun as error:
        sender.send(("nothing", str(error)))
    except HarnessError as error:
        sender.send(("failed", str(error)))
    except KeyboardInterrupt:
        return
    except BaseException as error:  # a reference runs in here, and may raise anything, SystemExit too
        sender.send(("failed", f"{type(error).__name__}: {' '.join(str(error).split())[:500]}"))


def _end_of(code: int | None) -> str:
    if code is not None and code < 0:
        return f"its process ended by {signal.Signals(-code).name}; what it had measured is in the results"
    return f"its process ended with code {code} and no result"
