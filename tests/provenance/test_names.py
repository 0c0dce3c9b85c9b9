"""What a kernel's name says of whose it is."""

from __future__ import annotations

import pytest

from harness.provenance.names import bare_name, is_header_template, is_library_like, is_shipped

SHIPPED = [
    "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize128x128x8_stage3_warpsize2x4x1_ffma_aligna4_alignc4_execute_kernel__5x_cublas",
    "void cutlass::Kernel2<cutlass_80_simt_sgemm_256x128_8x4_nn_align1>(cutlass_80_simt_sgemm_256x128_8x4_nn_align1::Params)",
    "cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_16x16_128x2_nn_align8",
    "void cutlass__5x_cudnn::Kernel<cutlass_tensorop_s1688fprop_optimized_tf32_64x64_32x5_nhwc_align4>(cutlass_tensorop_s1688fprop_optimized_tf32_64x64_32x5_nhwc_align4::Params)",
    "cutlass3x_sm90_tensorop_s64x128x16gemm_bf16_bf16_f32_void_bf16_128x128x64_2x1x1_0_tnn_align8_warpspecialized",
    "nvjet_tst_128x256_64x4_1x2_h_bz_coopA_TNT",
    "ampere_sgemm_128x64_nn",
    "ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_stages_32x5_tn",
    "volta_scudnn_128x32_relu_small_nn_v1",
    "void cublasLt::splitKreduce_kernel<32, 16, int, float, float, float, float, true, false, false>(cublasLt::cublasSplitKParams<float>)",
    "void gemv2T_kernel_val<int, int, float, float, float, float, 128, 16, 4, 4, false, false, cublasGemvParamsEx<int, cublasGemvTensorStridedBatched<float const>, float> >(cublasGemvParamsEx<int, float>)",
    "void dot_kernel<float, 128, 0, cublasDotParams<cublasGemvTensor<float const>, cublasGemvTensorStridedBatched<float> > >(cublasDotParams<float>)",
    "void cudnn::winograd_nonfused::winogradForwardData4x4<float, float>(cudnn::winograd_nonfused::WinogradDataParams<float, float>)",
    "void implicit_convolve_sgemm<float, float, 1024, 5, 5, 3, 3, 3, 1, false, false, true>(int, int)",
    "void at::native::(anonymous namespace)::triu_tril_kernel<float, int, false, 4, true>(int)",
    "void at::native::vectorized_elementwise_kernel<4, mine::MyFunctor<float>, std::array<char*, 2ul> >(int, mine::MyFunctor<float>)",
    "void at_cuda_detail::cub::DeviceScanKernel<int>(int)",
    "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64> >(pytorch_flash::Flash_fwd_params)",
    "fmha_cutlassF_f32_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel<float>::Params)",
    "void cutlass::device_kernel<at::cuda::detail::enable_3x_kernel_for_sm9x<cutlass::gemm::kernel::GemmUniversal<int> > >(int)",
    "triton_poi_fused_mm_tril_0",
    "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    "cupy_copy__float32_float32",
]
ANYBODYS = [
    "tiled(float const*, float const*, float*, int)",
    "void tiled<32>(float const*, float*)",
    "tril_matmul_kernel",
    "sm90_gemm_kernel",
    "hopper_gemm_kernel(float*)",
    "dot_kernel(float const*, float const*, float*, int)",
    "triton_mm_kernel",
    "init_states(curandStateXORWOW*, int)",
    "void softmax<at::Half>(at::Half const*, at::Half*)",
    "void mine::scale<c10::BFloat16>(c10::BFloat16*)",
    "beats_cublas_kernel(float*)",
    "fft1d_r2c_kernel(float*)",
    "void cutlass::Kernel2<cutlass::gemm::kernel::Gemm<cutlass::gemm::threadblock::MmaPipelined<int>, int> >(int)",
    "void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<cute::tuple<int, int, int>, float> >(float)",
    "void cub::CUB_200802_SM_900::DeviceReduceKernel<int>(int)",
]


@pytest.mark.parametrize("name", SHIPPED)
def test_names_that_only_libraries_give_are_known(name):
    assert is_shipped(name)
    assert is_library_like(name)


@pytest.mark.parametrize("name", ANYBODYS)
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
