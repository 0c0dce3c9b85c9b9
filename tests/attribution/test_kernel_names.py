"""What a kernel's name says of whose it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.attribution.kernel_names import bare_name, is_header_template, is_library_like, is_shipped

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


def test_a_name_that_a_library_may_have_given_is_told_from_one_that_none_would():
    assert is_library_like("sm90_gemm_kernel")
    assert is_library_like("void cub::CUB_200802_SM_900::DeviceReduceKernel<int>(int)")
    assert not is_library_like("tril_matmul_kernel")


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
