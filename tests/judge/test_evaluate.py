"""What becomes of an entry that is tried, over a fake device whose clock and workers follow scripts."""

from __future__ import annotations

import math

import pytest
from fake_worker import PRODUCT, Script

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


DRAWS = PRODUCT.replace("def get_inputs():\n", "def get_inputs():\n    import fake_worker\n    fake_worker.drawn()\n")


class Drawn:
    """Tells the log of a run, once it has one, of each draw as a worker goes; and `fails` then, if it is to."""

    def __init__(self, monkeypatch):
        self.run = self.fails = None
        monkeypatch.setattr("fake_worker.drawn", self, raising=False)

    def __call__(self):
        if self.run is not None and self.run.log and self.run.log[-1].endswith((" goes", " is drawn for")):
            if self.fails is not None:
                raise self.fails
            self.run.log.append("the next is drawn for")

    def as_each_went(self):
        """The names of those that went, each with the number of draws meanwhile."""
        log, went = self.run.log, {}
        for at, line in enumerate(log):
            if line.endswith(" goes"):
                name = line.removesuffix(" goes")
                went[name] = log[at : log.index(f"{name} ends", at)].count("the next is drawn for")
        return went


@pytest.fixture
def drawn(fake_run, monkeypatch):
    """`drawn(kind, fails=…, scripts=…)`: the draws of a run of three candidates."""

    def make(kind="cuda", fails=None, **how):
        found = Drawn(monkeypatch)
        found.run = fake_run(kind=kind, source=DRAWS, **how)
        found.fails = fails
        found.run.device_run.run([found.run.candidate(name) for name in ("mine", "other", "third")])
        return found

    return make


def test_as_a_worker_goes_the_next_entrys_checks_are_made_ready_and_after_the_last_none(drawn):
    went = drawn().as_each_went()
    assert went["eager"] >= went["mine"] == went["other"] > 1 and went["third"] == 0


def test_on_a_cpu_they_are_not(drawn):
    """There nothing is waited for."""
    assert not any(drawn("cpu").as_each_went().values())


def test_what_a_candidate_that_failed_left_ready_is_not_drawn_again(drawn):
    went = drawn(scripts={"mine": Script(raises="no")}).as_each_went()
    assert went["mine"] <= 1 < went["other"]


def test_what_goes_wrong_there_hides_no_verdict(drawn):
    assert {row.status for row in drawn(fails=RuntimeError("out of memory")).run.rows.all} == {Status.OK}


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
