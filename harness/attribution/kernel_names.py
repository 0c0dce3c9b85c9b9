"""What a kernel's name says: whether a library gives that name to its own kernels, and what its bare name is.

Two lists, because a name can be taken by anybody. `is_shipped` knows the names that libraries give to kernels they
bring ready-made, in spellings that nobody chooses for a kernel of their own: such a kernel is the library's, whatever
symbols, caches or sources say, since a decoy of that name costs a candidate one line. `is_library_like` is wider and
knows names that an author may choose as well (`sm90_gemm_kernel`); it decides only where nothing better does.
"""

from __future__ import annotations

import re

# Where a name, or a type among its template arguments, begins.
_START = r"(?<![\w:])"

# cuBLAS and cuDNN name kernels after architecture, arithmetic and tile, and take their parameters in types of their
# own; the CUTLASS that they bring is instantiated with types called cutlass_80_simt_sgemm_… and the like, which an
# instantiation from CUTLASS's headers never is. PyTorch's own kernels lie in namespaces that are PyTorch's, the
# instantiations of ATen's templates with a candidate's own functor among them: that is ATen's kernel with an
# argument. What torch.compile generates is called triton_poi_fused_…, triton_tem_fused_….
_SHIPPED = re.compile(
    r"^(?:void )?(?:"
    r"at::|at_cuda_detail::|c10::|caffe2::|pytorch_flash::|PyTorchMemEffAttention::|fbgemm_gpu::|fmha_cutlass[FB]_|"
    r"(?:maxwell|pascal|volta|turing|ampere|ada|hopper|blackwell)_\w*(?:gemm|cudnn|conv|fprop|dgrad|wgrad)\w*_\d+x\d+|"
    r"(?:implicit|explicit|precomputed)_convolve(?:Nd)?_|convolve(?:Nd)?_(?:common|[dw]grad(?:Nd)?)_\w*engine|"
    r"(?:DSE::)?(?:vector|regular|multi_bluestein|bluestein)_fft\w*<|fft[123]d_[rc]2[rc]_\d|"
    r"magma_|cask_|cupy_|triton_(?:(?:poi|red|per|tem|for|unk|spl)_fused_|\d*$)"
    r")"
    rf"|{_START}(?:cublas|cudnn|cusparse|cusolver|cufft|nvjet_|nccl(?:DevKernel|Kernel))"
    rf"|{_START}(?:sm\d+_xmma_|xmma_(?:cublas|cudnn|cusparse))"
    rf"|{_START}cutlass(?:_\d+_|\d+x_|__\d+x|_cudnn|_tensorop_|_simt_)"
)
_LIBRARY_LIKE = re.compile(
    r"^(?:void )?(?:(?:cub|thrust|cute|cutlass|flash|flash_attn|xformers|cask\w*|xmma\w*)::|"
    r"cutlass|gemv2|gemvNSP|gemmSN|gemmk1|splitKreduce|winograd|trsm_(?:left|right)_kernel|"
    r"[dw]grad_(?:alg\d_)?(?:nd_)?(?:(?:float|half|double)_)?engine|"
    r"(?:conv2d|[dw]grad2d)_(?:grouped_direct|c1_k1_nchw_hw_packed)_kernel|RNNCopySeqLength|"
    # Templates all, as no kernel of Triton's is: of cuBLAS's products, cuDNN's recurrent networks, and around its convolutions.
    r"(?:[sdcz]gemm_largek\w*|(?:batch_)?gemm_kernel(?:\dx\d_\w*core\w*|_64addr)|"
    r"RNN_?(?:blockPersist|elementWise|skipInput|bidirectional|handle|Input|Output)\w*|persistRNN_\w+|(?:LSTM|GRU)_(?:elementWise|dgrad)_\w+|"
    r"transpose(?:Warp|Block)_kernel|softmax_[fb]w_(?:\w+_)?kernel|flip_filter|pointwise_mult_and_sum_complex|\w+_1C11_packed_kernel)<|"
    r"(?:sm\d+|maxwell|pascal|volta|turing|ampere|ada|hopper|blackwell)_)"
)
# Libraries that come as headers: who compiles a template of theirs has that kernel in its own device code.
_HEADER_TEMPLATE = re.compile(r"^(?:void )?(?:cutlass|cute|cub|thrust)::")
_PYTORCHS_ARGUMENT = re.compile(rf"{_START}at::(?:cuda|native)::")
_ANONYMOUS = "(anonymous namespace)"
# Numba tells its kernels apart by a number of each function, and by a tag for how it compiled it.
_NUMBAS = re.compile(r"(?:\w+::)+\w+\[abi:v\d+\](?:\[abi:\w+\])*\(")
# CuTe DSL: kernel_cutlass_<function>_<arguments>_<number>. TileLang: <function>_kernel, and with a number where it makes several.
_CUTE_BEGINS, _TILELANG_ENDS = "kernel_cutlass_", "_kernel"
_NUMBERED = re.compile(r"(\w+)_\d+", re.ASCII)


def is_shipped(name: str) -> bool:
    """Whether only a library brings a kernel of this (demangled) name."""
    return bool(_SHIPPED.search(name)) or (is_header_template(name) and bool(_PYTORCHS_ARGUMENT.search(name)))


def is_library_like(name: str) -> bool:
    """Whether a library may well have given this name, though anybody could."""
    return is_shipped(name) or bool(_LIBRARY_LIKE.search(name))


def is_header_template(name: str) -> bool:
    """Whether the name is one of a library that is compiled from headers, by PyTorch and by candidates alike."""
    return bool(_HEADER_TEMPLATE.search(name))


def is_anonymous(name: str) -> bool:
    """Whether it lies in an anonymous namespace: two different kernels may then have one demangled name."""
    return _ANONYMOUS in name


def is_copy(name: str) -> bool:
    """Whether it is PyTorch's kernel that copies between tensors of different strides, as outputs in another order are taken."""
    return "direct_copy_kernel" in name


def is_copy_with_host(name: str) -> bool:
    """Whether the driver copied between the host's memory and the GPU's."""
    return name in ("Memcpy HtoD", "Memcpy DtoH")


def is_mangled(name: str) -> bool:
    """Whether it is a symbol still, as those beyond the limits of `demangling` are."""
    return name.startswith("_Z")


def is_fill(name: str) -> bool:
    """Whether it is PyTorch's kernel that fills memory with a constant, as `torch.zeros` does."""
    return name.startswith("void at::native::") and "at::native::FillFunctor<" in name


def is_numbas(name: str) -> bool:
    """Whether Numba named it so: by a Python function and its module, with tags of its own."""
    return bool(_NUMBAS.match(name))


def cute_stem(function: str) -> str:
    """How each kernel is called that CuTe DSL compiles from a Python function, but for arguments and a number."""
    return f"{_CUTE_BEGINS}{function}"


def tilelang_stem(function: str) -> str:
    """How the kernel is called that TileLang compiles from a Python function, but for a number."""
    return f"{function}{_TILELANG_ENDS}"


def function_of_stem(stem: str) -> str:
    """The name that stands in the text of what `cute_stem` or `tilelang_stem` gave."""
    return stem.removeprefix(_CUTE_BEGINS) if stem.startswith(_CUTE_BEGINS) else stem.removesuffix(_TILELANG_ENDS)


def stems_of(bare: str) -> set[str]:
    """The stems that a kernel of this bare name may have; of CuTe DSL's each beginning, since nobody marks its end."""
    match = _NUMBERED.fullmatch(bare)
    if bare.startswith(_CUTE_BEGINS):
        words = match.group(1).removeprefix(_CUTE_BEGINS).split("_") if match is not None else []
        return {cute_stem("_".join(words[:count])) for count in range(1, len(words) + 1)}
    return {each for each in (bare, match.group(1) if match is not None else "") if each.endswith(_TILELANG_ENDS)}


def bare_name(name: str) -> str:
    """The identifier alone: `void tiles::tile<32>(float const*, int)` → `tile`."""
    plain = name.removeprefix("void ").replace(_ANONYMOUS, "")
    for mark in "(<[":
        plain = plain.partition(mark)[0]
    return plain.rpartition("::")[2]
