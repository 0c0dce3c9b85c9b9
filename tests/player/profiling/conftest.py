"""A launch under the real profiler, without a referee: what the player lists of a model's call."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from harness.player import extensions, profiling

SIZE = {"cpu": 512, "cuda": 2048}


class Stage:
    """A stage without a referee: a turn is there when it is asked for."""

    def __init__(self, device, inputs):
        self.stream = None if device == "cpu" else 0
        self._inputs = inputs

    def inputs(self, index, specs):
        return self._inputs

    def wait_for_turn(self, sequence):
        self.steps = [f"turn {sequence}"]

    def fill(self, index):
        self.steps.append("fill")

    def wait_for_window(self, sequence):
        self.steps.append(f"window {sequence}")

    def restore_stream(self): ...

    def signal_end(self, sequence):
        self.steps.append(f"end {sequence}")

    def synchronize(self):
        if self.stream is not None:
            torch.cuda.synchronize()


class Launcher:
    reorders = False

    class layout:
        inputs = outputs = ()

        @staticmethod
        def fault_of(result, stage, index):
            return {"code": "not looked at"}


@pytest.fixture
def listed() -> Callable[..., dict[str, Any]]:
    """`listed(model, device="cpu")` is the listing of the fastest of three launches, since other programs share the
    cores, after one that pays for starting threads.
    """

    def launch(model, device="cpu"):
        torch.manual_seed(0)
        stage = Stage(device, [torch.rand(SIZE[device], SIZE[device], device=device) for _ in range(2)])
        skeleton = {"list": [{"tensor": 0}, {"tensor": 1}]}
        _, *launches = [profiling.profiled_launch(stage, Launcher, model, first, skeleton) for first in (1, 3, 5, 7)]
        return min(launches, key=lambda launch: launch["total_us"])

    return launch


@pytest.fixture
def opened():
    """The functions that count as those of extensions, as they were before once the test is over."""
    before = dict(extensions.opened_functions), set(extensions.opened_operators)
    yield extensions.opened_functions
    for now, then in zip((extensions.opened_functions, extensions.opened_operators), before):
        now.clear()
        now.update(then)


@pytest.fixture(autouse=True)
def alone_on_a_core(one_thread):
    """Threads that wait for a busy machine's cores would make a library's share anything."""


@pytest.fixture
def steps_of() -> Callable[..., list[str]]:
    """`steps_of(model, first)`: what a stage on the CPU is asked for during one profiled launch, in order."""

    def launch(model, first):
        stage = Stage("cpu", [torch.rand(4, 4)])
        profiling.profiled_launch(stage, Launcher, model, first, {"list": [{"tensor": 0}]})
        return stage.steps

    return launch


@pytest.fixture
def launcher_asking() -> Callable[..., dict[str, Any]]:
    """`launcher_asking(ask, device)` is the listing of a product whose result is handed to `ask` for its form."""

    def launch(ask, device):
        layout = SimpleNamespace(inputs=(), outputs=(), fault_of=lambda result, stage, index: {"code": ask(result)})
        stage = Stage(device, [torch.rand(64, 64, device=device) for _ in range(2)])
        skeleton = {"list": [{"tensor": 0}, {"tensor": 1}]}
        return profiling.profiled_launch(stage, SimpleNamespace(layout=layout, reorders=False), torch.matmul, 1, skeleton)

    return launch
