"""A device run that goes on: its control, its canaries, and the parameters that one candidate may have learnt of."""

from __future__ import annotations

import pytest
from fake_worker import PRODUCT, Script

from harness.build.product import Build
from harness.model.verdict import ReasonCode, Status, Verdict

BROKEN = Build(Verdict(Status.BUILD_FAILED, ReasonCode.COMPILE_ERROR, "broken.py:7: expected ';'"))
WITH_PARAMETERS = PRODUCT.replace(
    "def forward(self, A, B):\n        return torch.matmul(A, B)",
    "def __init__(self):\n        super().__init__()\n        self.bias = torch.nn.Parameter(torch.rand(M))\n\n"
    "    def forward(self, A, B):\n        return torch.matmul(A, B) + self.bias",
)
DOUBTED = Script(beyond_us=40.0)  # more than the steps of the harness's own may differ by, and not twice as much


@pytest.fixture
def staying(fake_run):
    """`staying(…)`: a run whose `judge(name)` judges one more candidate; "broken" has not been built."""

    def make(**how):
        run = fake_run(**how)
        run.build_pool.builds["broken"] = BROKEN

        def judge(name):
            run.device_run.judge_alone(run.candidate(name), run.build_pool, "2026-05-01T00:00:01Z")

        run.judge = judge
        return run

    return make


def test_a_device_run_that_goes_on_judges_its_control_once_and_times_it_again_when_it_is_old(staying):
    run = staying()
    run.judge("mine")
    run.judge("mine")
    assert run.started == run.rows.names == ["eager", "mine", "mine"]
    assert len({row.run_id for row in run.rows.all[1:]}) == 2
    run.clock.sleep(61)
    run.judge("mine")
    assert run.started[3:] == ["eager", "mine"] and run.rows.names[3:] == ["mine"]


def test_canaries_that_stand_beside_a_time_are_of_its_minutes(staying):
    run = staying()
    run.backend.canaries_gbps = [4100.0, 4200.0]
    run.judge("mine")
    assert run.rows["mine"].canary_gbps == 4000.0, "those that the device run began with"
    run.clock.sleep(61)
    run.build_pool.is_quiet = False
    run.judge("mine")
    run.build_pool.is_quiet = True
    run.judge("broken")
    assert "the canary is measured" not in run.log, "compilers would take what is measured, and no time stands beside them"
    run.judge("mine")
    run.judge("mine")
    assert [row.canary_gbps for row in run.rows.all[-2:]] == [4100.0, 4100.0]


def test_what_an_earlier_problem_held_is_no_part_of_the_first_rows_peak(fake_run):
    run = fake_run(held_before=55 << 30)
    run.device_run.run([])
    assert run.rows["eager"].peak_bytes is None


def test_what_needs_no_launch_is_told_before_any_control_is_timed(staying):
    run = staying()
    run.judge("broken")
    assert run.rows["broken"].status is Status.BUILD_FAILED and run.rows.names == ["broken"]
    assert [each for each in run.log if each.startswith("eager")] == ["eager is given up"], "its worker would hold the device"


def test_a_control_that_was_timed_beside_compilers_is_timed_again_when_they_have_ended(staying):
    run = staying()
    run.build_pool.is_quiet = False
    run.judge("mine")
    run.judge("mine")
    assert run.started == ["eager", "mine", "mine"]
    run.build_pool.is_quiet = True
    run.judge("mine")
    assert run.started[3:] == ["eager", "mine"]


@pytest.mark.parametrize(("source", "is_drawn_anew"), [(PRODUCT, False), (WITH_PARAMETERS, True)])
def test_parameters_that_an_answer_told_of_are_drawn_anew_for_the_next_candidate(staying, source, is_drawn_anew):
    run = staying(source=source)
    for _ in range(3):
        run.judge("mine")
    seeds = [each for each in run.log if each.startswith("seed")]
    assert len(seeds) == 4 and len(set(seeds[-3:])) == (3 if is_drawn_anew else 1)
    assert run.started == ["eager", "mine", "mine", "mine"], "the control of before stands"
    assert {row.status for row in run.rows.all} == {Status.OK}


def test_a_control_whose_clock_is_in_doubt_is_not_timed_again_beside_compilers(staying):
    run = staying(scripts={"mine": [DOUBTED, Script(), Script()]})
    run.judge("other")
    run.build_pool.is_quiet = False
    run.log.clear()
    run.judge("mine")
    assert [each for each in run.log if each.endswith((" begins", "pause", "go on"))] == [
        "mine begins", "builds pause", "eager begins", "mine begins", "mine begins", "builds go on",
    ]
    assert run.rows["mine"].status is Status.OK


@pytest.mark.parametrize("has_room", [True, False])
def test_the_next_worker_opens_the_device_and_the_one_after_it_is_started(fake_run, has_room):
    run = fake_run(scripts={name: Script(900.0) for name in "abcd"})
    run.backend.has_room = has_room
    run.build_pool.building.add("c")
    run.device_run.run([run.candidate(name) for name in "abcd"])
    assert run.rows.names == ["eager", "a", "b", "d", "c"]
    before_a_ends = run.log[: run.log.index("a ends")]
    assert "b is started ahead" in before_a_ends
    assert ("b opens the device ahead" in before_a_ends) is has_room
    assert "d is started ahead" in before_a_ends and "d opens the device ahead" not in before_a_ends


@pytest.mark.parametrize(("saved", "status", "code"), [
    ("", Status.OK, ReasonCode.NONE), ("# another\n", Status.SKIPPED, ReasonCode.SAVED_MEANWHILE),
])
def test_a_file_that_is_saved_again_while_it_is_judged_is_judged_in_neither_text(fake_run, tmp_path, saved, status, code):
    path = tmp_path / "mine.py"
    run = fake_run(scripts={"mine": Script(loads=lambda: path.write_text(saved + path.read_text()))})
    run.device_run.run([run.candidate("mine")])
    row = run.rows["mine"]
    assert (row.status, row.reason_code) == (status, code)
    assert (row.time_us is None) == (status is Status.SKIPPED)
