"""What is made of probes: how much a call gained, whether that is a finding, and how often it was one."""

from __future__ import annotations

import pytest

from harness.model.device_limits import CUDA, limits_of
from harness.timing.probes import result
from harness.timing.probes.result import ProbeResult, worse


@pytest.mark.parametrize(("known", "found", "kept"), [
    (None, ProbeResult(150.0, 100.0), 1),
    (ProbeResult(150.0, 100.0), ProbeResult(170.0, 100.0), 1),
    (ProbeResult(150.0, 100.0, 50.0), ProbeResult(170.0, 100.0, 0.0), 0),  # certain, then doubted by more
    (ProbeResult(101.0, 100.0), ProbeResult(170.0, 100.0, 0.0), 1),  # nothing, then doubted
])
def test_of_two_looks_the_one_that_says_more_against_a_candidate_counts(known, found, kept):
    assert worse(known, found) == (known, found)[kept]


def test_the_findings_of_all_looks_are_counted():
    known = None
    for findings, counted in ((0, 0), (2, 2), (1, 3)):
        known = worse(known, ProbeResult(100.0, 100.0, findings=findings))
        assert (known.findings, known.was_often_one) == (counted, counted == 3)


@pytest.mark.parametrize("kind", ["cuda", "cpu"])
@pytest.mark.parametrize(("gains", "findings"), [([0], 0), ([1, 0, 0, 0, 0], 1), ([1, 0, 1, 0, 1], 3)])
def test_findings_with_open_inputs_are_counted_by_pairs(kind, gains, findings):
    before = [1] if kind == "cuda" and findings else []  # on a GPU the first probe has no pair of its own
    coins = iter(before + gains)

    def segment(early_s):
        return [5000.0 - (3000.0 * next(coins) if early_s else 0.0)] * 4

    found = result.probe(segment, limits_of(kind).probe, [5000.0])
    assert found.findings == len(before) + findings
    assert list(coins) == []


@pytest.mark.parametrize("faster", [1, 3, 8])
def test_an_honest_call_that_has_faster_launches_now_and_then_is_no_finding(faster):
    slow = [100.0 + number / 10 for number in range(16)]
    segments = iter([slow[faster:] + [80.0] * faster] * 2)
    assert not result.probe(lambda early_s: next(segments), CUDA.probe, slow).is_finding


@pytest.mark.parametrize(("begun", "is_found"), [(0, False), (2, False), (3, True), (8, True), (16, True)])
def test_on_a_gpu_who_begins_some_of_the_launches_with_open_inputs_early_is_found_out(begun, is_found):
    usual = [440.0 + 4 * number for number in range(16)]

    def segment(early_s):
        return usual[begun:] + [20.0] * begun if early_s else usual

    found = result.probe(segment, CUDA.probe, usual)
    assert found.is_finding == found.is_certain == is_found


def test_the_raw_samples_say_by_which_clock_it_was_seen():
    seen = ProbeResult(1000.0, 900.0, gained_beside_us=40.0, findings=2, limits=CUDA.ungated_probe)
    assert seen.to_json() == {
        "usual_us": 1000.0, "early_us": 900.0, "gained_beside_us": 40.0, "findings": 2, "kind": "ungated",
    }
