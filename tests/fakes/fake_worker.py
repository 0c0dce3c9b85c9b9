"""Workers that follow a script instead of being processes, and the builds and starters that lead to them.

A `FakeWorker` stands for the child behind a session. It runs the candidate's own file, so that outputs are what they are,
and takes the times that its `Script` says, by the clock of a `FakeBackend`. A `FakeWorkshop` makes entries of files
without a compiler and notes in its `log` which workers are started, when, and what becomes of them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from fake_device import FakeBackend, FakeClock

from harness.build.product import Build
from harness.device.backend import CacheFlushed, LaunchReached
from harness.judge.device_run import DeviceRun
from harness.judge.judgement import Prepared
from harness.model.baselines import BASELINES, Baseline, write_baseline
from harness.model.candidate import Candidate, read_candidate
from harness.model.formulas import Formula
from harness.model.problem import AccuracyRule, Problem
from harness.model.settings import Settings
from harness.model.verdict import Verdict
from harness.protocol import passes, tree
from harness.protocol.call_form import called
from harness.protocol.digest import digest_of_tensor
from harness.protocol.frames import ChannelClosed, FrameTimeout
from harness.protocol.layout import TensorSpec, dtype_name
from harness.protocol.recorder import COPY, FILL
from harness.report.progress import NullProgress
from harness.results.record import Record
from harness.sandbox.sandbox_choice import Sandbox
from harness.worker import outputs
from harness.worker.model import describe

LIBRARY_KERNELS = (("ampere_sgemm_128x64_nn", 0.9), ("void cutlass::Kernel2<tile>", 0.1))
HARNESS_STEPS = ("await_word", "apply_mask", "write_over", "add_up")


@dataclass(frozen=True)
class Script:
    """What one worker does. Times are in µs.

    `time_us` is what its clock says of a call, or a function of the call's number; `beyond_us` how much longer it works
    besides, outside its timed window; `steps_us` what the judge's own steps around a call take, `tail_us` what passes
    after the last one. `gains_early_us` is by how much a call is faster whose inputs lay readable for a while.
    `synchronises` has each call wait for the device, so that no queue is ever full. `kernels` are what is recorded of a call,
    each with its share of `kernels_us` (None: of the time of a call). `in_worker_us` is what eager takes in its process
    (None: as in the judge's) and `inside` what becomes of it there ("queued", "late" or "raises"), `slows_eager` what it makes of the judge's own. `raises` is what a RuntimeError in forward says. `unbuilt` are calls of `load_inline` that it
    asks for as it is loaded; `loads` is called then, and may raise whatever it likes.
    """

    time_us: float | Callable[[int], float] = 1000.0
    beyond_us: float = 0.0
    steps_us: float = 220.0
    tail_us: float = 20.0
    gains_early_us: float = 0.0
    synchronises: bool = False
    kernels: Sequence[tuple[str, float]] = LIBRARY_KERNELS
    kernels_us: float | None = None
    in_worker_us: float | None = None
    inside: str = "queued"
    slows_eager: float = 1.0
    raises: str | None = None
    flush_fault: str | None = None
    unbuilt: Sequence[Mapping[str, Any]] = ()
    loads: Callable[[], None] = lambda: None


class FakeChannel:
    """Frames to and from a worker that answers at once or never."""

    def __init__(self, worker: FakeWorker) -> None:
        self.worker = worker

    def send(self, frame: dict[str, Any], timeout_s: float | None = None) -> None:
        self._require_life()
        self.worker.take(frame)

    def receive(self, timeout_s: float | None = None) -> dict[str, Any]:
        self._require_life()
        frame = self.worker.event()
        if frame is None:
            self.worker.backend.clock.sleep(timeout_s or 0.0)
            raise FrameTimeout("nothing came")
        return frame

    def _require_life(self) -> None:
        if not self.worker.is_alive:
            raise ChannelClosed("it is gone")


class FakeWorker:
    """What a session takes for a child process: it has greeted, and does what `script` says until it is killed."""

    pid, has_greeted, ran_out_of_memory = 0, True, False

    def __init__(self, backend: FakeBackend, script: Script, tell: Callable[[str], None] = lambda what: None) -> None:
        self.backend, self.script, self._tell = backend, script, tell
        self.channel, self.is_alive = FakeChannel(self), True
        self._events: deque[dict[str, Any]] = deque()
        self._queue: Iterator[LaunchReached | CacheFlushed | dict[str, Any] | None] = iter(())
        self._calls = 0

    def take(self, command: dict[str, Any]) -> None:
        """Begin to do what the judge asks for."""
        op = command["op"]
        if op in ("launch", "profile"):
            if op == "profile":
                self._tell("is profiled")
            self._queue = self._launches(command)
            return
        answers = {
            "prepare": lambda: {"prepared": "scripted", "timer": "scripted"}, "open": lambda: {"opened": True},
            "release_memory": lambda: {"released": True}, "compilations": lambda: {"compilations": 0},
            "state": lambda: self._state(command), "layout": lambda: self._lay_out(command), "load": lambda: self._load(command),
            "reference": lambda: {"raised": {"type": "ImportError"}} if self.script.inside == "raises" else {"loaded": True},
        }
        self._events.append(answers[op]())

    def event(self) -> LaunchReached | CacheFlushed | dict[str, Any] | None:
        """What it says or reaches next; None while it waits for the judge."""
        return self._events.popleft() if self._events else next(self._queue, None)

    def _load(self, command: dict[str, Any]) -> dict[str, Any]:
        self.script.loads()
        if self.script.unbuilt and not command["may_ask"]:
            return {"raised": {"type": "NotBuilt", "message": "load_inline() asks for what its build had not made"}}
        self.backend.log.append(f"seed {command['seed']}")
        module: dict[str, Any] = {"__name__": "candidate"}
        source = Path(command["path"]).read_text(encoding="utf-8")
        init_region = command["init_region"] and self.backend.arena.map(**command["init_region"])
        tensors = [TensorSpec.from_json(body).view(init_region).clone() for body in command["init_specs"]]
        try:
            exec(compile(source, command["path"], "exec"), module)
            torch.manual_seed(command["seed"])
            self._model = called(module["ModelNew"], tree.rebuild(command["init"], tensors), command["init_by_name"])
            self._called = passes.as_called(
                self._model, command["mode"], list(command["state_specs"]), by_name=command["by_name"]
            )
        except Exception as error:
            return {"raised": describe(error)}
        self._load_command = command
        asked = {"unbuilt": [dict(call) for call in self.script.unbuilt]} if self.script.unbuilt else {}
        digests = {name: digest_of_tensor(tensor) for name, tensor in self._model.state_dict().items()}
        return {"loaded": True, **self._forms(), "digests": digests, **asked}

    def _forms(self) -> dict[str, Any]:
        state = self._model.state_dict()
        forms = {name: [dtype_name(tensor.dtype), list(tensor.shape)] for name, tensor in state.items()}
        wanted = {name: TensorSpec.from_json(body) for name, body in self._load_command["state_specs"].items()}
        return {"state": forms, "alike": forms == {name: [spec.dtype, list(spec.shape)] for name, spec in wanted.items()}}

    def _state(self, command: dict[str, Any]) -> dict[str, Any]:
        reply = self._forms()
        if reply["alike"]:
            region = self.backend.arena.map(**command["state_region"])
            for name, body in self._load_command["state_specs"].items():
                TensorSpec.from_json(body).view(region).copy_(self._model.state_dict()[name])
        return reply

    def _lay_out(self, command: dict[str, Any]) -> dict[str, Any]:
        self._inputs, self._outputs = (
            [TensorSpec.from_json(body) for body in command[name]] for name in ("inputs", "outputs")
        )
        self._shape, self._strides = command["shape"], command["strides"]
        return {"laid_out": True}

    def _launches(self, command: dict[str, Any]) -> Iterator[LaunchReached | CacheFlushed | dict[str, Any] | None]:
        """Reach each launch, make its cache cold, run it in its window, and report in the end."""
        backend, clock, script, first = self.backend, self.backend.clock, self.script, command["first"]
        count, reports, time_us = len(command["inputs"]), [], 0.0
        is_eager = command.get("model") == "reference"
        is_late = script.inside == "late" if is_eager else script.synchronises
        is_queued = backend.limits.gates_queues and not is_late
        yield LaunchReached(first)
        if is_queued:
            yield {"queued": count}
        for index, skeleton in enumerate(command["inputs"]):
            while backend.released < first + index:
                yield None
            clock.pass_us(script.steps_us)
            for step in HARNESS_STEPS:
                backend.ran(step)
            cold_ns = clock.perf_counter_ns()
            yield CacheFlushed(first + index)
            while backend.window < first + index:
                yield None
            time_us = self._time_us(is_eager) - script.gains_early_us * (clock.perf_counter_ns() > cold_ns)
            self._run_kernels(time_us)
            clock.pass_us(time_us + (0.0 if is_eager else script.beyond_us))
            reports.append({"host_us": 5.0, "time_us": time_us} | ({} if is_eager else self._forward(index, skeleton)))
            yield LaunchReached(first + index + 1)
        if not is_queued:
            yield {"queued": count}
        clock.pass_us(script.tail_us)
        yield self._listing(time_us) if command["op"] == "profile" else {
            "launched": reports, "end_to_end_us": time_us + 12.0
        }

    def _run_kernels(self, time_us: float) -> None:
        """Record the kernels of a call, between the markers of its window."""
        busy_us = time_us if self.script.kernels_us is None else self.script.kernels_us
        self.backend.ran(self.backend.markers.opens)
        at_us = 0.0
        for name, share in self.script.kernels:
            self.backend.ran(name, share * busy_us, -at_us)
            at_us += share * busy_us
        ended_us = max(time_us, busy_us)
        self.backend.ran(self.backend.markers.closes, 0.0, -ended_us)
        for name, kind in (("Memcpy", COPY), ("Memset", FILL)):  # its outputs are copied and written over
            self.backend.ran(name, 0.0, -ended_us, kind, self.backend.outboxes[0].numel())

    def _time_us(self, is_eager: bool) -> float:
        if is_eager:
            return self.backend.eager_us if self.script.in_worker_us is None else self.script.in_worker_us
        self._calls += 1
        return self.script.time_us(self._calls) if callable(self.script.time_us) else self.script.time_us

    def _forward(self, index: int, skeleton: Any) -> dict[str, Any]:
        """Call the model on the inputs that are in the slot now, and hand its outputs over."""
        if self.script.raises is not None:
            return {"raised": {"type": "RuntimeError", "message": self.script.raises}}
        slot, outbox = self.backend.slots[index], self.backend.outboxes[index]
        try:
            with torch.no_grad():
                result = self._called(*tree.rebuild(skeleton, [spec.view(slot) for spec in self._inputs]))
        except Exception as error:
            return {"raised": describe(error)}
        within = range(slot.data_ptr(), slot.data_ptr() + slot.numel())
        fault = outputs.fault_of(result, self._shape, self._outputs, self._strides, self.backend.torch_device, within)
        if fault is not None:
            return {"fault": fault}
        return {"values": outputs.take(result, [spec.view(outbox) for spec in self._outputs], None)}

    def _listing(self, time_us: float) -> dict[str, Any]:
        busy_us = time_us if self.script.kernels_us is None else self.script.kernels_us
        return {"profiled": {
            "total_us": busy_us, "own_us": 0.0, "operators": [{"name": "aten::mm", "us": busy_us}], "called_back": False,
            "addresses": [], "others_us": 0.0, "others_began": False, "idle_us": 1.0,
        }}

    def wait(self, timeout_s: float | None = None) -> int:
        return 0

    def death(self) -> str:
        return "exited with status 0"

    def output(self) -> str:
        return ""

    def kill(self, meanwhile: Callable[[], None] | None = None) -> None:
        if not self.is_alive:
            return
        self.is_alive = False
        if meanwhile is not None:
            self._tell("goes")
            meanwhile()
        self._tell("ends")


class FakeStarter:
    """Starts the workers of one entry; each follows the next of its scripts, the last of them again and again."""

    def __init__(self, build_pool: FakeWorkshop, name: str) -> None:
        self._build_pool, self._name = build_pool, name
        self._is_started = self.is_opening = False

    def prestart(self, *, open_device: bool = False) -> None:
        if not self._is_started or (open_device and not self.is_opening):
            self._build_pool.log.append(f"{self._name} {'opens the device' if open_device else 'is started'} ahead")
        self._is_started, self.is_opening = True, self.is_opening or open_device

    def wait_until_open(self) -> int | None:
        if self.is_opening:
            self._build_pool.log.append(f"{self._name} has opened the device")
        return 0 if self.is_opening else None

    def start(self) -> FakeWorker:
        self._is_started = self.is_opening = False
        log, name = self._build_pool.log, self._name
        log.append(f"{name} begins")
        return FakeWorker(
            self._build_pool.backend, self._build_pool.next_script(name), lambda what: log.append(f"{name} {what}")
        )

    def close(self) -> None:
        if self._is_started:
            self._build_pool.log.append(f"{self._name} is given up")
        self._is_started = self.is_opening = False


class FakeWorkshop:
    """Builds nothing. `scripts` are those of each entry's workers by name; `building` the names of candidates that
    are not built yet, `builds` what comes of others than usual, `asked` what comes of extensions that one asks for.

    It `is_quiet` as it is told to be, and again once its builds were paused.
    """

    sandbox = Sandbox("scripted")

    def __init__(self, problem: Problem, backend: FakeBackend, folder: Path, scripts: Mapping[str, Script | Sequence[Script]]) -> None:
        self._problem, self.backend, self._folder = problem, backend, folder
        self.scripts = {name: [each] if isinstance(each, Script) else list(each) for name, each in scripts.items()}
        self.building: set[str] = set()
        self.builds: dict[str, Build] = {}
        self.asked: list[Verdict | None] = []
        self.is_quiet, self.is_paused, self.log = True, False, []

    def next_script(self, name: str) -> Script:
        coming = self.scripts.setdefault(name, [Script()])
        return coming.pop(0) if len(coming) > 1 else coming[0]

    def is_ready(self, entry: Baseline | Candidate) -> bool:
        return isinstance(entry, Baseline) or (entry.fault is None and entry.name not in self.building)

    def is_settled(self, candidate: Candidate) -> bool:
        return candidate.fault is not None or (
            self.is_ready(candidate) and self.build_of(candidate).verdict is not None
        )

    def wait_for_one(self, candidates: Sequence[Candidate], timeout_s: float | None = None) -> None:
        self.building.discard(candidates[0].name)

    def pause(self) -> None:
        self.log.append("builds pause")
        self.is_quiet = self.is_paused = True

    def go_on(self) -> None:
        if self.is_paused:
            self.log.append("builds go on")
        self.is_paused = False

    def build_of(self, candidate: Candidate) -> Build:
        return self.builds.get(candidate.name, Build(None))

    def build_asked(self, candidate: Candidate, calls: Sequence[Mapping[str, Any]]) -> Verdict | None:
        self.log.append(f"{candidate.name} asked for {', '.join(call['arguments']['name'] for call in calls)}")
        return self.asked.pop(0) if self.asked else None

    def prepared(self, entry: Baseline | Candidate) -> tuple[Prepared, FakeStarter]:
        problem, is_baseline = self._problem, isinstance(entry, Baseline)
        # All that is in the judge's process stays strict: a baseline's own settings are the worker's.
        path = write_baseline(
            replace(entry, ending=BASELINES["eager"].ending), problem, problem.timed_sizes(self.backend.kind), self._folder
        ) if is_baseline else entry.path
        made = Prepared(
            entry.name, str(path), {}, (), None, problem.accuracy.precision_class,
            "torch" if is_baseline else entry.language, is_baseline=is_baseline,
        )
        return made, FakeStarter(self, entry.name)


class Rows:
    """Where a device run's records go; `rows` has them by name, `all` in order."""

    def __init__(self) -> None:
        self.all: list[Record] = []
        self.samples: list[Mapping[str, Any]] = []

    def append(self, record: Record, samples: Mapping[str, Any]) -> None:
        self.all.append(record)
        self.samples.append(samples)

    @property
    def names(self) -> list[str]:
        return [record.candidate for record in self.all]

    def __getitem__(self, name: str) -> Record:
        """The last row of that name."""
        return next(record for record in reversed(self.all) if record.candidate == name)


PRODUCT = """
import torch
M = 16


class Model(torch.nn.Module):
    def forward(self, A, B):
        return torch.matmul(A, B)


def get_inputs():
    return [torch.rand(M, M), torch.rand(M, M)]


def get_init_inputs():
    return []
"""


def problem_in(folder: Path, source: str = PRODUCT, **fields: Any) -> Problem:
    """A problem whose reference is `source`; written to a file, never validated."""
    path = folder / "reference_under_test.py"
    path.write_text(source, encoding="utf-8")
    plain = Problem(
        name="small", title="small", path=path, reference_path=path, reference_source=source, sizes={"M": 16},
        cpu_sizes={"M": 16}, check_sizes=(), dtype="float32", flops=None, bytes=None,
        accuracy=AccuracyRule(scale="abs_inputs", terms=Formula("M"), contracted=(1, 0)), baselines=("eager",),
        kinds=("custom",), candidates_dir=folder, hash="0" * 16,
    )
    return replace(plain, **fields)


SETTINGS = Settings(
    name="test", half_width=0.005, budget_s=30, players=1, warmup_s=0.0, check_launches=1, looks=(5, 10, 20),
    load_timeout_s=1.0, launch_timeout_s=1.0, eager_players=0, segment_ms=0.1,
)


class FakeRun:
    """A device run over a fake device: `run.device_run`, its `build_pool`, `backend` and `clock`, the `rows` that it
    wrote, and the `log` of what workers, builds and the device did. `held_before` are the bytes that were seen in use on the
    device before it began.
    """

    def __init__(
        self, folder: Path, *, kind: str = "cuda", scripts: Mapping[str, Script | Sequence[Script]] | None = None,
        source: str = PRODUCT, settings: Settings = SETTINGS, eager_us: float = 1000.0, clock: FakeClock,
        held_before: int | None = None, **fields: Any,
    ) -> None:
        self.clock, self.rows, self._folder, self._source = clock, Rows(), folder, source
        self.problem = problem_in(folder, source, **fields)
        self.backend = FakeBackend(clock, kind, eager_us=eager_us)
        self.backend.peak = held_before
        eager = {"eager": Script(eager_us)}
        self.build_pool = FakeWorkshop(self.problem, self.backend, folder, eager | dict(scripts or {}))
        self.device_run = DeviceRun(
            self.problem, settings, self.backend, self.build_pool, self.rows, NullProgress(), "2026-05-01T00:00:00Z"
        )
        self.log = self.backend.log = self.build_pool.log
        self.log.clear()  # of the control, which is started before anything is drawn

    def candidate(self, name: str, source: str | None = None) -> Candidate:
        """A file beside the reference; what it is said to hold is the reference's own model."""
        path, text = self._folder / f"{name}.py", source or f"{self._source}\nModelNew = Model\n"
        path.write_text(text, encoding="utf-8")
        return read_candidate(path)

    @property
    def started(self) -> list[str]:
        """The workers that were started for their turn, by name, in order."""
        return [each.removesuffix(" begins") for each in self.log if each.endswith(" begins")]
