"""What ncu wrote, read back: rows of kernels, or its own words in a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.tools.counters import metrics
from harness.tools.counters.measurement import read_log

RECORDED = Path(__file__).parent / "recorded"


def recorded(name: str):
    return read_log((RECORDED / f"{name}.txt").read_text(encoding="utf-8"))


def test_a_recorded_call_of_one_kernel_has_its_name_and_its_counters_in_base_units():
    read = recorded("triton_ieee")
    [kernel] = read.kernels
    assert read.trouble is None and kernel.name == "tril_matmul_kernel"
    assert kernel.values[metrics.DURATION] == 632832.0
    assert kernel.values[metrics.DRAM_BYTES] == 169009664.0
    assert kernel.values[metrics.REGISTERS] == 104.0


def test_names_with_commas_and_types_are_whole():
    names = [kernel.name for kernel in recorded("library_kernels").kernels]
    assert len(names) == 3 and names[1].startswith("void at::triu_tril_kernel<float, int, 0, 2, 0>(at::TensorInfo<T1, T2>,")


def test_what_was_not_measured_is_left_out():
    [kernel] = recorded("tiled_shared").kernels
    assert metrics.FMA_PERCENT not in kernel.values
    assert all("__" in name for name in kernel.values)


@pytest.mark.parametrize(("text", "said"), [
    ("==PROF== Connected\n==ERROR== ERR_NVGPUCTRPERM - The user does not have permission\n", "may not read the GPU's counters"),
    ("==PROF== Connected\n==ERROR== Failed to prepare kernel for profiling\n==WARNING== x\n", "Failed to prepare kernel"),
    ("==WARNING== No kernels were profiled.\n", "ncu says: No kernels were profiled."),
    ("==PROF== Connected\n", "saw no kernel"), ("", "saw no kernel"),
    ('"ID","Kernel Name"\n', "saw no kernel"), ('"one","two"\n"1","2"\n', "saw no kernel"), ('"ID","Kernel', "saw no kernel"),
])
def test_a_log_without_kernels_is_a_sentence(text, said):
    read = read_log(text)
    assert read.kernels == () and said in read.trouble


def test_who_may_not_read_counters_is_told_how_to_be_let():
    trouble = read_log("==ERROR== ERR_NVGPUCTRPERM - see\n").trouble
    assert "NVreg_RestrictProfilingToAdminUsers=0" in trouble and "as root" in trouble
