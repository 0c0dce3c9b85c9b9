"""What goes into the JSON lines beside a record, filled from a judgement and a build."""

from __future__ import annotations

from harness.accuracy.bounds import Bounds
from harness.accuracy.classes import ErrorFigures
from harness.build.product import Build
from harness.build.report import KernelReport
from harness.device.identity import Telemetry
from harness.records.assembling import samples_of
from harness.records.schema import LONGEST_TEXT
from harness.referee.judging import Judgement
from harness.referee.timing import Timing


def test_a_contestant_that_did_not_come_to_a_part_lacks_it():
    assert samples_of(None) == {}
    assert set(samples_of(None, Build(None))) == {"build"}
    assert set(samples_of(Judgement())) == {"players", "errors", "kernels"}


def test_each_reading_of_the_device_has_its_time_and_whether_its_round_was_kept():
    timing = Timing(
        telemetry=[Telemetry(sm_mhz=1980), Telemetry(sm_mhz=1200, throttle="hw_thermal")],
        read_at_s=[0.1, 0.2],
        read_kept=[True, False],
    )
    (player,) = samples_of(Judgement(timings=[timing]))["players"]
    assert (player["read_at_s"], player["read_kept"]) == ([0.1, 0.2], [True, False])
    assert [reading["sm_mhz"] for reading in player["telemetry"]] == [1980, 1200]


def test_an_error_is_kept_for_each_family_beside_eagers_and_the_bound():
    figures = ErrorFigures(3.0, 1.0, 2.0, 0.5, "signs", "M=31", Bounds(max_u=17.0, rms_u=5.0))
    (error,) = samples_of(Judgement(figures=[figures]))["errors"]
    assert (error["family"], error["max_u"], error["eager_max_u"], error["allowed_max_u"]) == ("signs", 3.0, 2.0, 17.0)


def test_what_the_compilers_said_is_kept_from_its_end():
    kernel = KernelReport("tile", "sm_90a", 32, 0, 0, 8192, 16)
    log = "early\n" + "x" * LONGEST_TEXT
    build = samples_of(None, Build(None, kernels=(kernel,), log=log, built_by="nvcc 13.0", warnings="line 3"))["build"]
    assert build["kernels"][0]["registers"] == 32 and build["built_by"] == "nvcc 13.0" and build["warnings"] == "line 3"
    assert build["log"] == "x" * LONGEST_TEXT
