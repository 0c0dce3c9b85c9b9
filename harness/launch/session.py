"""One worker from spawn to kill: the judge's side of every command, with a deadline on each.

A session never blocks for longer than its limits, and turns each way of dying into a verdict. What is said while
launches are made is `conversation`'s.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from harness.device.backend import Backend
from harness.device.core_watch import CodeWatch
from harness.launch import failures
from harness.launch.conversation import EAGER_IN_WORKER, FORWARD, LaunchConversation, Launches, Words
from harness.launch.model_commands import HandedState, difference_of_states, load_command, reference_command
from harness.model.verdict import ReasonCode, Status
from harness.protocol.frames import BadFrame, ChannelClosed, FrameTimeout
from harness.protocol.layout import region_bytes
from harness.reference.evidence import Evidence
from harness.reference.evidence_collector import recipe_of
from harness.reference.inputs.late_inputs import LateInputs
from harness.reference.inputs.sets import InputSet
from harness.reference.reference_model import Reference
from harness.sandbox import processes
from harness.sandbox.spawn import Child

_LONG_SHARE = 0.25
_GPU_FILES = "/dev/nvidia"


class Session:
    """The judge's end of a worker. `load_timeout_s` and `launch_timeout_s` bound every wait, in seconds."""

    def __init__(self, child: Child, backend: Backend, load_timeout_s: float, launch_timeout_s: float) -> None:
        self.child, self.backend = child, backend
        self._load_timeout_s, self.launch_timeout_s = load_timeout_s, launch_timeout_s
        self._sequence = 0
        self._prepared = False
        self.timer: str | None = None  # the worker's stopwatch, which is there before anything of a candidate's
        self._worker_pids: set[int] = set()
        self.code_watch = CodeWatch()
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
            reply = self._ask(self.backend.prepare_command(), self._load_timeout_s, "opening the device")
            self._prepared, self.timer = True, reply.get("timer")
            if self.backend.limits.is_host:  # where the time that others have had of a core counts, and whose code it is
                self._worker_pids = set(processes.descendants(self.child.pid))
                self.code_watch.begin(processes.innermost(self.child.pid))
        self._may_ask = may_ask
        command = load_command(
            self.backend.arena, path, reference, manifest, seed, refused, may_ask=may_ask, stand_in_gpu=stand_in_gpu
        )
        reply = self._ask(command, self._load_timeout_s, "loading")
        self.reordered = False
        self._raise_unbuilt(reply)
        if "raised" in reply:
            raise failures.from_exception(reply["raised"], "while it was loaded")
        return difference_of_states(reference, reply)

    def state(self, reference: Reference) -> dict[str, torch.Tensor] | None:
        """The candidate's state now, in host memory; None where it is not formed as the reference's. Raises Failed."""
        state = HandedState(self.backend.arena, reference)
        reply = self._ask(state.command, self._load_timeout_s, "handing over its state")
        return state.tensors() if reply.get("alike") is True else None

    def open(self, reference: Reference, count: int) -> None:
        """Share regions for `count` launches of these sizes, and lay inputs and outputs out in them."""
        memory = reference.memory
        count = max(count, memory.launches) if memory.tight else count  # growing would hold both for a while
        self._opened, self._count, self._is_closed = reference, count, False
        input_bytes, output_bytes = region_bytes(reference.specs), region_bytes(reference.output_specs)
        regions = self.backend.open(count, input_bytes, output_bytes, tight=memory.tight)
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
        """Have the worker and the device give back what they keep for launches, until `reopen` is called."""
        self._ask({"op": "release_memory"}, self.launch_timeout_s, "giving memory back")
        if not self._is_closed:
            self._ask(self.backend.close_regions(), self._load_timeout_s, "closing its memory")
            self.backend.free_regions()
            self._is_closed = True
        self.backend.release_memory()

    def reopen(self) -> None:
        """Have regions for launches again, if they were given back."""
        if self._is_closed:
            self.backend.release_memory()
            self.open(self._opened, self._count)

    def launch(
        self, sets: Sequence[InputSet], *, gate: bool, timeout_s: float | None = None, early_s: float = 0.0,
        inspect: bool = False, late_inputs: LateInputs | None = None, meanwhile: Callable[[], None] | None = None,
        synchronised: bool = False, record: bool = False,
    ) -> Launches:
        """Make one launch per set. With `gate`, none runs before all are queued. Raises Failed.

        `timeout_s` replaces the usual limit, for a first call that may compile. `meanwhile` is called before anything of a
        gated queue runs, while the worker makes it, and beforehand where it is not gated. `early_s` leaves the inputs of
        each launch readable for so long before its window opens, those of the launch that `late_inputs` is for
        complete only with it. `inspect` has some flushes inspected, and whether outputs are written to afterwards;
        `record` a GPU's kernels recorded. Only the control is told of `synchronised`, to wait for the device in each call.
        """
        began_s = time.monotonic()
        if began_s > self.ends_s:
            raise failures.row_timeout(self._calls, self._calls_s)
        self.reopen()
        command = {**self._launch_command(sets), "synchronised": synchronised}
        run = self._conversation(len(sets), gate, timeout_s, early_s, inspect)
        prepare = self._prepare(sets, late_inputs, meanwhile, gate=gate)
        try:
            if record:
                self.backend.begin_recording()
            is_probe = inspect or early_s > 0 or late_inputs is not None
            with self.code_watch.during(is_probe=is_probe):
                reply = run.conduct(command, prepare)
            recording = self.backend.end_recording() if record else None
            if record:
                self.note_helpers()
            self._calls, self._calls_s = self._calls + len(sets), self._calls_s + time.monotonic() - began_s
            self._take_outputs(len(sets))
            self._sequence += len(sets) + 1
            self._raise_unbuilt(reply)
            late = self.backend.written_late()
            if late:
                raise failures.written_late(late[0], len(sets))
            made = replace(run.read(reply, self.backend.slots_unchanged(sets)), recording=recording)
            self.reordered |= any(launch.reordered for launch in made.launches)
            self.code_watch.note(self._opened, ((each.opened_ns, each.time_us) for each in made.launches), is_probe=is_probe)
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

    def load_reference(self, reference: Reference) -> bool:
        """Have the worker construct the reference too, to be timed there; whether it could. Raises Failed."""
        command = reference_command(self.backend.arena, reference)
        return "raised" not in self._ask(command, self._load_timeout_s, "loading the reference")

    def time_reference(
        self, sets: Sequence[InputSet], *, gate: bool, meanwhile: Callable[[], None] | None = None
    ) -> Launches | str:
        """Make one launch of the reference per set, in the worker, `meanwhile` as for `launch`; or return why it could not be
        run there. Outputs of the launches before stay where they were taken. Raises Failed where the process is of no use.
        """
        self.reopen()
        command = {**self._launch_command(sets), "model": "reference"}
        run = self._conversation(len(sets), gate, None, words=EAGER_IN_WORKER)
        reply = run.conduct(command, self._prepare(sets, None, meanwhile, gate=gate))
        self._sequence += len(sets) + 1
        try:
            return run.read(reply, [True] * len(sets))
        except failures.Failed as failure:
            return failure.verdict.reason

    def compilations(self) -> int:
        """How many graphs torch.compile has compiled in the worker so far, by its own word. Raises Failed."""
        reply = self._ask({"op": "compilations"}, self.launch_timeout_s, "counting what was compiled")
        count = reply.get("compilations")
        if isinstance(count, bool) or not isinstance(count, int):
            raise failures.protocol("no number of compilations reported")
        return count

    def note_helpers(self) -> None:
        """Note in `helped` whether a process that the candidate began uses the GPU, by NVML or by open files."""
        on_gpu = self.backend.processes()
        if self._on_gpu == on_gpu is not None:  # the same as before: to look through all processes takes milliseconds
            return
        self._on_gpu, own = on_gpu, {self.child.pid, *processes.descendants(self.child.pid)}
        users = own & on_gpu if on_gpu is not None else {pid for pid in own if processes.holds_open(pid, _GPU_FILES)}
        self.helped |= len(users) > 1

    def profile(self, inputs: InputSet) -> dict[str, Any]:
        """Make one launch under the profiler of a CPU; returns the worker's listing. Raises Failed."""
        return self._with_one_set(inputs, {"op": "profile"}, ("profiled", "profile"), timeout_s=self._load_timeout_s)[0]

    def repeat(self, inputs: InputSet, way: str, calls: int) -> dict[str, Any]:
        """Make `calls` calls in a row on one set ("warm", "back_to_back" or "graph"); what the worker reports.

        With a warm cache none runs before all are queued, unless "hidden" is False in what is returned. Raises Failed.
        """
        command = {"op": "repeat", "way": way, "calls": calls}
        report, hidden = self._with_one_set(inputs, command, ("repeated", "calls in a row"), gate=way == "warm")
        return {**report, "hidden": hidden}

    def _with_one_set(
        self, inputs: InputSet, command: Mapping[str, Any], answer: tuple[str, str], *, gate: bool = False,
        timeout_s: float | None = None,
    ) -> tuple[dict[str, Any], bool | None]:
        """The report on a command with one set, under `answer[0]`, and whether it was gated. Raises Failed."""
        self.reopen()
        self.backend.upload_inputs([inputs])
        conversation = self._conversation(1, gate, timeout_s)
        reply = conversation.conduct({**command, "first": self._sequence + 1, "inputs": [inputs.skeleton]})
        self._take_outputs(1)
        self._sequence += 2
        self._raise_unbuilt(reply)
        report = reply.get(answer[0])
        if not isinstance(report, dict):
            raise failures.protocol(f"no {answer[1]} reported")
        return report, conversation.hidden

    def _take_outputs(self, count: int) -> None:
        self.backend.take_outputs(count, on_host=self._opened is not None and self._opened.memory.on_host)

    def _launch_command(self, sets: Sequence[InputSet]) -> dict[str, Any]:
        skeletons = [each.skeleton for each in sets]
        return {"op": "launch", "first": self._sequence + 1, "inputs": skeletons, "synchronised": False}

    def _prepare(
        self, sets: Sequence[InputSet], late_inputs: LateInputs | None, meanwhile: Callable[[], None] | None, *,
        gate: bool,
    ) -> Callable[[], None] | None:
        """What is left to do once the worker has its command. A queue that is not gated runs at once, so nothing is."""

        def prepare() -> None:
            self.backend.upload_inputs(sets, late_inputs)
            if meanwhile is not None:
                meanwhile()

        is_tight = self._opened is not None and self._opened.memory.tight
        if gate and self.backend.limits.gates_queues and not is_tight:  # there, inputs and the worker's call have room in turn
            return prepare
        if meanwhile is not None:  # first: a CPU is quiet once its inputs are in place
            meanwhile()
        self.backend.upload_inputs(sets, late_inputs)
        return None

    def _conversation(
        self, count: int, gate: bool, timeout_s: float | None, early_s: float = 0.0, inspect: bool = False,
        words: Words = FORWARD,
    ) -> LaunchConversation:
        limit_s = self.launch_timeout_s if timeout_s is None else timeout_s
        first = self._sequence + 1
        return LaunchConversation(
            self.backend, self.child.channel, first, count, gate, limit_s,
            partial(failures.death, self.child), early_s, inspect, words, self.code_watch.read
        )

    def outputs(self, reference: Reference, index: int) -> list[torch.Tensor]:
        """The output tensors of launch `index`, as views of the outbox."""
        return [spec.view(self.backend.outbox(index)) for spec in reference.output_specs]

    def core_time_beside_us(self) -> float:
        """How long the processes that the candidate began, and that live, have had a core so far."""
        begun = set(processes.descendants(self.child.pid)) - self._worker_pids
        return processes.core_time_ns(begun) / 1e3

    def stop(self, meanwhile: Callable[[], None] | None = None) -> None:
        """End the worker; `meanwhile` is called while it goes, if it lives."""
        self.child.kill(meanwhile)
        self.code_watch.close()

    def _raise_unbuilt(self, reply: Mapping[str, Any]) -> None:
        """Raise Unbuilt where the candidate has asked for extensions that its build did not make."""
        if self._may_ask and reply.get("unbuilt"):
            raise failures.unbuilt(reply["unbuilt"])

    def _ask(self, command: dict[str, Any], timeout_s: float, doing: str, *, send: bool = True) -> dict[str, Any]:
        try:
            if send:
                self.child.channel.send(command, timeout_s)
            reply = self._received(timeout_s)
        except FrameTimeout:
            reason = f"still {doing} after {timeout_s:g} s"
            raise failures.failed(Status.TIMED_OUT, ReasonCode.LOAD_TIMEOUT, reason) from None
        except ChannelClosed:
            raise failures.death(self.child, doing) from None
        if "broken" in reply:
            raise failures.from_exception(reply["broken"], f"while {doing}")
        return reply

    def _received(self, timeout_s: float) -> dict[str, Any]:
        try:
            return self.child.channel.receive(timeout_s)
        except BadFrame as error:
            raise failures.protocol(str(error)) from None
