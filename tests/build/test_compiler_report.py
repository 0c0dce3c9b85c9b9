"""Reading what ptxas says, from output recorded with nvcc 13.0."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.build.compiler_report import KernelReport, kernel_reports, of_each, short_name, summary

RECORDED = Path(__file__).with_name("recorded")


@pytest.fixture
def kernels():
    return kernel_reports((RECORDED / "ptxas_verbose.txt").read_text())


def test_every_kernel_is_read_with_its_figures(kernels):
    assert kernels == (
        KernelReport("tiles::sum_kernel<1024, float>", "sm_90a", 22, 0, 0, 4096, None),
        KernelReport("spilling_kernel", "sm_90a", 32, 588 + 596, 336, 0, None),
    )


def test_the_summary_gives_the_worst_of_each(kernels):
    assert summary(kernels[:1]) == "sm_90a, 22 registers, 0 spills, 4 KB shared"
    assert summary(kernels) == "sm_90a, 2 kernels, 32 registers, 1184 bytes of spills, 4 KB shared"
    assert summary(()) == ""


def test_constant_memory_of_several_banks_is_added():
    log = (
        "ptxas info    : Compiling entry function 'plain' for 'sm_80'\n"
        "ptxas info    : Used 40 registers, 1000 bytes smem, 400 bytes cmem[0], 8 bytes cmem[2]\n"
    )
    (kernel,) = kernel_reports(log)
    assert (kernel.kernel, kernel.shared_bytes, kernel.constant_bytes) == ("plain", 1000, 408)
    assert summary([kernel]) == "sm_80, 40 registers, 0 spills, 1000 B shared"


def test_output_without_kernels_has_none():
    assert kernel_reports("ninja: no work to do.\n") == ()


@pytest.mark.parametrize(("symbol", "name"), [
    ("_Z11tril_kernelPKfS0_Pfi", "tril_kernel"),
    ("_ZN5tiles4tileEPf", "tiles::tile"),
    ("_ZN12_GLOBAL__N_16hiddenEPf", "hidden"),
    ("_Z4tileILi32ELb1EEvPf", "tile<32, true>"),
    ("_Z4copyI6float4EvPT_", "copy<float4>"),
    ("_Z12split_kernelIL7Product1ELb0EEvPKf", "split_kernel<(Product)1, false>"),
    ("extern_c_kernel", "extern_c_kernel"),
])
def test_a_symbol_is_shortened_to_what_a_person_wrote(symbol, name):
    assert short_name(symbol) == name


def test_the_constant_variables_of_a_source_count_for_each_of_its_kernels_and_for_no_other_source():
    log = "\n".join([
        "ptxas info    : 64 bytes gmem, 256 bytes cmem[3], 8 bytes cmem[4]",
        "ptxas info    : Compiling entry function '_Z1jPf' for 'sm_80'",
        "ptxas info    : Used 8 registers, used 0 barriers, 360 bytes cmem[0]",
        "ptxas info    : Compiling entry function '_Z1kPfi' for 'sm_80'",
        "ptxas info    : Used 10 registers, used 0 barriers",
        "ptxas info    : 64 bytes gmem",
        "ptxas info    : Compiling entry function '_Z1lPf' for 'sm_90a'",
        "ptxas info    : Used 8 registers, used 0 barriers",
    ])
    found = {kernel.kernel: kernel.constant_bytes for kernel in kernel_reports(log)}
    assert found == {"j": 616, "k": 256, "l": None}


def test_each_kernel_is_told_for_each_architecture_without_what_is_not_known():
    known = [KernelReport("tile", "sm_80", 40, 8, 16, 2048, 380), KernelReport("tile", "sm_90a", 32, 0, 0, 0, None)]
    assert of_each(known) == (
        "tile for sm_80: 40 registers, 8 spills, 16 stack, 2048 shared, 380 constant; "
        "tile for sm_90a: 32 registers, 0 spills, 0 stack, 0 shared"
    )
    assert of_each([]) == ""


def test_of_very_many_kernels_the_rest_is_counted():
    assert of_each([KernelReport("tile", "sm_80", 40, 0, 0, 0, None)] * 75).endswith("0 shared; and 15 more")
