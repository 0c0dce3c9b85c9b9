"""Hands tasks to a warm judge on each device, keeps their lines, and replaces a judge that ended.

The parent of `warm_referee`: it judges nothing and imports no PyTorch of its own accord, so that it is there whatever
happens below it. It also samples the memory that is in use on each device, which is that of all processes together.
"""

from __future__ import annotations

import multiprocessing
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

from judged_lines import LineFile
from warm_referee import Setup, Task, is_shrunk, judge_tasks, settings_of

from harness.model.candidate import Candidate, read_candidate
from harness.model.errors import HarnessError
from harness.model.problem import Problem, load_problem
from harness.runs.suite.early_builds import building_ahead

_SAMPLE_S = 0.05
_PATIENCE_S = 15.0
_MOST_STARTS_IN_VAIN = 2


class MemoryInUse:
    """Bytes in use on a device by all processes: what NVML says of a GPU, or the host's memory that is not available."""

    def __init__(self, uuid: str | None) -> None:
        self._nvml: Any = None
        if uuid is not None:
            try:
                import pynvml

                pynvml.nvmlInit()
                self._nvml, self._handle = pynvml, pynvml.nvmlDeviceGetHandleByUUID(uuid)
            except Exception:  # without NVML nothing is known of it
                self._nvml = None
        self._is_cpu = uuid is None

    def now(self) -> int | None:
        if self._is_cpu:
            return _host_bytes_in_use()
        if self._nvml is None:
            return None
        try:
            return int(self._nvml.nvmlDeviceGetMemoryInfo(self._handle).used)
        except Exception:
            return None


def _host_bytes_in_use() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    kilobytes = {name: int(rest.split()[0]) for name, _, rest in (line.partition(":") for line in lines)}
    return 1024 * (kilobytes["MemTotal"] - kilobytes["MemAvailable"])


class _Judge:
    """The process on one device, what it has in hand, and the most memory in use since its last line."""

    def __init__(self, device: str, setup: Setup) -> None:
        self.device, self._setup = device, setup
        self.starts_in_vain = 0
        self.start()

    def start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, far = context.Pipe()
        self._process = context.Process(target=judge_tasks, args=(far, self.device, self._setup))
        self._process.start()
        far.close()
        self.is_open, self.task, self.began, self.stage = False, None, time.monotonic(), ""
        self.left: list[str] = []
        self._memory: MemoryInUse | None = None
        self.peak_bytes: int | None = None
        self.starts_in_vain += 1

    def opened(self, uuid: str | None) -> None:
        self.is_open, self._memory, self.starts_in_vain = True, MemoryInUse(uuid), 0

    def give(self, task: Task) -> None:
        self.task, self.left, self.stage = task, list(task.candidates), ""
        self.began, self.peak_bytes = time.monotonic(), None
        self.pipe.send(task)

    def sample(self) -> None:
        used = self._memory.now() if self._memory else None
        if used is not None:
            self.peak_bytes = max(used, self.peak_bytes or 0)

    def interrupt(self) -> None:
        """Tell it to put its workers away and end."""
        if self._process.is_alive():
            self._process.terminate()

    def end(self) -> str:
        """The same, and wait for it; a few words on how it ended."""
        self.interrupt()
        self._process.join(_PATIENCE_S)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        self.pipe.close()
        code = self._process.exitcode
        return f"ended by signal {-code}" if code is not None and code < 0 else f"ended with code {code}"


@contextmanager
def built_ahead(tasks: Sequence[Task], device: str, setup: Setup) -> Iterator[None]:
    """Have the candidates of `tasks` built meanwhile, in this order, as `run.py suite` does: each judge finds its own in the
    cache. What is to be shrunk first is not built ahead.
    """
    with tempfile.TemporaryDirectory(prefix="kernel-referee-ahead-") as folder:
        wanted = [_read(task, Path(folder) / str(number)) for number, task in enumerate(tasks) if not is_shrunk(task)]
        with building_ahead([each for each in wanted if each is not None], device, settings_of(setup)):
            yield


def _read(task: Task, folder: Path) -> tuple[Problem, list[Candidate]] | None:
    folder.mkdir()
    with suppress(HarnessError):  # which its judge says of it
        path, candidates = task.prepared(folder, False)
        return load_problem(path), [read_candidate(each) for each in candidates.values()]
    return None


class Sweep:
    """Has `tasks` judged on `devices` until they, or the time, are over. `tell` gets a sentence for each thing of note.

    A task that takes longer than `each_s` is given up, with a line for what it has not judged; one that is under way at
    the end of `seconds` loses what it has not judged, and has no line of it.
    """

    def __init__(
        self, tasks: Sequence[Task], devices: Sequence[str], setup: Setup, out: LineFile, *, seconds: float, each_s: float,
        tell: Callable[[str], None] = lambda text: print(text, file=sys.stderr, flush=True),
    ) -> None:
        self._tasks, self._setup, self._out, self._tell = deque(tasks), setup, out, tell
        self._until, self._each_s = time.monotonic() + seconds, each_s
        self._total, self._finished = len(tasks), 0
        self._devices = list(devices)
        self._judges: list[_Judge] = []
        self._device_names: dict[str, str] = {}

    def run(self) -> bool:
        """Judge; returns whether all was judged. Raises HarnessError where no device can be opened."""
        try:
            self._judges = [_Judge(device, self._setup) for device in self._devices[: max(1, len(self._tasks))]]
            while self._is_at_work() and time.monotonic() < self._until:
                self._step()
        except KeyboardInterrupt:
            self._tell("interrupted; the same command goes on from here")
        finally:
            for referee in self._judges:
                referee.interrupt()
            for referee in self._judges:
                referee.end()
        return self._finished == self._total

    def _is_at_work(self) -> bool:
        return bool(self._judges) and (bool(self._tasks) or any(each.task for each in self._judges))

    def _step(self) -> None:
        for referee in self._judges:
            if referee.is_open and referee.task is None and self._tasks:
                referee.give(self._tasks.popleft())
        heard = wait([each.pipe for each in self._judges], _SAMPLE_S)
        for referee in list(self._judges):
            referee.sample()
            if referee.pipe in heard:
                self._hear(referee)
            elif referee.task is not None and time.monotonic() - referee.began > self._each_s:
                self._replace(referee, "timed_out", f"it took longer than {self._each_s:.0f} s")

    def _hear(self, referee: _Judge) -> None:
        try:
            kind, *said = referee.pipe.recv()
        except (EOFError, OSError):
            self._replace(referee, "died", "the process that judged it")
            return
        if kind == "line":
            self._keep(referee, said[0])
        elif kind == "open":
            self._device_names[referee.device] = said[0]
            referee.opened(said[1])
        elif kind == "done":
            self._finished, referee.task = self._finished + 1, None
            if not said[0]:
                self._replace(referee, "", "")
        elif kind == "stage":
            referee.stage = f"{said[0]}: {said[1]}"
        elif kind == "note":
            self._tell(f"{referee.device}: {said[0]}")
        elif kind == "failed":
            self._lose(referee, said[0])

    def _keep(self, referee: _Judge, line: dict[str, Any]) -> None:
        if line["candidate"] in referee.left:
            referee.left.remove(line["candidate"])
        line = {**line, "device": referee.device, "device_peak_bytes": referee.peak_bytes}
        referee.peak_bytes = None
        self._out.append(line)
        self._tell(f"[{self._finished + 1}/{self._total}] {line['problem']} {line['candidate']}: {_in_words(line)}")

    def _replace(self, referee: _Judge, status: str, why: str) -> None:
        """Start another process in the place of one that is of no more use; what it had in hand has lines that say so."""
        stage, task, left, began = referee.stage, referee.task, list(referee.left), referee.began
        how = referee.end()
        if task is not None:
            reason = f"{why} {how}" if status == "died" else why
            for name in left:
                self._keep(referee, {
                    "problem": task.key, "name": task.path.stem, "candidate": name, "status": status, "reason_code": "",
                    "reason": f"{reason}, at the stage '{stage}'" if stage else reason, "config": self._setup.config,
                    "memory_gb": self._setup.memory_gb, "is_shrunk": is_shrunk(task),
                    "utc": datetime.now(timezone.utc).isoformat(timespec="milliseconds"),
                    "seconds": round(time.monotonic() - began, 3),
                    "device_name": self._device_names.get(referee.device),
                })
            self._finished += 1
        if referee.starts_in_vain >= _MOST_STARTS_IN_VAIN:
            self._lose(referee, f"it {how} before it had opened its device")
            return
        referee.start()

    def _lose(self, referee: _Judge, why: str) -> None:
        """A device less; what it had in hand goes back."""
        if referee.task is not None:
            self._tasks.appendleft(referee.task)
        self._judges.remove(referee)
        referee.end()
        if not self._judges:
            raise HarnessError(f"{referee.device}: {why}")
        self._tell(f"{referee.device} judges nothing more: {why}")


def _in_words(line: dict[str, Any]) -> str:
    """What became of it, in a few words for the person who waits."""
    figures = line.get("worst") or {}
    found, allowed = figures.get("max_u"), figures.get("allowed_max_u")
    errors = f", {found:.3g} of {allowed:.3g} u" if found is not None and allowed is not None else ""
    reason = f" ({line['reason']})" if line["status"] != "ok" and line.get("reason") else ""
    return f"{line['status']}{errors}, {line['seconds']:.1f} s{reason}"[:240]
