"""What goes into the JSON lines beside a record, filled from a judgement and a build."""

from __future__ import annotations

from harness.build.compiler_report import KernelReport
from harness.build.product import Build
from harness.device.identity import Telemetry
from harness.judge.judgement import Judgement
from harness.model.verdict import ReasonCode, Status, Verdict
from harness.reference.accuracy.bounds import Bounds
from harness.reference.accuracy.classes import ErrorFigures
from harness.results.assembly import CANARIES_KEEP_S, canaries_of, samples_of
from harness.timing.timings import Timing
from tests.fakes.fake_device import FakeBackend, FakeClock


def test_canaries_stand_for_a_device_for_a_minute(monkeypatch):
    clock = FakeClock()
    clock.install(monkeypatch)
    backend, other = FakeBackend(clock), FakeBackend(clock)
    backend.canaries_gbps = [4000.0, 3000.0]
    first = canaries_of(backend)
    other.canaries_gbps = [1000.0]
    assert (first.gbps, canaries_of(other).gbps) == (4000.0, 1000.0)
    clock.sleep(0.9 * CANARIES_KEEP_S)
    assert canaries_of(backend) is first
    clock.sleep(0.2 * CANARIES_KEEP_S)
    assert canaries_of(backend).gbps == 3000.0


def test_a_entry_that_did_not_come_to_a_part_lacks_it():
    assert samples_of(None) == {}
    assert set(samples_of(None, Build(None))) == {"build"}
    assert set(samples_of(Judgement())) == {"players", "errors", "kernels"}


def test_each_reading_of_the_device_has_its_time_and_whether_its_round_was_kept():
    timing = Timing(
        telemetry=[Telemetry(sm_mhz=1980), Telemetry(sm_mhz=1200, throttle="hw_thermal")],
        read_at_s=[0.1, 0.2],
        read_kept=[True, False],
    )
    (worker,) = samples_of(Judgement(timings=[timing]))["players"]
    assert (worker["read_at_s"], worker["read_kept"]) == ([0.1, 0.2], [True, False])
    assert [reading["sm_mhz"] for reading in worker["telemetry"]] == [1980, 1200]


def test_an_error_is_kept_for_each_family_beside_eagers_and_the_bound():
    figures = ErrorFigures(3.0, 1.0, 2.0, 0.5, "signs", "M=31", Bounds(max_u=17.0, rms_u=5.0))
    (error,) = samples_of(Judgement(figures=[figures]))["errors"]
    assert (error["family"], error["max_u"], error["eager_max_u"], error["allowed_max_u"]) == ("signs", 3.0, 2.0, 17.0)


def test_what_the_compiler_said_is_kept_for_each_kernel_and_architecture_also_without_a_judgement():
    kernels = tuple(KernelReport("tile", arch, 40, 8, 16, 2048, 380) for arch in ("sm_80", "sm_90a"))
    verdict = Verdict(Status.COMPILED, ReasonCode.NO_GPU, "for two")
    build = Build(
        verdict, kernels=kernels, built_by="nvcc 13.0", headers="slim", compiler_warnings="a.py:3: unused\na.py:4: x",
        log="early" + "x" * 20_000, warnings="it builds twice",
    )
    kept = samples_of(None, build)["build"]
    assert [kernel["arch"] for kernel in kept["kernels"]] == ["sm_80", "sm_90a"]
    assert kept["kernels"][0] == {
        "kernel": "tile", "arch": "sm_80", "registers": 40, "spill_bytes": 8, "stack_bytes": 16, "shared_bytes": 2048,
        "constant_bytes": 380,
    }
    assert kept["compiler_warnings"] == ["a.py:3: unused", "a.py:4: x"]
    assert kept["headers"] == "slim"
    assert kept["log"] == "x" * 20_000
    assert kept["warnings"] == "it builds twice"


def test_a_baseline_has_no_build():
    assert samples_of(None, None) == {}
