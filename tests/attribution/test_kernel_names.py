"""What a kernel's name says of whose it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.attribution.kernel_names import bare_name, is_header_template, is_library_like, is_numbas, is_shipped, stems_of

RECORDED = Path(__file__).with_name("recorded")


def names_in(file):
    return (RECORDED / file).read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("name", names_in("shipped_names.txt"))
def test_names_that_only_libraries_give_are_known(name):
    assert is_shipped(name)
    assert is_library_like(name)


@pytest.mark.parametrize(("name", "shipped"), [("triton_", True), ("triton_12", True), ("triton_mine", False)])
def test_what_torch_compile_calls_its_kernels_without_their_own_names_is_no_authors(name, shipped):
    assert is_shipped(name) is shipped


@pytest.mark.parametrize("name", names_in("anybodys_names.txt"))
def test_names_that_an_author_may_choose_are_nobodys_before_it_is_known_whose(name):
    assert not is_shipped(name)


@pytest.mark.parametrize("name", names_in("library_like_names.txt"))
def test_names_that_a_library_gives_and_an_author_might_are_known_as_such(name):
    assert is_library_like(name) and not is_shipped(name)


def test_a_name_that_a_library_may_have_given_is_told_from_one_that_none_would():
    assert is_library_like("sm90_gemm_kernel")
    assert is_library_like("void cub::CUB_200802_SM_900::DeviceReduceKernel<int>(int)")
    assert not is_library_like("tril_matmul_kernel")


@pytest.mark.parametrize("name", ["gemm_kernel2x2", "LSTM_elementWise_fp", "transposeBlock_kernel", "softmax_fw_kernel", "sgemm_largek"])
def test_a_kernel_in_triton_is_no_librarys_that_has_templates_of_that_name(name):
    assert not is_library_like(name)


def test_instantiations_of_header_libraries_are_told_apart():
    assert is_header_template("void cutlass::Kernel2<int>(int)")
    assert is_header_template("void thrust::THRUST_200700_SM_900::cuda_cub::core::kernel<int>(int)")
    assert not is_header_template("cutlass_80_simt_sgemm_256x128_8x4_nn_align1")


@pytest.mark.parametrize(
    ("name", "bare"),
    [
        ("tile", "tile"), ("tile(float*)", "tile"), ("void tiles::tile<32>(float const*, int)", "tile"),
        ("void (anonymous namespace)::softmax_warp_forward<float, 10>(float*)", "softmax_warp_forward"),
        ("cudapy::__main__::add[abi:v1][abi:cw51c](Array<float, 1, C, mutable, aligned>)", "add"),
        ("void tile<std::pair<int, int> >(std::pair<int, int>)", "tile"), ("", ""),
    ],
)
def test_the_bare_name_is_the_identifier_alone(name, bare):
    assert bare_name(name) == bare


CUTE = "kernel_cutlass_tril_by_cute_tensorptrf32genericoi641_tensorptrf32genericoi641_0"  # as version 4.8.1 has them
NUMBA = ("candidate_mine::tril_by_numba[abi:v1][abi:cw51cXTLSUwv1sDUaKthqaNgoKmjgOR3W3CwAkM]"  # and numba-cuda 0.30
         "(Array<float, 2, C, mutable, aligned>, long long)")


def test_a_kernel_of_cute_dsls_or_tilelangs_may_come_of_what_stands_before_arguments_and_number():
    assert "kernel_cutlass_tril_by_cute" in stems_of(CUTE) and "kernel_cutlass_tril" in stems_of(CUTE)
    assert CUTE not in stems_of(CUTE)
    assert stems_of("tile_kernel") == {"tile_kernel"} and stems_of("tile_kernel_12") == {"tile_kernel"}
    assert stems_of("kernel_cutlass_tril") == stems_of("tile_12") == stems_of("tile") == set()


def test_numbas_names_have_a_module_and_a_number_of_the_function():
    assert is_numbas(NUMBA) and bare_name(NUMBA) == "tril_by_numba"
    assert is_numbas("cudapy::__main__::add[abi:v1][abi:cw51c](Array<float, 1, C, mutable, aligned>)")
    assert not is_numbas("mine::add(float*)") and not is_numbas("add[abi:v1](float*)")
    assert not is_numbas("void cub::add[abi:_CCCL_3_0](float*)")
