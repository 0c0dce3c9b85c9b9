"""A run on a cluster: the same verdicts as on one machine, every candidate once, whatever becomes of the nodes."""

from __future__ import annotations

import pytest

from harness.cluster import running
from harness.cluster.link import Link
from harness.report.progress import NullProgress

NAMES = ("returns_none", "raises_in_forward", "no_model_new", "wrong_shape", "raises_in_init")
EXPECTED = {
    "returns_none": "incorrect", "raises_in_forward": "incorrect", "no_model_new": "build_failed",
    "wrong_shape": "incorrect", "raises_in_init": "incorrect",
}

pytestmark = [pytest.mark.timeout(600), pytest.mark.slow]


class Listening(NullProgress):
    """Keeps what it is told, and does `when` told of a stage."""

    def __init__(self, when=lambda name, text: None):
        super().__init__()
        self.stages, self.notes, self.outcomes, self._when = [], [], [], when

    def stage(self, candidate, text):
        self.stages.append((candidate, text))
        self._when(candidate, text)

    def note(self, text):
        self.notes.append(text)

    def done(self, record, device=None):
        self.outcomes.append((device, record.candidate))


def own(result):
    return [record for record in result.records if record.role == "candidate"]


def test_every_candidate_is_judged_once_with_the_verdict_that_one_machine_gives(nodes, request_for):
    told = Listening()
    [result] = running.run(request_for(NAMES), Link("cpu"), told)
    assert {record.candidate: record.status.value for record in own(result)} == EXPECTED
    assert len(own(result)) == len(NAMES)
    assert len({name.partition(" ")[0] for name, _ in told.stages}) == 2
