"""A baseline of the user's own in a device run: judged after eager and before all else, whatever becomes of it."""

from __future__ import annotations

import pytest
from fake_worker import PRODUCT, Script

from harness.model.candidate import read_baseline

SPEEDUPS = {"eager": 1.0, "expert": 2.0, "mine": 4.0}


@pytest.fixture
def run_over(fake_run, tmp_path):
    """`run_over(expert)`: a run over the expert's file, which such a script attempts; None: over eager."""

    def make(expert):
        (tmp_path / "expert.py").write_text(f"{PRODUCT}\nModelNew = Model\n")
        baseline = None if expert is None else read_baseline(tmp_path / "expert.py")
        return fake_run(scripts={"expert": expert or Script(), "mine": Script(250.0)}, baseline=baseline)

    return make


def test_the_file_is_judged_after_eager_and_every_row_is_over_it_eager_s_own_among_them(run_over):
    run = run_over(Script(500.0))
    run.device_run.run([run.candidate("mine")])
    assert run.started == run.rows.names == [*SPEEDUPS]
    assert {row.baseline for row in run.rows.all} == {"expert"}
    assert (run.rows["eager"].speedup, run.rows["expert"].speedup, run.rows["mine"].speedup) == (
        pytest.approx(0.5), None, pytest.approx(2.0)
    )
    assert {row.candidate: row.eager_speedup for row in run.rows.all} == pytest.approx(SPEEDUPS)
    assert run.rows["expert"].role == "baseline" and run.rows["mine"].role == "candidate"


def test_its_worker_gets_ready_while_eager_is_judged(run_over):
    run = run_over(Script(500.0))
    run.device_run.run([run.candidate("mine")])
    assert run.log.index("expert opens the device ahead") < run.log.index("eager ends")


def test_eager_s_row_is_written_all_the_same_when_the_file_s_turn_is_interrupted(run_over):
    def interrupted():
        raise KeyboardInterrupt

    run = run_over(Script(loads=interrupted))
    with pytest.raises(KeyboardInterrupt):
        run.device_run.run([run.candidate("mine")])
    [row] = run.rows.all
    assert (row.candidate, row.baseline, row.speedup, row.eager_speedup) == ("eager", "expert", None, 1.0)


def test_over_eager_nothing_is_held_back(run_over):
    run = run_over(None)
    seen = []
    run.build_pool.scripts["mine"] = [Script(250.0, loads=lambda: seen.extend(run.rows.names))]
    run.device_run.run([run.candidate("mine")])
    assert seen == ["eager"], "it was written before the next began"
    assert (run.rows["eager"].baseline, run.rows["eager"].speedup, run.rows["eager"].eager_speedup) == ("eager", 1.0, None)
