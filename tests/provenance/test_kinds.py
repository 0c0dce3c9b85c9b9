"""From the kernels or operators of a profiled launch to a kind."""

from __future__ import annotations

import pytest

from harness.provenance.kinds import kind_on_cpu, kind_on_gpu

OWN = {"tiled_kernel", "tiled(float const*, float const*, float*, int)"}
MINE = "tiled(float const*, float const*, float*, int)"
THEIRS = "ampere_sgemm_128x64_nn"


def kernels(**times_us):
    return [{"name": name, "us": time_us} for name, time_us in times_us.items()]


@pytest.mark.parametrize(
    ("own_us", "library_us", "kind"),
    [(100, 0, "custom"), (95, 5, "custom"), (94, 6, "mixed"), (50, 50, "mixed"), (6, 94, "mixed"), (5, 95, "library"),
     (0, 100, "library")],
)
def test_the_share_of_the_time_in_own_kernels_decides(own_us, library_us, kind):
    found = kind_on_gpu([{"name": MINE, "us": own_us}, {"name": THEIRS, "us": library_us}], OWN)
    assert found.kind == kind
    assert found.own_share == pytest.approx(own_us / 100)


def test_every_kernel_is_listed_with_its_owner():
    found = kind_on_gpu(
        [{"name": MINE, "us": 3.0}, {"name": THEIRS, "us": 1.0}, {"name": "Memset (Device)", "us": 9.0}], OWN
    )
    assert found.kernels == ((MINE, 3.0, "own"), (THEIRS, 1.0, "library"), ("Memset (Device)", 9.0, "driver"))


def test_copies_and_fills_count_for_nobody():
    found = kind_on_gpu([{"name": MINE, "us": 1.0}, {"name": "Memcpy DtoD (Device -> Device)", "us": 99.0}], OWN)
    assert found.kind == "custom"


@pytest.mark.parametrize(
    "listed", [[], [{"name": "Memset (Device)", "us": 5.0}], [{"name": MINE, "us": 0.0}]],
    ids=["nothing ran", "only a fill", "a kernel of no time"],
)
def test_without_any_time_the_kind_is_unknown(listed):
    assert kind_on_gpu(listed, OWN).kind == "unknown"


def test_a_kernel_that_nobody_built_here_is_not_the_candidates_whatever_its_name():
    assert kind_on_gpu(kernels(my_very_own_kernel=10.0), OWN).kind == "unknown"


@pytest.mark.parametrize(
    "name",
    [
        "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize128x128x8_stage3_warpsize2x4x1_ffma_aligna4_alignc4_execute_kernel__5x_cublas",
        "void cutlass::Kernel2<cutlass_80_simt_sgemm_256x128_8x4_nn_align1>(cutlass_80_simt_sgemm_256x128_8x4_nn_align1::Params)",
        "void at::native::(anonymous namespace)::triu_tril_kernel<float, int, false, 4, true>(int)",
        "nvjet_tst_128x256_64x4_1x2_h_bz_coopA_TNT",
    ],
)
def test_kernels_of_pytorchs_libraries_are_known_by_their_names(name):
    assert kind_on_gpu([{"name": name, "us": 10.0}], OWN).kind == "library"


def test_a_triton_kernel_is_known_by_its_bare_name():
    assert kind_on_gpu(kernels(tiled_kernel=10.0), OWN).kind == "custom"


@pytest.mark.parametrize(
    ("library_us", "has_extension", "kind"),
    [(0, True, "custom"), (3, True, "custom"), (50, True, "mixed"), (97, True, "library"),
     (97, False, "library"), (10, False, "unknown")],
)
def test_on_a_cpu_the_share_of_pytorchs_operators_decides(library_us, has_extension, kind):
    operators = [{"name": "aten::mm", "us": library_us}]
    assert kind_on_cpu(operators, 100.0, has_extension=has_extension).kind == kind


def test_on_a_cpu_reserving_memory_and_looking_at_it_otherwise_is_no_arithmetic():
    operators = [{"name": name, "us": 30.0} for name in ("aten::empty", "aten::view", "aten::transpose")]
    assert kind_on_cpu(operators, 100.0, has_extension=True).kind == "custom"


def test_on_a_cpu_a_call_of_no_time_is_unknown():
    assert kind_on_cpu([], 0.0, has_extension=True).kind == "unknown"


def test_a_listing_that_claims_more_library_time_than_there_was_does_not_go_below_zero():
    assert kind_on_cpu([{"name": "aten::mm", "us": 500.0}], 100.0, has_extension=True).own_share == 0
