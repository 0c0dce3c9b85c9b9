"""`python -m harness.worker FD ARENA_FD OPENED MODULE…`: import the modules, and serve the judge's commands until it
goes away. Where OPENED is "cuda", the GPU is opened meanwhile; else nothing is.
"""

from __future__ import annotations

import gc
import importlib
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from harness.protocol.frames import Channel, ChannelClosed


def main() -> None:
    channel = Channel(socket.socket(fileno=int(sys.argv[1])))
    gc.disable()  # what is imported stays; torch.compile's part of PyTorch would be looked through in each compilation
    import torch  # before the first command, so that a waiting worker has this behind it

    from harness.protocol.context_opening import open_in_thread

    opening = open_in_thread(0) if sys.argv[3] == "cuda" else None
    from harness.protocol.arena import Arena
    # Before a candidate can patch what they take.
    from harness.worker import model, profiler, repeats  # noqa: F401

    for name in sys.argv[4:]:
        importlib.import_module(name)
    worker = Worker(channel, Arena(int(sys.argv[2])))
    if opening is not None:
        opening.join()
    gc.freeze()
    gc.enable()
    channel.send({"hello": os.getpid(), "torch": torch.__version__})
    try:
        worker.serve()
    except ChannelClosed:
        os._exit(0)


class Worker:
    """The state between commands: the slots of its launches, then a model and its launcher."""

    def __init__(self, channel: Channel, arena: Any) -> None:
        self._channel, self._arena = channel, arena
        self._slots: Any = None
        self._launcher: Any = None
        self._model: Any = None
        self._called: Any = None
        self._reference: Any = None  # the launcher of eager, where it is timed beside the candidate
        self._layout_command: Any = None
        self._load_command: Any = None
        self._module: Any = None
        self._extensions: Any = None  # what stands for PyTorch's compile calls, once a candidate is there

    def _say(self, frame: dict[str, Any]) -> None:
        """Send `frame`; with what the candidate has asked for meanwhile and nobody has built, where it is an answer."""
        asked = self._extensions.asked() if self._extensions is not None and "queued" not in frame else []
        self._channel.send({**frame, "unbuilt": asked} if asked else frame)
        if self._slots is not None:
            self._slots.count_mail()

    def serve(self) -> None:
        commands = {
            "open_device": self._open_device, "prepare": self._prepare, "load": self._load, "open": self._open,
            "layout": self._layout, "reference": self._load_reference, "launch": self._launch,
            "profile": self._profile, "repeat": self._repeat, "compilations": self._count_compilations,
            "release_memory": self._release_memory, "state": self._state,
        }
        while True:
            command = self._channel.receive()
            commands[command["op"]](command)

    def _open_device(self, command: dict[str, Any]) -> None:
        """Make the context of a GPU already, in a process that knows of no candidate yet and waits for its turn."""
        import torch

        if command["device"] == "cuda":
            torch.zeros(1, device="cuda:0")
            torch.cuda.synchronize()
        self._say({"device_opened": True})

    def _prepare(self, command: dict[str, Any]) -> None:
        from harness.worker.launch_slots import CpuSlots, CudaSlots

        on_cpu = command["device"] == "cpu"
        self._slots = CpuSlots(self._arena, command, self._channel) if on_cpu else CudaSlots(self._arena, command)
        self._say({"prepared": str(self._slots.device), "timer": self._slots.stopwatch.name})

    def _load(self, command: dict[str, Any]) -> None:
        import torch

        from harness.protocol import passes, stand_in_gpu
        from harness.protocol.source_import import import_source
        from harness.worker import address_use, extensions, model
        from harness.worker.loop import Launcher

        arguments = self._init_of(command)
        try:
            if self._module is None:
                if command["stand_in_gpu"] is not None:
                    stand_in_gpu.interpret_triton(command["stand_in_gpu"])
                folder = os.path.dirname(command["path"])
                extensions.install(command["manifest"], folder, command["refused"], may_ask=command["may_ask"])
                self._extensions = extensions
                address_use.heed()
                self._module = import_source(Path(command["path"]))
            self._model = model.construct(
                self._module, arguments, command["seed"], self._slots.device, by_name=command["init_by_name"]
            )
            self._called = passes.as_called(
                self._model, command["mode"], list(command["state_specs"]), by_name=command["by_name"]
            )
        except Exception as error:
            self._say({"raised": model.describe(error, getattr(getattr(self._module, "ModelNew", None), "__init__", None))})
            return
        self._slots.restore_stream()
        self._launcher, self._load_command = Launcher(self._slots, self._called), command
        from harness.protocol.digest import digest_of_tensor

        forms, state = self._own_state(torch)
        digests = {name: digest_of_tensor(tensor) for name, tensor in (state or {}).items()}
        self._say({"loaded": True, "state": forms, "alike": state is not None, "digests": digests})

    def _state(self, command: dict[str, Any]) -> None:
        import torch

        from harness.protocol.layout import TensorSpec

        forms, state = self._own_state(torch)
        if state is not None:
            region = self._arena.map(**command["state_region"])
            for name, body in self._load_command["state_specs"].items():
                TensorSpec.from_json(body).view(region).copy_(state[name])
        self._say({"state": forms, "alike": state is not None})

    def _load_reference(self, command: dict[str, Any]) -> None:
        from harness.worker import model
        from harness.worker.loop import Launcher, Layout

        try:
            called = model.reference(command, self._init_of(command), self._slots.device)
        except Exception as error:
            self._say({"raised": model.describe(error)})
            return
        self._slots.restore_stream()
        self._reference = Launcher(self._slots, called)
        self._reference.layout = Layout(self._layout_command)
        self._say({"loaded": True})

    def _init_of(self, command: dict[str, Any]) -> list[Any]:
        """What a model is constructed with."""
        from harness.protocol import tree
        from harness.protocol.layout import TensorSpec

        tensors = []
        if command["init_specs"]:
            region = self._arena.map(**command["init_region"])
            specs = [TensorSpec.from_json(body) for body in command["init_specs"]]
            tensors = [spec.view(region).clone().to(self._slots.device) for spec in specs]
        return tree.rebuild(command["init"], tensors)

    def _own_state(self, torch: Any) -> tuple[dict[str, Any], dict[str, Any] | None]:
        """Names and forms of the parameters and buffers; these by name, or None where they are not formed as the reference's."""
        from harness.protocol.layout import TensorSpec, dtype_name

        is_lazy = torch.nn.parameter.is_lazy
        named = self._model.state_dict().items()
        state = {name: each for name, each in named if isinstance(each, torch.Tensor) and not is_lazy(each)}
        forms = {name: [dtype_name(tensor.dtype), list(tensor.shape)] for name, tensor in state.items()}
        wanted = {name: TensorSpec.from_json(body) for name, body in self._load_command["state_specs"].items()}
        alike = forms == {name: [spec.dtype, list(spec.shape)] for name, spec in wanted.items()}
        return forms, state if alike else None

    def _open(self, command: dict[str, Any]) -> None:
        self._slots.open(command["regions"])
        self._say({"opened": True})

    def _release_memory(self, command: dict[str, Any]) -> None:
        """Give back what the allocator keeps for later calls: the judge is about to need it."""
        with self._broken_by_what_it_raises():
            self._slots.release_memory()
        self._say({"released": True})

    def _layout(self, command: dict[str, Any]) -> None:
        from harness.worker.loop import Layout

        self._layout_command = command
        for launcher in filter(None, (self._launcher, self._reference)):
            launcher.layout = Layout(command)
        self._slots.set_filled_bytes(command["filled_bytes"])
        self._say({"laid_out": True})

    def _launch(self, command: dict[str, Any]) -> None:
        from harness.worker.model import strictly

        is_eager = command.get("model") == "reference"
        launcher = self._reference if is_eager else self._launcher
        with self._broken_by_what_it_raises():
            synchronised = command["synchronised"]
            with strictly() if is_eager else nullcontext():
                reports, laps, host_us = launcher.queue(command["first"], command["inputs"], synchronised=synchronised)
            self._say({"queued": len(reports)})
            times_us, forward_us = launcher.finish(laps)
        for name, found_us in (("time_us", times_us), ("forward_us", forward_us)):
            for report, time_us in zip(reports, found_us):
                report[name] = time_us
        self._say({"launched": reports, "end_to_end_us": host_us})

    def _profile(self, command: dict[str, Any]) -> None:
        from harness.worker.profiler import profiled_launch

        with self._broken_by_what_it_raises():
            listing = profiled_launch(self._slots, self._launcher, self._called, command["first"], command["inputs"][0])
        self._say({"profiled": listing})

    def _repeat(self, command: dict[str, Any]) -> None:
        from harness.worker.repeats import repeated

        with self._broken_by_what_it_raises():
            report = repeated(
                self._slots, self._launcher, self._called, command["first"], command["inputs"][0], command["way"],
                command["calls"], lambda: self._say({"queued": 1}),
            )
        self._say({"repeated": report})

    def _count_compilations(self, command: dict[str, Any]) -> None:
        """How many graphs torch.compile has compiled in this process so far."""
        dynamo = sys.modules.get("torch._dynamo.utils")
        self._say({"compilations": 0 if dynamo is None else int(dynamo.counters["stats"]["unique_graphs"])})

    @contextmanager
    def _broken_by_what_it_raises(self) -> Iterator[None]:
        """Where an exception leaves it, the device's context is beyond repair (an illegal access): say so and exit."""
        from harness.worker.model import describe

        try:
            yield
        except ChannelClosed:
            raise
        except Exception as error:
            self._say({"broken": describe(error)})
            os._exit(1)


if __name__ == "__main__":
    main()
