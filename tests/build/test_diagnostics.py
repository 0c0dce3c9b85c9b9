"""Compiler errors told against the candidate, from output recorded with nvcc 13.0 and g++ 12.2."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from harness.build.diagnostics import as_told, diagnostics, explain, first_warnings, needs_architecture

RECORDED = Path(__file__).with_name("recorded")
CANDIDATE = Path("candidates/tile.py")


def recorded(name: str) -> str:
    return (RECORDED / name).read_text()


def candidate_around(source: str) -> str:
    """A candidate whose string, from line 4 on, is `source`."""
    return f'import torch\n\nSOURCE = r"""\n{source}"""\n\nclass ModelNew(torch.nn.Module):\n    pass\n'


@pytest.fixture
def cuda():
    """The candidate, and the file that nvcc was given: the same text."""
    source = recorded("cuda.cu.txt")
    return candidate_around(source), {"/tmp/rec/0123/cuda.cu": source}


def test_nvcc_errors_come_with_line_source_and_caret(cuda):
    candidate, generated = cuda
    assert explain(recorded("nvcc_errors.txt"), candidate, CANDIDATE, generated).splitlines() == [
        'tile.py:9: identifier "factor" is undefined',
        "    9 |     out[i] = factor * out[i]",
        "      |              ^",
        'tile.py:10: expected a ";"',
        "   10 |   }",
        "      |   ^",
        'tile.py:11: identifier "undeclared_call" is undefined',
        "   11 |   undeclared_call(i);",
        "      |   ^",
    ]


def test_an_error_in_a_macro_points_at_its_name_or_at_the_line_and_shows_what_became_of_it():
    source = recorded("macros.cu.txt")
    told = explain(recorded("nvcc_macros.txt"), candidate_around(source), CANDIDATE, {"/tmp/rec/0123/cuda.cu": source})
    assert told.splitlines() == [
        'tile.py:7: identifier "wrong" is undefined',
        "    7 |   LOOP(i,3) y[i]=wrong;",
        "      |                  ^",
        "      | with its macros: for (int i=0;i<3;++i) y[i]=wrong;",
        "      |                                             ^",
        'tile.py:8: identifier "i" is undefined',
        "    8 |   LOOP(j,3) y[i]=1;",
        "      |               ^",
        "      | with its macros: for (int j=0;j<3;++j) y[i]=1;",
        "      |                                          ^",
        'tile.py:9: identifier "nope" is undefined',
        "    9 |   LOOP(i,3) PUT(nope);",
        "      |                 ^",
        "      | with its macros: for (int i=0;i<3;++i) y[i]=nope;",
        "      |                                             ^",
    ]


def test_where_the_name_is_the_macros_own_the_caret_is_at_the_line(cuda):
    source = "#define LOOP(i,n) for (int i=0;i<n;++j)\n__global__ void k(float*y){\n    LOOP(i,3) y[i]=1;\n}\n"
    log = '/tmp/rec/0123/cuda.cu(3): error: identifier "j" is undefined\n      for (int i=0;i<3;++j) y[i]=1;\n                         ^\n'
    told = explain(log, candidate_around(source), CANDIDATE, {"/tmp/rec/0123/cuda.cu": source}).splitlines()
    assert told[1:] == [
        "    6 |     LOOP(i,3) y[i]=1;", "      |     ^",
        "      | with its macros: for (int i=0;i<3;++j) y[i]=1;", "      |                                     ^",
    ]


def test_without_the_generated_file_a_line_that_stands_once_is_found_by_its_text(cuda):
    told = explain(recorded("nvcc_errors.txt"), cuda[0], CANDIDATE).splitlines()
    assert told[0] == 'tile.py:9: identifier "factor" is undefined'


def test_headers_put_before_the_source_move_nothing(cuda):
    candidate, generated = cuda
    shifted = {path: "#include <torch/types.h>\n" * 3 + text for path, text in generated.items()}
    log = recorded("nvcc_errors.txt").replace("(6)", "(9)").replace("(7)", "(10)").replace("(8)", "(11)")
    assert explain(log, candidate, CANDIDATE, shifted) == explain(
        recorded("nvcc_errors.txt"), candidate, CANDIDATE, generated
    )


def test_gcc_errors_come_with_line_source_and_caret_and_warnings_apart():
    source = recorded("main.cpp.txt")
    generated = {"/tmp/rec/0123/main.cpp": source}
    candidate = candidate_around(source)
    told = explain(recorded("gcc_errors.txt"), candidate, CANDIDATE, generated).splitlines()
    assert told[:3] == [
        "tile.py:9: ‘vlaue’ was not declared in this scope; did you mean ‘value’?",
        "    9 |   for (int value : values) sum += vlaue;",
        "      |                                   ^",
    ]
    assert len(told) == 9
    assert first_warnings(recorded("gcc_errors.txt"), candidate, CANDIDATE, generated) == [
        "tile.py:9: unused variable ‘value’ [-Wunused-variable]",
        "tile.py:7: unused variable ‘unused’ [-Wunused-variable]",
    ]


def test_only_the_first_errors_are_shown_and_the_rest_counted():
    log = "".join(f"/b/k/main.cpp:{line}:1: error: number {line}\n" for line in range(1, 9))
    told = explain(log, "", CANDIDATE).splitlines()
    assert len(told) == 4 and told[-1] == "and 5 more errors"


def test_a_kernel_that_wants_too_much_shared_memory_is_named():
    assert explain(recorded("ptxas_too_much_shared.txt"), "", CANDIDATE) == (
        "tile.py: ptxas: Entry function big_kernel uses too much shared data (0x10000 bytes, 0xc000 max)"
    )


def test_an_instruction_of_another_architecture_is_recognised():
    told = "needs sm_90a: it uses wgmma.fence, which sm_80 does not have"
    assert needs_architecture(recorded("ptxas_needs_arch.txt")) == told
    assert needs_architecture(recorded("nvcc_errors.txt")) is None


def test_the_architecture_that_a_source_needs_is_the_narrowest_that_ptxas_speaks_of():
    bulk = "ptxas a.ptx, line 9; error   : Feature 'cp.async.bulk' requires .target sm_90 or higher\n"
    assert needs_architecture(bulk) == "needs sm_90: it uses cp.async.bulk"
    mixed = bulk + recorded("ptxas_needs_arch.txt")
    assert needs_architecture(mixed) == "needs sm_90a: it uses wgmma.fence, which sm_80 does not have"
    other = "ptxas a.ptx, line 9; error   : Instruction 'cvt.e4m3x2' not supported on .target 'sm_80'\n"
    assert needs_architecture(other) == "it uses cvt.e4m3x2, which sm_80 does not have"


def test_what_the_linker_misses_is_named():
    assert explain(recorded("linker_undefined.txt"), "", CANDIDATE) == (
        "tile.py: linker: undefined reference to `helper(int)'"
    )


def test_an_undefined_symbol_at_load_time_is_named():
    log = "ImportError: /c/tile.so: undefined symbol: _Z9tril_cudaN2at6TensorES0_"
    assert explain(log, "", CANDIDATE) == "tile.py: built, but cannot be loaded: nothing defines tril_cuda"


def test_an_error_in_a_template_of_a_header_is_shown_where_the_candidate_asked_for_it():
    source = "int first;\nint second = convert(first);\n"
    log = (
        "/usr/include/pybind11/cast.h: In instantiation of ‘int convert(T)’:\n"
        "/usr/include/pybind11/cast.h:100:9: error: static assertion failed: no such conversion\n"
        "/b/k/main.cpp:2:14:   required from here\n"
    )
    told = explain(log, candidate_around(source), CANDIDATE, {"/b/k/main.cpp": source})
    assert told.startswith("tile.py:5: static assertion failed: no such conversion\n")


def test_an_unknown_option_of_nvcc_is_passed_on():
    assert explain("nvcc fatal   : Unknown option '--bogus'", "", CANDIDATE) == (
        "tile.py: nvcc: Unknown option '--bogus'"
    )


@pytest.mark.parametrize("text", ["", "int x;\n"])
def test_a_log_that_speaks_of_a_line_that_no_file_has_is_told_as_it_is(text):
    told = explain("/b/k/main.cpp:0:0: error: a message\n", candidate_around("int x;\n"), CANDIDATE, {"/b/k/main.cpp": text})
    assert "a message" in told and "tile.py:" not in told.replace("tile.py: ", "")


def test_output_without_an_error_explains_nothing():
    assert explain("[1/2] c++ -o main.o\nninja: build stopped.\n", "", CANDIDATE) == ""


@pytest.mark.parametrize("kind", ["error", "warning"])
@pytest.mark.slow
def test_a_log_of_ten_thousand_errors_over_a_source_of_as_many_strings_is_told_in_no_time(kind):
    source = "\n".join(f"x = 'string {number:06d}'" for number in range(10_000))
    generated = {"build/m/main.cpp": "int x;\n" * 150_000}
    log = "\n".join(f"build/m/main.cpp:{number}:1: {kind}: no {number}" for number in range(1, 10_000))
    began = time.process_time()
    told = explain(log, source, Path("tile.py"), generated)
    assert ("more errors" in told) == (kind == "error")
    assert first_warnings(log, source, Path("tile.py"), generated) == []
    assert time.process_time() - began < 10


@pytest.fixture
def several(tmp_path):
    """A candidate with `kernels/k.cu` beside it, and a file that is none of its own."""
    folder = tmp_path / "candidates"
    (folder / "kernels").mkdir(parents=True)
    (folder / "kernels" / "k.cu").write_text("// one\n  int unused;\n  out[i] = nosuch * 2;\n")
    (tmp_path / "secret.txt").write_text("one\ntwo\nthree\n")
    (folder / "link.cu").symlink_to(tmp_path / "secret.cu")
    (tmp_path / "secret.cu").write_text("one\ntwo\nthree\n")
    (folder / "circle.cu").symlink_to(folder / "circle.cu")
    (folder / "token.txt").write_text("one\ntwo\nthree\n")
    return folder


def test_errors_in_a_file_beside_the_candidate_have_its_name_line_and_caret(several):
    log = (
        f'{several}/kernels/k.cu(3): error: identifier "nosuch" is undefined\n'
        "    out[i] = nosuch * 2;\n             ^\n"
    )
    assert explain(log, "", several / "multi.py").splitlines() == [
        'kernels/k.cu:3: identifier "nosuch" is undefined',
        "    3 |   out[i] = nosuch * 2;",
        "      |            ^",
    ]


def test_warnings_of_files_beside_the_candidate_are_kept(several):
    log = f'{several}/kernels/k.cu(2): warning #177-D: variable "unused" was declared but never referenced\n'
    assert first_warnings(log, "", several / "multi.py") == [
        'kernels/k.cu:2: variable "unused" was declared but never referenced'
    ]


@pytest.mark.parametrize("file", ["{folder}/../secret.cu", "{folder}/link.cu", "{folder}/none.cu", "secret.cu", "{folder}", "{folder}/circle.cu", "{folder}/token.txt"])
def test_a_log_has_no_other_file_quoted(several, file):
    name = file.format(folder=several)
    told = explain(f"{name}(2): error: a message\n", "", several / "multi.py")
    assert told == f"multi.py: a message (in {Path(name).name}, line 2)"
    assert first_warnings(f"{name}(2): warning #1-D: a message\n", "", several / "multi.py") == []


def test_an_error_that_is_told_again_is_read_the_same():
    errors = [each for each in diagnostics(recorded("nvcc_errors.txt")) if each.kind == "error" and each.line]
    assert len(errors) >= 3
    assert diagnostics("\n".join(map(as_told, errors))) == errors


def test_what_the_assembler_refuses_is_told_so_that_it_is_read_again():
    (error,) = diagnostics("ptxas kernel.ptx, line 9; error   : Instruction 'wgmma.fence' not supported on .target 'sm_80'\n")
    assert diagnostics(as_told(error)) == [error]
