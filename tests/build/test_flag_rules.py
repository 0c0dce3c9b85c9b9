"""Which flags are known to start no program, and which may."""

from __future__ import annotations

import pytest

from harness.build.flags import unknown_flags

USUAL = [
    "-O3", "-std=c++17", "--std=c++17", "-lineinfo", "--use_fast_math", "-gencode=arch=compute_90a,code=sm_90a", "-Xcompiler",
    "-fopenmp", "-Xcompiler=-fPIC,-O3", "-DX=1", '-DNAME=\\"x\\"', "-U__CUDA_NO_HALF_OPERATORS__", "-Wl,-rpath,/usr/lib",
    "-lcublas", "-L/usr/lib", "-Xptxas=-v", "-Xptxas -O3", "--expt-relaxed-constexpr", "-march=native", "-ffast-math",
    "-Wl,--no-as-needed", "-rdc=true", "-maxrregcount=64", "--ptxas-options=-v", "-arch=sm_90", "-I/usr/local/include", "-Wall",
    "-fvisibility=hidden", "-t 4", "--threads=4", "-Xcudafe --diag_suppress=177", "/usr/lib/libm.so",
    "-static-libstdc++", "-Wl,-Bstatic", "-gencode=arch=compute_90a,code=[compute_90a,sm_90a]", "-Xptxas -dlcm=cg", "-Xptxas=-warn-spills",
    "-ftz=true", "-fmad=false", "-fno-strict-aliasing", "-funroll-loops", "-mavx512f", "-mprefer-vector-width=512", "-pipe",
    "-Xfatbin=-compress-all", "-Xcudafe=--display_error_number", "-ffile-prefix-map=/a=b", "-fopenmp-simd", "-fvect-cost-model=unlimited",
]


def flags(*given, **others):
    return unknown_flags({"arguments": {"name": "mine", "extra_cuda_cflags": list(given), **others}})


def test_what_kernels_are_usually_built_with_starts_nothing():
    assert flags(*USUAL) == [] == flags(extra_cflags="-O2", extra_ldflags=None, extra_include_paths=["/a folder/include"])
    assert unknown_flags({"arguments": {"name": "mine"}}, ["-D__CUDA_NO_HALF_OPERATORS__", "--expt-relaxed-constexpr"]) == []


@pytest.mark.parametrize("flag", [
    "-wrapper", "-wrapper,python3", "-specs=a", "--specs=a", "-Bdir", "-B/tmp", "-fplugin=a.so", "-ccbin=/tmp/x",
    "--compiler-bindir", "-fuse-ld=x", "-Wl,-plugin,x", "-Wl,-plugin=x", "@file", "-O3; rm x", "$(evil)", "`x`", "a|b", "-O3 'open",
    "-Xcompiler=-wrapper,x", "-Xcompiler -Bx", "--compiler-options=-fplugin=x", "--run", "--options-file=x", "-optf", "-Wp,@x",
    "--archiver-binary=x", "-O3\nrule",
    "-Wl,-format=binary", "-Wl,-mri-script=x", "-Xfatbin=--options-file=x", "-Xfatbin --image3=x", "-lib", "-fatbin", "-Wa,-I/x", "-Wa",
    "-Bstatic", "[[:space:]]", "-finput-charset=UTF-16", "-fdeps-file=x", "-fmodules-ts", "-fprofile-use=x", "-fdiagnostics-add-output=x",
    "-fdevice-time-trace=x", "-Xptxas=--options-file=x", "-fpreprocessed",
    "-fpch-preprocess", "-x c++-cpp-output", "-x assembler", "-ldir=x",
])
def test_what_may_start_a_program_is_named(flag):
    assert flags(flag) == [flag]
    assert unknown_flags({"arguments": {"name": "mine"}}, [flag]) == [flag]


def test_names_that_a_shell_would_read_are_named_too():
    assert flags(name="x;y") == ["x;y"]
    assert flags(sources=["a.cu", "b;c.cu"]) == ["b;c.cu"]
    assert flags(extra_include_paths=["$(x)"]) == ["$(x)"]


def test_what_another_compiler_builds_is_named():
    assert flags(with_sycl=True) == flags(extra_sycl_cflags=["; touch x"]) == ["with_sycl"]
