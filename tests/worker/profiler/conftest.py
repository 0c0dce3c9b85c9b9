"""A launch under the real profiler, without a judge: what the worker lists of a model's call."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from harness.worker import extensions, profiler

SIZE = 512


class Slots:
    """Slots without a judge: a turn is there when it is asked for."""

    stream = None

    def __init__(self, inputs):
        self._inputs = inputs

    def inputs(self, index, specs):
        return self._inputs

    def wait_for_turn(self, sequence):
        self.steps = [f"turn {sequence}"]

    def fill_and_flush(self, index):
        self.steps.append("fill")

    def wait_for_window(self, sequence):
        self.steps.append(f"window {sequence}")

    def signal_end(self, sequence):
        self.steps.append(f"end {sequence}")


class Launcher:
    class layout:
        inputs = outputs = ()

        @staticmethod
        def fault_of(result, slots, index):
            return {"code": "not looked at"}


@pytest.fixture
def listed() -> Callable[..., dict[str, Any]]:
    """`listed(model)` is the listing of the fastest of three launches, since other programs share the
    cores, after one that pays for starting threads.
    """

    def launch(model):
        torch.manual_seed(0)
        slots = Slots([torch.rand(SIZE, SIZE) for _ in range(2)])
        skeleton = {"list": [{"tensor": 0}, {"tensor": 1}]}
        _, *launches = [profiler.profiled_launch(slots, Launcher, model, first, skeleton) for first in (1, 3, 5, 7)]
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
    """`steps_of(model, first)`: what slots on the CPU are asked for during one profiled launch, in order."""

    def launch(model, first):
        slots = Slots([torch.rand(4, 4)])
        profiler.profiled_launch(slots, Launcher, model, first, {"list": [{"tensor": 0}]})
        return slots.steps

    return launch


@pytest.fixture
def launcher_asking() -> Callable[..., dict[str, Any]]:
    """`launcher_asking(ask)` is the listing of a product whose result is handed to `ask` for its form."""

    def launch(ask):
        layout = SimpleNamespace(inputs=(), outputs=(), fault_of=lambda result, slots, index: {"code": ask(result)})
        slots = Slots([torch.rand(64, 64) for _ in range(2)])
        skeleton = {"list": [{"tensor": 0}, {"tensor": 1}]}
        return profiler.profiled_launch(slots, SimpleNamespace(layout=layout), torch.matmul, 1, skeleton)

    return launch
