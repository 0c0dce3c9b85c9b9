"""A worker that is looked at, and a judge that looks, with known times and inputs on the CPU."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from harness.attribution.recording import Recording
from harness.launch import failures
from harness.launch.conversation import Launch, Launches
from harness.model.device_limits import CUDA
from harness.model.verdict import ReasonCode, Status
from harness.reference.inputs.families import GIVEN, family_named
from harness.reference.inputs.sets import draw_set
from harness.timing.deferred_work import DeferredWork
from harness.timing.probes import kinds
from harness.timing.probes.runner import ProbeRunner
from harness.timing.probes.schedule import Probe

USUAL_US = 100.0
BENCH = SimpleNamespace(limits=CUDA, synchronize=lambda: None)


class Session:
    """A worker whose calls take `call_us`, and so much longer where the inputs were completed late or have signs."""

    def __init__(self, later_us=0.0, call_us=USUAL_US, signed_us=0.0):
        self.later_us, self.call_us, self.lacking, self.probed, self.seen = later_us, call_us, [], [], []
        self.signed_us = signed_us

    def launch(self, sets, *, gate, early_s=0.0, inspect=False, late_inputs=None, meanwhile=None, record=False):
        if meanwhile is not None:
            meanwhile()
        self.index = None if late_inputs is None else late_inputs.index
        self.seen += sets
        self.probed.append((inspect, early_s > 0, late_inputs is not None))
        times = [self.call_us] * len(sets)
        if late_inputs is not None:
            self.lacking.append((len(sets), late_inputs.index))
            times[late_inputs.index] += self.later_us
        for index, inputs in enumerate(sets):
            times[index] += self.signed_us * (inputs.family.name == "signs")
        launches = [Launch(time_us, 3.0, None, None, []) for time_us in times]
        return Launches(launches, 1.0, None, [True] * len(sets), recording=Recording() if record else None)


@pytest.fixture
def chosen(monkeypatch):
    """`chosen(index)`: the launch that is looked at is always this one of its segment."""
    return lambda index: monkeypatch.setattr(kinds.secrets, "randbelow", lambda below: index - 1)


def reference_of(get_inputs=lambda: [torch.rand(32, 32)], timed=("signs",)):
    return SimpleNamespace(
        draw=lambda family=GIVEN: draw_set(get_inputs, torch.device("cpu"), family, [0]),
        timed_families=[family_named(name) for name in timed], memory=SimpleNamespace(tight=False),
    )


def probe_runner_of(session, verify=lambda sets, made, only=None: None, *, count=5, reference=None):
    reference, deferred_work = reference or reference_of(), DeferredWork(BENCH.synchronize)
    probe_runner = ProbeRunner(session, BENCH, reference, verify, deferred_work, lambda: [reference.draw() for _ in range(count)])
    probe_runner.settle = deferred_work.settle
    return probe_runner


def probe(session, verify=lambda sets, made, only=None: None, *, count=5, reference=None, what=Probe.LATE_INPUT, usual_us=(USUAL_US,)):
    reference = reference or reference_of()
    probe_runner = probe_runner_of(session, verify, count=count, reference=reference)
    probe_runner.at(what, [reference.draw() for _ in range(count)], usual_us, gate=True)
    probe_runner.settle()
    return probe_runner


def wrong():
    return failures.failed(Status.INCORRECT, ReasonCode.WRONG_VALUES, "element [0] is 1 where 2 is expected")
