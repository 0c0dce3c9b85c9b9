"""A player that is looked at, and a referee that looks, with known times and inputs on the CPU."""

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
from harness.timing.deferred_work import Backlog
from harness.timing.probes import runner
from harness.timing.probes.runner import Looking
from harness.timing.probes.schedule import Look

USUAL_US = 100.0
BENCH = SimpleNamespace(limits=CUDA, synchronize=lambda: None)


class Session:
    """A player whose calls take `call_us`, and so much longer where the inputs were completed late or have signs."""

    def __init__(self, later_us=0.0, call_us=USUAL_US, signed_us=0.0):
        self.later_us, self.call_us, self.lacking, self.looked, self.seen = later_us, call_us, [], [], []
        self.signed_us = signed_us

    def launch(self, sets, *, hold, early_s=0.0, inspect=False, incomplete=None, meanwhile=None, record=False):
        if meanwhile is not None:
            meanwhile()
        self.index = None if incomplete is None else incomplete.index
        self.seen += sets
        self.looked.append((inspect, early_s > 0, incomplete is not None))
        times = [self.call_us] * len(sets)
        if incomplete is not None:
            self.lacking.append((len(sets), incomplete.index))
            times[incomplete.index] += self.later_us
        for index, inputs in enumerate(sets):
            times[index] += self.signed_us * (inputs.family.name == "signs")
        launches = [Launch(time_us, 3.0, None, None, []) for time_us in times]
        return Launches(launches, 1.0, None, [True] * len(sets), recording=Recording() if record else None)


@pytest.fixture
def chosen(monkeypatch):
    """`chosen(index)`: the launch that is looked at is always this one of its segment."""
    return lambda index: monkeypatch.setattr(runner.secrets, "randbelow", lambda below: index - 1)


def reference_of(get_inputs=lambda: [torch.rand(32, 32)], timed=("signs",)):
    return SimpleNamespace(
        draw=lambda family=GIVEN: draw_set(get_inputs, torch.device("cpu"), family, [0]),
        timed_families=[family_named(name) for name in timed], memory=SimpleNamespace(tight=False),
    )


def looking_of(session, verify=lambda sets, made, only=None: None, *, count=5, reference=None):
    reference, backlog = reference or reference_of(), Backlog(BENCH.synchronize)
    looker = Looking(session, BENCH, reference, verify, backlog, lambda: [reference.draw() for _ in range(count)])
    looker.settle = backlog.settle
    return looker


def look(session, verify=lambda sets, made, only=None: None, *, count=5, reference=None, what=Look.LATE, usual_us=(USUAL_US,)):
    reference = reference or reference_of()
    looker = looking_of(session, verify, count=count, reference=reference)
    looker.at(what, [reference.draw() for _ in range(count)], usual_us, hold=True)
    looker.settle()
    return looker


def wrong():
    return failures.failed(Status.INCORRECT, ReasonCode.WRONG_VALUES, "element [0] is 1 where 2 is expected")
