"""What becomes of an entry that is tried, over a fake device whose clock and workers follow scripts."""

from __future__ import annotations

import math

import pytest
from fake_worker import Script

from harness.model.baselines import compilation_notes
from harness.model.verdict import ReasonCode, Status


def test_graphs_that_are_compiled_while_a_baseline_is_timed_are_noted():
    assert compilation_notes("torch.compile", 1, 1) == compilation_notes("eager", 0, 0) == []
    assert compilation_notes("torch.compile", 1, 2) == [
        "torch.compile compiled 1 more graph while it was timed: that is in its times"
    ]
    assert "2 more graphs" in compilation_notes("torch.compile", 3, 5)[0]


def test_a_torch_compile_that_compiled_nothing_is_eager_and_said_to_be():
    assert compilation_notes("torch.compile", 0, 0) == ["torch.compile compiled nothing: what was timed is eager"]


@pytest.fixture
def judged(fake_run):
    """`judged(script, control, …)`: the run in which a worker of that script tried "mine", beside such a control."""

    def make(script, control=None, name="mine", candidates=("mine",), **how):
        scripts = {name: script} | ({} if control is None else {"eager": control})
        run = fake_run(scripts=scripts, **how)
        run.device_run.run([run.candidate(each) for each in candidates])
        return run

    return make


def test_who_slows_the_baseline_down_is_rejected_by_what_eager_takes_alone_when_no_worker_that_waits_is_busy(judged):
    run = judged(Script(slows_eager=1.2), candidates=("mine", "other"))
    row = run.rows["mine"]
    assert (row.status, row.reason_code) == (Status.REJECTED, ReasonCode.CLOCKS_DISAGREE)
    assert "it slows the baseline down" in row.reason and run.rows["other"].status is Status.OK
    before = run.log[: run.log.index("eager is timed alone")]
    assert before[-1] == "other has opened the device" and "mine ends" in before
    assert run.log[len(before) : len(before) + 3] == ["eager is timed alone"] * 3


def test_on_a_cpu_who_slows_the_baseline_down_within_what_is_allowed_is_not_faster_for_it(judged):
    run = judged(Script(slows_eager=1.2), kind="cpu")
    row, eager = run.rows["mine"], run.rows["eager"]
    assert row.status is Status.OK and row.speedup > 1.1 * eager.speedup
    assert row.call == "UNSURE" and row.speedup_lo <= 1.001 * eager.speedup_hi


def wave(call: int) -> float:
    """Times that rise and fall by two thirds, too slowly for a probe to make anything of it."""
    return 500.0 * math.exp(0.5 * math.sin(call / 40))


@pytest.mark.parametrize(("name", "synchronises", "is_control_gated", "is_doubted"), [
    ("eager-tf32", False, True, False), ("mine", False, True, True), ("mine", True, True, True),
    ("mine", True, False, False),
])
def test_a_candidate_whose_rounds_scatter_is_doubted_but_where_the_reference_cannot_be_queued_and_no_baseline_is(
    judged, name, synchronises, is_control_gated, is_doubted
):
    run = judged(
        Script(wave, synchronises=synchronises), Script(synchronises=not is_control_gated), name,
        baselines=("eager", "eager-tf32"),
    )
    row = run.rows[name]
    assert row.speedup_hi is None or row.speedup_hi > 1.05 * row.speedup_lo
    assert row.status is (Status.UNSURE if is_doubted else Status.OK)
    assert ("only known to lie between" in (row.reason or "")) is is_doubted


@pytest.mark.parametrize(("name", "synchronises", "kind", "beyond_us", "is_traced"), [
    ("mine", True, "cuda", 100.0, True), ("mine", False, "cuda", 40.0, False), ("eager-tf32", True, "cuda", 100.0, False),
    ("mine", False, "cpu", 3000.0, False),
])
@pytest.mark.parametrize("is_longer", [True, False])
def test_a_doubted_clock_of_an_ungated_queue_is_settled_by_what_its_kernels_take(
    judged, name, synchronises, kind, beyond_us, is_traced, is_longer
):
    run = judged(
        Script(500.0, beyond_us=beyond_us, synchronises=synchronises, kernels_us=1500.0 if is_longer else 450.0), None, name,
        kind=kind, baselines=("eager", "eager-tf32"),
    )
    row = run.rows[name]
    assert row.status is (Status.REJECTED if is_traced and is_longer else Status.UNSURE)
    assert ("its kernels kept the GPU busy for" in row.reason) is (is_traced and is_longer)


def test_what_is_certain_is_not_traced_for_that(judged):
    row = judged(Script(500.0, beyond_us=2500.0, synchronises=True, kernels_us=1500.0)).rows["mine"]
    assert row.status is Status.REJECTED and "by the judge's clock a launch took" in row.reason


def test_the_kernels_of_a_baseline_are_counted_in_a_probe_among_its_rounds(judged):
    run = judged(Script(500.0), candidates=(), baselines=("eager",))
    assert run.rows["eager"].status is Status.OK and run.log.count("kernels are recorded") >= 1
