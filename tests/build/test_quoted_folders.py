"""Paths with a blank in them, as PyTorch hands them to ninja, Inductor to its compiler, and this software to nvcc."""

from __future__ import annotations

import shlex

import pytest

from harness.build import library_headers
from harness.build.ninja_file import with_quoted_folders


def written(*flags: str) -> list[str]:
    seen = []

    def write(path, cflags, ldflags):
        seen.extend(ldflags)

    with_quoted_folders(write)("build.ninja", ["-O3"], list(flags))
    return seen


def test_a_folder_with_a_blank_is_quoted_and_nothing_else(tmp_path):
    folder = tmp_path / "my torch"
    folder.mkdir()
    flags = (f"-L{tmp_path}", "-lc10", f"'-L{folder}'", f"-L{tmp_path} -lm", "-shared")
    assert written(f"-L{folder}", *flags) == [f"'-L{folder}'", *flags]


def test_a_library_whose_path_has_a_blank_is_quoted(tmp_path):
    library = tmp_path / "lib my.so"
    library.touch()
    assert written(str(library), f"{library} -lm") == [f"'{library}'", f"{library} -lm"]


def test_a_writer_without_such_flags_is_left_alone():
    seen = []
    with_quoted_folders(lambda path, cflags: seen.append(cflags))("build.ninja", cflags=["-O3"])
    assert seen == [["-O3"]]


@pytest.mark.slow
def test_inductor_is_given_them_quoted():
    from torch._inductor import cpp_builder

    import harness.worker.compiler_warmup  # noqa: F401

    options = cpp_builder.BuildOptionsBase(libraries_dirs=["/my torch/lib", "/lib"])
    assert options.get_libraries_dirs() == ["'/my torch/lib'", "/lib"]


@pytest.mark.slow
def test_inductor_s_command_has_its_files_whole(tmp_path):
    from torch._inductor import cpp_builder

    import harness.worker.compiler_warmup  # noqa: F401

    folder = tmp_path / "my cache"
    folder.mkdir()
    source = folder / "kernel.cpp"
    options = cpp_builder.CppOptions(compiler="g++")
    builder = cpp_builder.CppBuilder("kernel", str(source), options, str(folder))
    words = shlex.split(builder.get_command_line())
    assert str(source) in words and words[words.index("-o") + 1] == builder.get_target_file_path()


def test_nvcc_hands_a_folder_of_headers_on_whole(tmp_path):
    folder = tmp_path / "my toolkit" / "libraries"
    (flag,) = library_headers.flags(library_headers.write(folder, ["#include <cublas_v2.h>"]))[-1:]
    assert str(folder) in flag and shlex.split(flag) == [f"-Xcompiler=-idirafter,{folder}"]
