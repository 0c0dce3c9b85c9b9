"""Eager's mean over several processes is made before the first row that is over it, and what baselines leave is kept."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fake_worker import SETTINGS, Script

from harness.model.verdict import Status

BOTH = ("eager", "eager-tf32")
STEPS = Script(steps_us=240.0)  # of the control; another worker's may take 25 µs less


@pytest.fixture
def short_run(fake_run):
    """`short_run(scripts)`: a run of calls of 16 µs, where eager is timed in three processes."""

    def make(**scripts):
        short = {name: replace(script, time_us=16.0) for name, script in scripts.items()}
        return fake_run(
            scripts=short, settings=replace(SETTINGS, eager_players=3), eager_us=16.0, baselines=BOTH,
        )

    return make


def test_it_is_timed_elsewhere_after_the_control_and_before_a_worker_of_a_row_is_taken(short_run):
    run = short_run(**{"eager-tf32": Script(), "mine": Script()})
    run.device_run.run([run.candidate("mine")])
    assert run.started == ["eager"] * 3 + ["eager-tf32", "mine"]
    assert run.rows.names == ["eager", "eager-tf32", "mine"]
    assert run.rows["mine"].baseline_mean_us == pytest.approx(16.0) and run.rows["eager"].baseline_mean_us is None


@pytest.mark.parametrize(("tf32_us", "status"), [(None, Status.UNSURE), (220.0, Status.OK), (200.0, Status.UNSURE)])
def test_what_the_harness_s_steps_took_around_other_baselines_is_known_of_the_control(fake_run, tf32_us, status):
    """A candidate around which they took 40 µs less than around the control is doubted, but where they have taken 20 less
    around another baseline. One that is in doubt itself says nothing of the harness.
    """
    run = fake_run(
        scripts={"eager": STEPS, "mine": Script(steps_us=200.0), "eager-tf32": Script(steps_us=tf32_us or 240.0)},
        baselines=BOTH if tf32_us else ("eager",),
    )
    run.device_run.run([run.candidate("mine")])
    assert run.rows["mine"].status is status
    if status is Status.UNSURE:
        assert "less than they must" in run.rows["mine"].reason


def test_a_control_that_is_timed_again_keeps_what_other_baselines_left(fake_run):
    doubted = replace(STEPS, beyond_us=40.0)
    run = fake_run(
        scripts={"eager": STEPS, "eager-tf32": Script(steps_us=220.0), "mine": [doubted, Script(steps_us=200.0)]},
        baselines=BOTH,
    )
    run.device_run.run([run.candidate("mine")])
    assert run.rows["mine"].status is Status.OK and run.started.count("eager") == 2


def test_where_it_cannot_be_timed_elsewhere_no_waiting_worker_is_left_behind(short_run):
    def refuse():
        raise OSError("no more processes")

    run = short_run()
    run.build_pool.scripts["eager"] = [Script(16.0), Script(loads=refuse)]
    with pytest.raises(OSError, match="no more processes"):
        run.device_run.run([run.candidate("mine")])
    assert "mine" not in run.started
    ahead = {each.split()[0] for each in run.log if each.endswith("ahead")}
    assert ahead and all(f"{name} is given up" in run.log for name in ahead)
