"""What NVML says of a GPU, and what is said where it does not answer."""

from __future__ import annotations

import os
import sys
import types

import pytest

from harness.device.identity import DeviceIdentity, Telemetry, Violations, cpu_name
from harness.device.nvml import THERMAL, Nvml, is_thermal


def process(pid):
    return types.SimpleNamespace(pid=pid)


@pytest.fixture
def library(monkeypatch):
    """A stand-in for pynvml whose answers a test may replace."""
    answers = {
        "nvmlInit": lambda: None,
        "nvmlDeviceGetHandleByUUID": lambda uuid: uuid,
        "nvmlSystemGetDriverVersion": lambda: "580.159",
        "nvmlDeviceGetEnforcedPowerLimit": lambda handle: 700_000,
        "nvmlDeviceGetClockInfo": lambda handle, which: {1: 1980, 2: 3201}[which],
        "nvmlDeviceGetPowerUsage": lambda handle: 123_456,
        "nvmlDeviceGetTemperature": lambda handle, sensor: 41,
        "nvmlDeviceGetCurrentClocksThrottleReasons": lambda handle: 0,
        "nvmlDeviceGetComputeRunningProcesses": lambda handle: [process(os.getpid())],
    }
    module = types.SimpleNamespace(NVML_CLOCK_SM=1, NVML_CLOCK_MEM=2, NVML_TEMPERATURE_GPU=0, **answers)
    monkeypatch.setitem(sys.modules, "pynvml", module)
    return module


def test_a_reading_is_in_the_units_that_its_names_promise(library):
    nvml = Nvml("GPU-1")
    assert nvml.driver() == "580.159"
    assert nvml.power_limit_w() == 700
    assert nvml.telemetry(set()) == Telemetry(1980, 3201, 123.456, 41.0, "", 0)


@pytest.mark.parametrize("uuid", ["abc", "GPU-abc"])
def test_the_gpu_is_found_by_its_uuid_with_or_without_the_prefix(library, uuid):
    assert Nvml(uuid)._handle == "GPU-abc"


@pytest.mark.parametrize(
    ("mask", "named", "thermal"),
    [(0x0, "", False), (0x1, "", False), (0x4, "power_cap", False), (0x40, "hw_thermal", True),
     (0x4 | 0x20, "power_cap+sw_thermal", True), (0x8, "hw_slowdown", True), (0x80, "hw_power_brake", True)],
)
def test_a_power_cap_is_a_steady_state_and_heat_is_not(library, mask, named, thermal):
    library.nvmlDeviceGetCurrentClocksThrottleReasons = lambda handle: mask
    reading = Nvml("GPU-1").throttle()
    assert reading == named
    assert is_thermal(reading) is thermal


def test_unknown_throttling_is_not_called_heat():
    assert is_thermal(None) is False
    assert all(is_thermal(name) for name in THERMAL.values())


def test_own_processes_are_not_others(library):
    library.nvmlDeviceGetComputeRunningProcesses = lambda handle: [process(os.getpid()), process(1), process(2)]
    nvml = Nvml("GPU-1")
    assert nvml.telemetry({1}).other_processes == 1
    assert nvml.telemetry(set()).other_processes == 2
    assert nvml.processes() >= {os.getpid(), 1}


def test_a_process_list_without_ourselves_is_unknown_and_not_none(library):
    library.nvmlDeviceGetComputeRunningProcesses = lambda handle: [process(1)]
    assert Nvml("GPU-1").telemetry(set()).other_processes is None
    library.nvmlDeviceGetComputeRunningProcesses = lambda handle: []
    assert Nvml("GPU-1").telemetry(set()).other_processes is None


def test_how_long_limits_held_the_clocks_down_is_what_came_to_it(library):
    gated_ns = {0: 7_000_000, 1: 0}
    library.NVML_PERF_POLICY_POWER, library.NVML_PERF_POLICY_THERMAL = gated_ns
    library.nvmlDeviceGetViolationStatus = lambda handle, policy: types.SimpleNamespace(violationTime=gated_ns[policy])
    nvml = Nvml("GPU-1")
    before = nvml.violations()
    gated_ns[0] += 2_000_000
    assert before == Violations(7_000_000, 0) and nvml.violations().since(before) == Violations(2_000_000, 0)
    del library.NVML_PERF_POLICY_THERMAL  # an NVML that knows no such policy
    assert nvml.violations().since(before) == Violations(2_000_000, None)


def test_one_reading_that_is_refused_leaves_the_others(library):
    def refuse(*_):
        raise RuntimeError("Not Supported")

    library.nvmlDeviceGetPowerUsage = refuse
    reading = Nvml("GPU-1").telemetry(set())
    assert reading.watts is None
    assert reading.sm_mhz == 1980


def test_without_nvml_everything_is_unknown(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    nvml = Nvml("GPU-1")
    assert not nvml.present
    assert nvml.telemetry({1}) == Telemetry()
    assert nvml.violations() == Violations()
    assert nvml.driver() is nvml.power_limit_w() is None


def test_what_was_not_read_of_a_device_stays_empty():
    identity = DeviceIdentity(kind="cpu", name="x")
    assert identity.uuid is identity.sm is identity.driver is identity.power_limit_w is None


def test_the_processor_has_a_name():
    assert cpu_name().strip()


@pytest.mark.gpu
def test_a_real_gpu_answers_with_clocks_power_and_heat():
    import torch

    torch.zeros(1, device="cuda:0")
    reading = Nvml(str(torch.cuda.get_device_properties(0).uuid)).telemetry(set())
    assert reading.sm_mhz > 100
    assert 5 < reading.watts < 3000
    assert 5 < reading.celsius < 120
    assert reading.throttle is not None
    held = Nvml(str(torch.cuda.get_device_properties(0).uuid)).violations()
    assert held.power_ns is None or held.power_ns >= 0
