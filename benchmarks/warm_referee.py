"""A process that stays on one device and judges problem after problem, for the benchmarks that sweep over many.

It is told tasks through a pipe and sends each verdict back as a line the moment it is there. What only a new process can
mend (an error that is none of the harness's own, a device that does not answer) ends it; its parent starts another.
"""

from __future__ import annotations

import gc
import shutil
import signal
import tempfile
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Protocol

from judged_lines import LONGEST_REASON

from harness.model.errors import HarnessError
from harness.report.progress import Progress
from harness.sandbox.prestart import prestart, uncollected

_SHOWN = (
    "status", "reason_code", "kind", "speedup", "call", "truth", "err_max_u", "err_rms_u", "eager_err_max_u",
    "memory_step", "peak_bytes", "problem_note", "time_us", "device_name", "torch", "harness_version", "harness_hash",
)


class Task(Protocol):
    """A problem with some candidates; `key` is what its lines call it."""

    key: str
    path: Path
    candidates: tuple[str, ...]

    def prepared(self, folder: Path, is_cpu: bool) -> tuple[Path, dict[str, Path]]:
        """The files of the problem and of each candidate; what is written goes below `folder`."""
        ...


def is_shrunk(task: Task) -> bool:
    """Whether the sizes of a problem are made small before it is judged."""
    return bool(getattr(task, "is_shrunk", False))


@dataclass(frozen=True)
class Setup:
    """How all tasks are judged: the settings by name or path, and the memory that may be used, if that is capped."""

    config: str = "quick"
    memory_gb: float | None = None


class _StageSeconds:
    """How long each stage has taken since it was asked last; what comes before the first stage is `preparing`."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}
        self._name, self._since = "preparing", time.monotonic()

    def enter(self, name: str) -> None:
        now = time.monotonic()
        self._seconds[self._name] = self._seconds.get(self._name, 0.0) + now - self._since
        self._name, self._since = name, now

    def taken(self) -> dict[str, float]:
        """Seconds by stage, of which none is under way afterwards."""
        self.enter("between")
        seconds, self._seconds = self._seconds, {}
        return {name: round(s, 3) for name, s in seconds.items()}


class _Told(Progress):
    """Progress that the parent is told of."""

    def __init__(self, pipe: Connection, stages: _StageSeconds) -> None:
        super().__init__(stream=None)
        self._pipe, self._stages = pipe, stages

    def status(self, candidate: str, text: str) -> None:
        self._stages.enter(text.split(":")[0])  # what comes after is a figure, or a reason
        self._pipe.send(("stage", candidate, text))

    def note(self, text: str) -> None:
        self._pipe.send(("note", text))

    def done(self, record: Any, device: str | None = None) -> None:
        """The line says it all."""


class _Lines:
    """Stands where a run has its files: each record becomes a line and goes to the parent."""

    def __init__(self, pipe: Connection, task: Task, setup: Setup, device_name: str) -> None:
        self._pipe, self._setup, self._task, self._device_name = pipe, setup, task, device_name
        self._since = time.monotonic()
        self.stages = _StageSeconds()
        self.judged: set[str] = set()

    def append(self, record: Any, samples: Mapping[str, Any] | None = None) -> None:
        found = record.to_json()
        line = {name: found.get(name) for name in _SHOWN}
        line["reason"] = _cut(found.get("reason"))
        line["warnings"] = _cut(found.get("warnings"))
        self.send(record.candidate, {**line, **_worst(samples or {}), "reserved_peak_bytes": _reserved_peak_bytes()})

    def send(self, candidate: str, found: Mapping[str, Any]) -> None:
        now = time.monotonic()
        self.judged.add(candidate)
        self._pipe.send(("line", {
            "problem": self._task.key, "name": self._task.path.stem, "candidate": candidate,
            "utc": datetime.now(timezone.utc).isoformat(timespec="milliseconds"), "config": self._setup.config,
            "memory_gb": self._setup.memory_gb, "is_shrunk": is_shrunk(self._task),
            "seconds": round(now - self._since, 3), "stages_s": self.stages.taken(), **found,
        }))
        self._since = now

    def fail(self, status: str, reason: str) -> None:
        """A line with this for every candidate that has none."""
        for name in self._task.candidates:
            if name not in self.judged:
                self.send(name, {
                    "status": status, "reason_code": "", "reason": _cut(reason), "device_name": self._device_name,
                })


def judge_tasks(pipe: Connection, device: str, setup: Setup) -> None:
    """Judge what the parent sends until it sends None or is gone; the main function of the process."""
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, _interrupted)
    try:
        try:
            _judge_each(pipe, device, setup)
        except HarnessError as error:
            pipe.send(("failed", str(error)))
    except (EOFError, BrokenPipeError, ConnectionResetError, KeyboardInterrupt):
        pass  # the parent has ended, or wants this process to
    finally:
        for each in (signal.SIGINT, signal.SIGTERM):  # it ends anyhow
            signal.signal(each, signal.SIG_IGN)


def _judge_each(pipe: Connection, device: str, setup: Setup) -> None:
    """Open the device and judge task after task on it, until there is none or a new process is needed."""
    prestart()
    with uncollected():
        import harness.judge.device_run  # noqa: F401  all that is imported anyway
        from harness.device.choice import open_backend

    backend = open_backend(device)
    settings = settings_of(setup)
    pipe.send(("open", backend.identity.name, backend.identity.uuid))
    is_fit = True
    while is_fit and (task := pipe.recv()) is not None:
        is_fit = _judge(task, backend, settings, setup, pipe)
        pipe.send(("done", is_fit))


def _interrupted(*_: object) -> None:
    for each in (signal.SIGINT, signal.SIGTERM):  # once is enough: what follows puts things away
        signal.signal(each, signal.SIG_IGN)
    raise KeyboardInterrupt


def settings_of(setup: Setup) -> Any:
    """The settings that `setup` names, with its cap. Raises HarnessError where there is no such thing."""
    from harness.model.settings import load_settings

    settings = load_settings(setup.config)
    if setup.memory_gb is None:
        return settings
    try:
        return replace(settings, memory_gb=setup.memory_gb)
    except TypeError:
        raise HarnessError("this state of the harness cannot cap the memory; leave --memory-gb out") from None


def _judge(task: Task, backend: Any, settings: Any, setup: Setup, pipe: Connection) -> bool:
    """Judge all candidates of a task; returns whether this process is fit for another."""
    lines = _Lines(pipe, task, setup, backend.identity.name)
    folder = Path(tempfile.mkdtemp(prefix="kernel-referee-sweep-"))
    before = _defaults()
    try:
        _judge_in(folder, task, backend, settings, lines, pipe)
    except HarnessError as error:
        lines.fail("refused", str(error).replace(f"{folder}/", "").replace(f"{task.path.parent}/", ""))
    except Exception as error:  # a defect of the harness, or what a reference raised: one problem pays
        last = traceback.extract_tb(error.__traceback__)[-1]
        said = f"{type(error).__name__}: {' '.join(str(error).split())} ({Path(last.filename).name}:{last.lineno})"
        lines.fail("harness_error", said)
        return False
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    lines.fail("no_record", "the harness gave no record of it")
    gc.collect()
    backend.release_memory()
    return backend.unhealthy() is None and _defaults() == before


def _defaults() -> tuple[Any, ...]:
    """What a reference could change for those that come after it."""
    import torch

    return torch.get_default_dtype(), torch.get_default_device(), torch.get_num_threads(), torch.is_grad_enabled()


def _judge_in(folder: Path, task: Task, backend: Any, settings: Any, lines: _Lines, pipe: Connection) -> None:
    """The story of `pipeline.run` on a device that stays open, with eager as the only baseline."""
    from harness.device.lock import DeviceLock
    from harness.judge.build_pool import BuildPool
    from harness.judge.device_run import DeviceRun
    from harness.model.candidate import read_candidate
    from harness.model.problem import load_problem

    problem_path, paths = task.prepared(folder, backend.kind == "cpu")
    problem = replace(load_problem(problem_path), baselines=("eager",))
    candidates, progress = [read_candidate(path) for path in paths.values()], _Told(pipe, lines.stages)
    with BuildPool(problem, candidates, backend, settings) as build_pool:
        if backend.kind == "cpu":
            build_pool.wait_for_builds(lambda text: None)  # compilers would take the very cores that are timed
        with DeviceLock.on(backend, progress).held(lambda: build_pool.is_quiet):
            utc = datetime.now(timezone.utc).isoformat(timespec="seconds")
            DeviceRun(problem, settings, backend, build_pool, lines, progress, utc).run(candidates)


def _worst(samples: Mapping[str, Any]) -> dict[str, Any]:
    """Of all checks the one that came nearest to its bounds, or went farthest beyond: what was found and allowed."""
    def share(check: Mapping[str, Any]) -> float:
        pairs = ((check["max_u"], check["allowed_max_u"]), (check["rms_u"], check["allowed_rms_u"]))
        return max((found / allowed for found, allowed in pairs if found is not None and allowed), default=0.0)

    checks = samples.get("errors") or []
    if not checks:
        return {"checks": 0}
    worst = max(checks, key=share)
    names = ("family", "max_u", "allowed_max_u", "rms_u", "allowed_rms_u", "eager_max_u")
    return {"checks": len(checks), "worst": {name: worst.get(name) for name in names}}


def _reserved_peak_bytes() -> int | None:
    """The most that PyTorch's allocator held in this process since it was asked last."""
    import torch

    if not torch.cuda.is_initialized():
        return None
    peak = torch.cuda.max_memory_reserved()
    torch.cuda.reset_peak_memory_stats()
    return peak


def _cut(text: str | None) -> str | None:
    if text is None:
        return None
    text = " ".join(text.split())
    return text if len(text) <= LONGEST_REASON else text[: LONGEST_REASON - 2] + " …"
