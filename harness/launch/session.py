"""One worker from spawn to kill: the judge's side of every command, with a deadline on each.

A session never blocks for longer than its limits, and turns each way of dying into a verdict. Launches are made by
`launch`, which answers the worker's turns one by one and hands back what was reported with the judge's own clock
readings beside it.
"""

from __future__ import annotations

import ast
import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from harness.device.bench import Bench
from harness.launch import failures
from harness.launch.conversation import EAGER_IN_WORKER, FORWARD, LaunchConversation, Launches, Words
from harness.model.files.reference_source import with_sizes
from harness.model.verdict import ReasonCode, Status
from harness.protocol import tree
from harness.protocol.frames import BadFrame, ChannelClosed, FrameTimeout
from harness.protocol.layout import plan, region_bytes
from harness.protocol.output_placement import any_choice
from harness.reference.element_errors import in_pieces
from harness.reference.evidence import Evidence
from harness.reference.evidence_collector import recipe_of
from harness.reference.inputs.deferred import DeferredInputs
from harness.reference.inputs.sets import InputSet
from harness.reference.reference_model import Reference
from harness.sandbox import processes
from harness.sandbox.spawn import Child

_LONG_SHARE = 0.25
_GPU_FILES = "/dev/nvidia"


class Session:
    """The judge's end of a worker. `load_timeout_s` and `launch_timeout_s` bound every wait, in seconds."""

    def __init__(self, child: Child, bench: Bench, load_timeout_s: float, launch_timeout_s: float) -> None:
        self.child, self.bench = child, bench
        self._load_timeout_s, self.launch_timeout_s = load_timeout_s, launch_timeout_s
        self._sequence = 0
        self._places = any_choice()
        self._prepared = False
        self.timer: str | None = None  # the worker's stopwatch, which is there before anything of a candidate's
        self._worker_pids: set[int] = set()
        self._opened: Reference | None = None
        self._count, self._is_closed = 0, False
        self.reordered = False  # whether an output of what is loaded lay in another order than the reference's
        self._on_gpu: set[int] | None = None
        self.helped = False  # whether a process that the candidate began uses the GPU
        self._may_ask = False
        self.ends_s = math.inf  # when its row's budget ends, by time.monotonic(); no launch begins after that
        self._calls, self._calls_s = 0, 0.0

    def load(
        self, path: str, reference: Reference, manifest: Mapping[str, Any], seed: int, refused: Collection[str] = (), *,
        may_ask: bool = False, stand_in_gpu: Mapping[str, Any] | None = None,
    ) -> str | None:
        """Load the candidate and construct `ModelNew` under `seed`. `refused` are keys of extensions that do not build.
        With a `stand_in_gpu`, the properties of one, Triton's interpreter runs its kernels on the CPU.

        Returns None, or a sentence on how its state differs from the reference's. Raises Failed, and Unbuilt at any later
        command too, where it asks for what is not in `manifest` and it `may_ask`.
        """
        if not self._prepared:
            if not self.child.has_greeted:
                self._ask({}, self._load_timeout_s, "starting its process", send=False)
            reply = self._ask(self.bench.prepare_command(), self._load_timeout_s, "opening the device")
            self._prepared, self.timer = True, reply.get("timer")
            if self.bench.limits.is_host:  # where the time that others have had of a core counts
                self._worker_pids = set(processes.descendants(self.child.pid))
        self._may_ask = may_ask
        state = reference.state
        specs = dict(zip(state, plan(list(state.values()), contiguous=True)))
        command = {
            "op": "load", "path": path, "seed": seed, "manifest": dict(manifest), "refused": sorted(refused),
            "may_ask": may_ask, "stand_in_gpu": stand_in_gpu and dict(stand_in_gpu), "mode": reference.mode, "by_name": reference.by_name,
            "state_specs": {name: spec.to_json() for name, spec in specs.items()},
            **self._init_in_arena(reference),
        }
        state_region = None
        if specs:
            command["state_region"] = self.bench.arena.named("state", region_bytes(list(specs.values())))
            state_region = self.bench.arena.map(**command["state_region"])
        reply = self._ask(command, self._load_timeout_s, "loading")
        self.reordered = False
        self._raise_unbuilt(reply)
        if "raised" in reply:
            raise failures.from_exception(reply["raised"], "while it was loaded")
        return state_difference(reply, state, specs, state_region)

    def state(self, reference: Reference) -> dict[str, torch.Tensor] | None:
        """The parameters and buffers of the candidate as they are now, in host memory; None where they are not named and
        formed as the reference's. Raises Failed.
        """
        reply = self._ask({"op": "state"}, self._load_timeout_s, "handing over its state")
        if reply.get("alike") is not True:
            return None
        specs = plan(list(reference.state.values()), contiguous=True)
        region = self.bench.arena.map(**self.bench.arena.named("state", region_bytes(specs)))
        return {name: spec.view(region).clone() for name, spec in zip(reference.state, specs)}

    def open(self, reference: Reference, count: int) -> None:
        """Share regions for `count` launches of these sizes, and lay inputs and outputs out in them."""
        memory = reference.memory
        count = max(count, memory.launches) if memory.tight else count  # growing would hold both for a while
        self._opened, self._count, self._is_closed = reference, count, False
        input_bytes, output_bytes = region_bytes(reference.specs), region_bytes(reference.output_specs)
        regions = self.bench.open(count, input_bytes, output_bytes, tight=memory.tight)
        self._ask(regions, self._load_timeout_s, "opening its memory")
        self._ask(
            {
                "op": "layout", "inputs": [spec.to_json() for spec in reference.specs],
                "outputs": [spec.to_json() for spec in reference.output_specs], "shape": reference.shape,
                "strides": reference.output_strides, "filled_bytes": input_bytes, "tight": memory.tight,
            },
            self._load_timeout_s, "opening its memory",
        )

    def make_room(self) -> None:
        """Have the worker and the device give back what they keep for launches; it is there again when `reopen` is called.
        """
        self._ask({"op": "release_memory"}, self.launch_timeout_s, "giving memory back")
        if not self._is_closed:
            self._ask(self.bench.close_regions(), self._load_timeout_s, "closing its memory")
            self.bench.free_regions()
            self._is_closed = True
        self.bench.release_memory()

    def reopen(self) -> None:
        """Have regions for launches again, if they were given back."""
        if self._is_closed:
            self.bench.release_memory()
            self.open(self._opened, self._count)

    def launch(
        self, sets: Sequence[InputSet], *, gate: bool, timeout_s: float | None = None, early_s: float = 0.0,
        inspect: bool = False, deferred_inputs: DeferredInputs | None = None, meanwhile: Callable[[], None] | None = None,
        synchronised: bool = False, record: bool = False,
    ) -> Launches:
        """Make one launch per set. With `gate`, none runs before all are queued. Raises Failed.

        `timeout_s` replaces the usual limit, for a first call that may compile. `early_s` leaves the inputs of each
        launch readable for so long before its timed window opens; `inspect` has the flush of some looked at, and
        whether their outputs are written to afterwards. The inputs of the launch that `deferred_inputs` is for are
        complete only when its window opens. `meanwhile` is called before anything of a gated queue runs, while the
        worker makes it, and beforehand where it is not gated. `synchronised` has the harness wait for the device within
        each call, which only the control is told. `record` has a GPU's kernels recorded, of which the worker is told
        nothing.
        """
        began_s = time.monotonic()
        if began_s > self.ends_s:
            raise failures.row_timeout(self._calls, self._calls_s)
        self.reopen()
        command = {**self._launch_command(sets), "synchronised": synchronised}
        run = self._run(len(sets), gate, timeout_s, early_s, inspect)
        prepare = self._prepare(sets, deferred_inputs, meanwhile, gate=gate)
        try:
            if record:
                self.bench.begin_recording()
            reply = run.conduct(command, prepare)
            recording = self.bench.end_recording() if record else None
            if record:
                self.note_helpers()
            self._calls, self._calls_s = self._calls + len(sets), self._calls_s + time.monotonic() - began_s
            self._take_outputs(len(sets))
            self._sequence += len(sets) + 1
            self._raise_unbuilt(reply)
            if "launched" not in reply:
                raise failures.protocol("no launches reported")
            late = self.bench.written_late()
            if late:
                raise _written_late(late[0], len(sets))
            made = replace(run.read(reply, self.bench.slots_unchanged(sets)), recording=recording)
            self.reordered |= any(launch.reordered for launch in made.launches)
            return made
        except failures.Failed as failure:
            # Mostly it is not known which launch of the queue it was; a device that hangs is not asked for a digest.
            if self._opened is not None:
                index = len(sets) - 1 if failure.launch is None else failure.launch
                failure.evidence = Evidence(recipe_of(self._opened, sets, index, digest=False))
            raise

    @property
    def takes_long(self) -> bool:
        """Whether its calls so far took so long that two in one queue might not end within the limit."""
        return self._calls_s > _LONG_SHARE * self.launch_timeout_s * self._calls

    def draw_places(self) -> None:
        """Have the outputs and temporaries of the queues from now on elsewhere; of all of them alike."""
        self._places = any_choice()

    def load_reference(self, reference: Reference) -> bool:
        """Have the worker construct the reference too, so that it can be timed there; whether it could. Raises Failed.
        """
        problem = reference.problem
        command = {
            "op": "reference", "seed": reference.seed, "mode": reference.mode, "by_name": reference.by_name,
            "source": ast.unparse(with_sizes(problem.reference_source, reference.sizes, problem.reference_path)),
            **self._init_in_arena(reference),
        }
        return "raised" not in self._ask(command, self._load_timeout_s, "loading the reference")

    def time_reference(
        self, sets: Sequence[InputSet], *, gate: bool, meanwhile: Callable[[], None] | None = None
    ) -> Launches | str:
        """Make one launch of the reference per set, in the worker. Outputs of the launches before stay where they were
        taken.

        `meanwhile` is as for `launch`. Why it could not be run there, where it could not, whoever's doing that was.
        Raises Failed where the process is of no use now.
        """
        self.reopen()
        command = {**self._launch_command(sets), "model": "reference"}
        run = self._run(len(sets), gate, None, words=EAGER_IN_WORKER)
        reply = run.conduct(command, self._prepare(sets, None, meanwhile, gate=gate))
        self._sequence += len(sets) + 1
        try:
            return run.read(reply, [True] * len(sets))
        except failures.Failed as failure:
            return failure.verdict.reason

    def compilations(self) -> int:
        """How many graphs torch.compile has compiled in the worker so far, by its own word. Raises Failed."""
        reply = self._ask({"op": "compilations"}, self.launch_timeout_s, "counting what was compiled")
        found = reply.get("compilations")
        if isinstance(found, bool) or not isinstance(found, int):
            raise failures.protocol("no number of compilations reported")
        return found

    def note_helpers(self) -> None:
        """Note in `helped` whether a process that the candidate began uses the GPU beside the one that makes its launches.

        Where NVML does not list this process, as in a container, who holds the device's files open counts.
        """
        on_gpu = self.bench.processes()
        if self._on_gpu == on_gpu is not None:  # the same as before: to look through all processes takes milliseconds
            return
        self._on_gpu, own = on_gpu, {self.child.pid, *processes.descendants(self.child.pid)}
        users = own & on_gpu if on_gpu is not None else {pid for pid in own if processes.holds_open(pid, _GPU_FILES)}
        self.helped |= len(users) > 1

    def profile(self, inputs: InputSet) -> dict[str, Any]:
        """Make one launch under the profiler of a CPU; returns the worker's listing. Raises Failed."""
        self.reopen()
        self.bench.stage([inputs])
        command = {"op": "profile", "first": self._sequence + 1, "inputs": [inputs.skeleton]}
        reply = self._run(1, False, self._load_timeout_s).conduct(command)
        self._take_outputs(1)
        self._sequence += 2
        self._raise_unbuilt(reply)
        listing = reply.get("profiled")
        if not isinstance(listing, dict):
            raise failures.protocol("no profile reported")
        return listing

    def repeat(self, inputs: InputSet, way: str, calls: int) -> dict[str, Any]:
        """Make `calls` calls in a row on one set ("warm", "back_to_back" or "graph"); what the worker reports.

        With a warm cache none runs before all are queued, unless "hidden" is False in what is returned. Raises Failed.
        """
        self.reopen()
        self.bench.stage([inputs])
        command = {
            "op": "repeat", "first": self._sequence + 1, "inputs": [inputs.skeleton], "way": way, "calls": calls,
        }
        run = self._run(1, way == "warm", None)
        reply = run.conduct(command)
        self._take_outputs(1)
        self._sequence += 2
        self._raise_unbuilt(reply)
        found = reply.get("repeated")
        if not isinstance(found, dict):
            raise failures.protocol("no calls in a row reported")
        return {**found, "hidden": run.hidden}

    def _take_outputs(self, count: int) -> None:
        self.bench.take_outputs(count, on_host=self._opened is not None and self._opened.memory.on_host)

    def _launch_command(self, sets: Sequence[InputSet]) -> dict[str, Any]:
        skeletons = [each.skeleton for each in sets]
        return {"op": "launch", "first": self._sequence + 1, "inputs": skeletons, "places": self._places, "synchronised": False}

    def _prepare(
        self, sets: Sequence[InputSet], deferred_inputs: DeferredInputs | None, meanwhile: Callable[[], None] | None, *,
        gate: bool,
    ) -> Callable[[], None] | None:
        """What is left to do once the worker has its command. A queue that is not gated runs at once, so nothing is."""

        def prepare() -> None:
            self.bench.stage(sets, deferred_inputs)
            if meanwhile is not None:
                meanwhile()

        is_tight = self._opened is not None and self._opened.memory.tight
        if gate and self.bench.limits.gates_queues and not is_tight:  # there, inputs and the worker's call have room in turn
            return prepare
        if meanwhile is not None:  # first: a CPU is quiet once its inputs are in place
            meanwhile()
        self.bench.stage(sets, deferred_inputs)
        return None

    def _run(
        self, count: int, gate: bool, timeout_s: float | None, early_s: float = 0.0, inspect: bool = False,
        words: Words = FORWARD,
    ) -> LaunchConversation:
        limit_s = self.launch_timeout_s if timeout_s is None else timeout_s
        first = self._sequence + 1
        return LaunchConversation(
            self.bench, self.child.channel, first, count, gate, limit_s, self.death, early_s, inspect, words
        )

    def outputs(self, reference: Reference, index: int) -> list[torch.Tensor]:
        """The output tensors of launch `index`, as views of the outbox."""
        return [spec.view(self.bench.outbox(index)) for spec in reference.output_specs]

    def core_time_beside_us(self) -> float:
        """How long the processes that the candidate began, and that live, have had a core so far."""
        begun = set(processes.descendants(self.child.pid)) - self._worker_pids
        return processes.core_time_ns(begun) / 1e3

    def stop(self, meanwhile: Callable[[], None] | None = None) -> None:
        """End the worker; `meanwhile` is called while it goes, if it lives."""
        self.child.kill(meanwhile)

    def _raise_unbuilt(self, reply: Mapping[str, Any]) -> None:
        """Raise Unbuilt where the candidate has asked for extensions that its build did not make."""
        if self._may_ask and reply.get("unbuilt"):
            raise failures.unbuilt(reply["unbuilt"])

    def _init_in_arena(self, reference: Reference) -> dict[str, Any]:
        skeleton, tensors = tree.flatten(reference.init)
        specs = plan(tensors, contiguous=True)
        by_name = reference.init_by_name
        if not specs:
            return {"init": skeleton, "init_by_name": by_name, "init_specs": [], "init_region": None}
        place = self.bench.arena.named("init", region_bytes(specs))
        region = self.bench.arena.map(**place)
        for spec, tensor in zip(specs, tensors):
            spec.view(region).copy_(tensor)
        return {
            "init": skeleton, "init_by_name": by_name, "init_specs": [spec.to_json() for spec in specs],
            "init_region": place,
        }

    def _ask(self, command: dict[str, Any], timeout_s: float, doing: str, *, send: bool = True) -> dict[str, Any]:
        try:
            if send:
                self.child.channel.send(command, timeout_s)
            reply = self.child.channel.receive(timeout_s)
        except FrameTimeout:
            raise failures.failed(
                Status.TIMED_OUT, ReasonCode.LOAD_TIMEOUT, f"still {doing} after {timeout_s:g} s"
            ) from None
        except ChannelClosed:
            raise self.death(doing) from None
        except BadFrame as error:
            raise failures.protocol(str(error)) from None
        if "broken" in reply:
            raise failures.from_exception(reply["broken"], f"while {doing}")
        return reply

    def death(self, doing: str) -> failures.Failed:
        """The verdict on a worker that is gone."""
        self.child.wait(2.0)
        how = self.child.death()
        said = _last_words(self.child.output())
        if self.child.ran_out_of_memory:
            return failures.failed(Status.OUT_OF_MEMORY, ReasonCode.HOST_MEMORY, f"{how} while {doing}")
        if how.startswith("exited"):
            return failures.failed(Status.CRASHED, ReasonCode.EXITED, f"its process {how} while {doing}{said}")
        return failures.failed(Status.CRASHED, ReasonCode.SIGNAL, f"its process was {how} while {doing}{said}")


def _written_late(index: int, count: int) -> failures.Failed:
    return failures.failed(
        Status.REJECTED, ReasonCode.CLOCKS_DISAGREE,
        f"the output of launch {index + 1} of {count} was still being written when the next launch had begun: its work "
        "ended after its timed window; join every stream and thread before forward returns",
    )


def _last_words(output: str) -> str:
    lines = [line.strip() for line in output.strip().splitlines() if line.strip()]
    return f'; it said last: "{lines[-1][:200]}"' if lines else ""


# Whether the parameters and buffers that a worker handed over are the reference's.


def state_difference(
    reply: dict[str, Any], state: dict[str, torch.Tensor], specs: dict[str, Any], region: torch.Tensor | None
) -> str | None:
    """A sentence on how the state that `reply` tells of differs from `state`, or None; its bytes lie in `region`."""
    theirs = reply.get("state")
    theirs = theirs if isinstance(theirs, dict) else {}
    missing = [name for name in state if name not in theirs]
    if missing:
        return f"ModelNew has no parameter or buffer named {missing[0]!r}, which the reference has"
    for name, spec in specs.items():
        if theirs[name] != [spec.dtype, list(spec.shape)]:
            return f"{name} is {theirs[name]} where the reference has {[spec.dtype, list(spec.shape)]}"
    if reply.get("alike") is True and region is not None:
        for name, spec in specs.items():
            # Where the reference's own lie: a GPU compares far sooner, and has room for a piece.
            pieces = in_pieces(state[name], spec.view(region))
            if not all(torch.equal(theirs.to(own.device), own) for own, theirs in pieces):
                return f"{name} has other values than the reference's, though both were made under one seed"
    return None
