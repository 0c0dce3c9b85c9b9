"""Candidates: which files count, what language they are in, and the sentence for each that cannot work."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

import pytest

from harness.model.baselines import BASELINES
from harness.model.candidate import Candidate, find_candidates, read_candidate
from harness.model.errors import InputError, NothingToRun
from harness.model.paths import REPOSITORY
from harness.model.verdict import ReasonCode

MODEL = "class ModelNew:\n    pass\n"
BUILD = "from torch.utils.cpp_extension import load_inline\n"


def _read(folder: Path, content: str | bytes, name: str = "tril.py") -> Candidate:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_candidate(path)


def _folder(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).write_text(MODEL)
    return folder


def test_candidates_are_the_python_files_sorted_by_name(tmp_path: Path) -> None:
    _folder(tmp_path, "tiled.py", "naive.py", "_shared.py", ".hidden.py", "notes.txt", "kernel.cu")
    (tmp_path / "folder.py").mkdir()
    assert [each.name for each in find_candidates(tmp_path)] == ["naive", "tiled"]


def test_of_several_folders_the_first_that_has_a_name_counts(tmp_path: Path) -> None:
    for folder, name in (("mine", "b"), ("shipped", "a"), ("shipped", "b")):
        (tmp_path / folder).mkdir(exist_ok=True)
        _folder(tmp_path / folder, f"{name}.py")
    folders = [tmp_path / "mine", tmp_path / "shipped"]
    assert [each.path for each in find_candidates(folders)] == [folders[1] / "a.py", folders[0] / "b.py"]
    with pytest.raises(InputError) as caught:
        find_candidates(folders, only=["c"])
    assert f"in {folders[0]} and {folders[1]}" in str(caught.value)


def test_a_candidate_carries_its_source_and_the_hash_of_it(tmp_path: Path) -> None:
    found = _read(tmp_path, MODEL)
    assert (found.name, found.source, found.language, found.fault) == ("tril", MODEL, "torch", None)
    assert len(found.source_hash) == 16 and int(found.source_hash, 16) >= 0
    assert found.fault_code is ReasonCode.NONE


def test_the_hash_follows_the_text_and_not_the_line_ends(tmp_path: Path) -> None:
    unix, windows = _read(tmp_path, MODEL), _read(tmp_path, MODEL.replace("\n", "\r\n"))
    assert unix.source_hash == windows.source_hash
    assert unix.source_hash != _read(tmp_path, MODEL + "x = 1\n").source_hash


def test_a_candidate_is_never_imported(tmp_path: Path) -> None:
    mark = tmp_path / "was_imported"
    _read(tmp_path, f"open({str(mark)!r}, 'w')\nimport not_there_at_all\n" + MODEL)
    assert not mark.exists() and "tril" not in sys.modules


@pytest.mark.parametrize(("only", "skip", "left"), [
    (["t*"], [], ["tiled", "triton"]),
    (["naive", "tiled.py"], [], ["naive", "tiled"]),
    ([], ["t*"], ["naive"]),
    (["t*"], ["triton"], ["tiled"]),
    (["[nt]*"], [], ["naive", "tiled", "triton"]),
])
def test_globs_choose_by_name(tmp_path: Path, only: list[str], skip: list[str], left: list[str]) -> None:
    folder = _folder(tmp_path, "naive.py", "tiled.py", "triton.py")
    assert [each.name for each in find_candidates(folder, only, skip)] == left


@pytest.mark.parametrize(("only", "skip", "says"), [
    (["naiv"], [], "--only 'naiv' matches no candidate in {}. Did you mean 'naive'?"),
    ([], ["x*"], "--skip 'x*' matches no candidate in {}. There are naive and tiled."),
    (["naive", "zzz*"], [], "--only 'zzz*' matches no candidate in {}. There are naive and tiled."),
])
def test_a_glob_that_matches_nothing_names_what_there_is(
    tmp_path: Path, only: list[str], skip: list[str], says: str
) -> None:
    with pytest.raises(InputError) as caught:
        find_candidates(_folder(tmp_path, "naive.py", "tiled.py"), only, skip)
    assert str(caught.value) == says.format(tmp_path)


def test_a_glob_with_its_letters_mixed_up_is_mended_by_how_names_begin(tmp_path: Path) -> None:
    folder = _folder(tmp_path, "naive_per_element.py", "tiled_shared.py")
    with pytest.raises(InputError, match=r"Did you mean 'tiled\*'\?$"):
        find_candidates(folder, ["tield*"])


def test_nothing_left_by_the_globs_is_nothing_to_run(tmp_path: Path) -> None:
    folder = _folder(tmp_path, "naive.py", "tiled.py")
    with pytest.raises(NothingToRun, match="left of naive and tiled: --skip takes away what --only chose"):
        find_candidates(folder, ["naive"], ["n*"])
    with pytest.raises(NothingToRun, match="left of naive and tiled: --skip takes away all of them"):
        find_candidates(folder, skip=["*"])


def test_an_empty_folder_is_nothing_to_run(tmp_path: Path) -> None:
    with pytest.raises(NothingToRun, match="holds no candidate. Put a .py file with class ModelNew"):
        find_candidates(tmp_path)


def test_a_missing_folder_offers_the_nearest(tmp_path: Path) -> None:
    (tmp_path / "tril_matmul").mkdir()
    with pytest.raises(InputError) as caught:
        find_candidates(tmp_path / "tril_matmull")
    says = f"there is no such folder of candidates. Did you mean {tmp_path}/tril_matmul?"
    assert str(caught.value).endswith(says)


def test_a_pipe_among_the_candidates_keeps_nobody_waiting(tmp_path: Path) -> None:
    folder = _folder(tmp_path, "naive.py")
    os.mkfifo(folder / "pipe.py")
    (folder / "zero.py").symlink_to("/dev/zero")
    assert [each.name for each in find_candidates(folder)] == ["naive"]


def test_of_many_neighbours_those_that_hold_candidates_are_named(tmp_path: Path) -> None:
    for name in ("first", "second", "pictures"):
        (tmp_path / name).mkdir()
        (tmp_path / name / ("a.py" if name != "pictures" else "a.png")).write_text("")
    with pytest.raises(InputError) as caught:
        find_candidates(tmp_path / "zzz")
    assert str(caught.value).endswith(f"There are {tmp_path}/first and {tmp_path}/second.")


def test_a_missing_folder_with_no_neighbour_says_how_to_make_it(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Make it with: mkdir -p "):
        find_candidates(tmp_path / "mine")


def test_a_problem_of_ours_that_has_no_candidates_yet_is_told_how_to_get_one() -> None:
    with pytest.raises(InputError, match="Type python run.py new wibble_of_rows my_first"):
        find_candidates(REPOSITORY / "candidates" / "wibble_of_rows")


def test_a_file_in_place_of_the_folder_says_what_to_type(tmp_path: Path) -> None:
    _folder(tmp_path, "naive.py")
    with pytest.raises(InputError) as caught:
        find_candidates(tmp_path / "naive.py")
    assert str(caught.value).endswith(f"Type --candidates {tmp_path} --only naive")


@pytest.mark.parametrize(("content", "says", "code"), [
    ("", "tril.py: the file is empty; the harness runs the class named ModelNew", ReasonCode.NO_MODEL_NEW),
    ("x = 1\n", "tril.py: found no class; the harness runs the class named ModelNew",
     ReasonCode.NO_MODEL_NEW),
    ("\n\nclass ModelNeww:\n    pass\n",
     "tril.py:3: found class ModelNeww; the harness runs the class named ModelNew", ReasonCode.NO_MODEL_NEW),
    ("class Helper: pass\nclass Model: pass\n",
     "tril.py:2: found class Model; the harness runs the class named ModelNew", ReasonCode.NO_MODEL_NEW),
    ("def f():\n    class ModelNew: pass\n", "tril.py: found no class", ReasonCode.NO_MODEL_NEW),
    ("class Outer:\n    class ModelNew: pass\n", "tril.py:1: found class Outer", ReasonCode.NO_MODEL_NEW),
    ("x = 1\nload_inline(cpp Sources='')\n", "tril.py:2: Python cannot read this: ", ReasonCode.SYNTAX_ERROR),
    ("class ModelNew:\npass\n", "tril.py:2: Python cannot read this: expected an indented block",
     ReasonCode.SYNTAX_ERROR),
    ("a = 1\n\0", "tril.py:", ReasonCode.SYNTAX_ERROR),
    (b"a = 1\nb = '\xe9'\n", "tril.py:2: byte 0xe9 is not UTF-8. Save the file again as UTF-8.",
     ReasonCode.SYNTAX_ERROR),
    (b"# -*- coding: latin-1 -*-\n" + MODEL.encode(), "tril.py: declares the encoding iso-8859-1, and is read as UTF-8. "
     "Leave the declaration out", ReasonCode.SYNTAX_ERROR),
    (b"#!/usr/bin/python\n# vim: set fileencoding=rot13 :\n" + MODEL.encode(), "tril.py: declares the encoding",
     ReasonCode.SYNTAX_ERROR),
    (MODEL.encode("utf-16"), "tril.py:1: is UTF-16, not UTF-8. Save it again as UTF-8.",
     ReasonCode.SYNTAX_ERROR),
    ("(" * 5000, "tril.py:1: Python cannot read this", ReasonCode.SYNTAX_ERROR),
    ("-" * 100_000 + "1", "tril.py:1: Python cannot read this", ReasonCode.SYNTAX_ERROR),
])
def test_a_file_that_cannot_work_is_returned_with_its_fault(
    tmp_path: Path, content: str | bytes, says: str, code: ReasonCode
) -> None:
    found = _read(tmp_path, content)
    assert found.fault is not None and found.fault.startswith(says) and "\n" not in found.fault
    assert found.fault_code is code and len(found.source_hash) == 16


def test_a_syntax_error_quotes_the_line(tmp_path: Path) -> None:
    found = _read(tmp_path, "x = 1\ny = x x\n" + MODEL)
    assert found.fault is not None and found.fault.endswith(": y = x x")


def test_one_faulty_file_leaves_the_others_as_they_are(tmp_path: Path) -> None:
    _folder(tmp_path, "good.py")
    (tmp_path / "bad.py").write_text("class (")
    (tmp_path / "gone.py").symlink_to(tmp_path / "nowhere.py")
    faults = {each.name: each.fault for each in find_candidates(tmp_path)}
    assert faults["good"] is None and "Python cannot read this" in (faults["bad"] or "")
    assert faults["gone"] == "gone.py: cannot be read (No such file or directory)"


def test_a_file_without_read_permission_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(self: Path) -> bytes:
        raise PermissionError(13, os.strerror(13))

    monkeypatch.setattr(Path, "read_bytes", refused)
    assert read_candidate(tmp_path / "tril.py").fault == "tril.py: cannot be read (Permission denied)"


@pytest.mark.parametrize("source", [
    "\ufeff" + MODEL,
    "ModelNew = object\n",
    "ModelNew: type = object\n",
    "from elsewhere import Fast as ModelNew\n",
    "from elsewhere import *\n",
    "import x as ModelNew\n",
    "try:\n    import triton\n    class ModelNew: pass\nexcept ImportError:\n    pass\n",
    "if True:\n    pass\nelse:\n    class ModelNew: pass\n",
    "A, ModelNew = 1, 2\n",
    "def ModelNew(): return 1\n",
])
def test_any_way_to_define_model_new_will_do(tmp_path: Path, source: str) -> None:
    assert _read(tmp_path, source).fault is None


def test_escapes_in_plain_strings_of_cuda_print_no_warning(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert _read(tmp_path, "text = '\\d \\% \\s'\n" + MODEL).fault is None


@pytest.mark.parametrize(("source", "language"), [
    (BUILD + "m = load_inline(name='m', cpp_sources='', cuda_sources='__global__ …')\n", "cuda"),
    (BUILD + "m = load_inline('m', '', SOURCE, functions=['f'])\n", "cuda"),
    ("import torch.utils.cpp_extension as e\nm = e.load_inline(name='m', cpp_sources='', cuda_sources=[S])\n",
     "cuda"),
    ("from torch.utils.cpp_extension import load_inline as build\nm = build(name='m', cuda_sources=S)\n",
     "cuda"),
    (BUILD + "o = dict(cuda_sources=S)\nm = load_inline(**o)\n", "cuda"),
    (BUILD + "o = {'cuda_sources': S}\nm = load_inline(**o)\n", "cuda"),
    (BUILD + "def f():\n    return load_inline(name='m', cpp_sources='', cuda_sources=S)\n", "cuda"),
    ("from torch.utils.cpp_extension import load\nm = load(name='m', sources=['a.cpp', 'b.cu'])\n", "cuda"),
    ("import torch\nk = torch.cuda._compile_kernel(S, 'k')\n", "cuda"),
    ("import cupy\n", "cuda"),
    ("from numba import cuda\n", "cuda"),
    ("import cutlass.cute as cute\n", "cuda"),
    ("import tilelang.language as T\n", "cuda"),
    (BUILD + "import triton\nm = load_inline(name='m', cpp_sources='', cuda_sources=S)\n", "cuda"),
    ("import triton\nimport triton.language as tl\n", "triton"),
    ("from triton.language import load\n", "triton"),
    ("try:\n    import triton\nexcept ImportError:\n    triton = None\n", "triton"),
    (BUILD + "m = load_inline(name='m', cpp_sources=S, functions=['f'])\n", "cpp"),
    (BUILD + "m = load_inline(name='m', cpp_sources=S, cuda_sources=None)\n", "cpp"),
    (BUILD + "m = load_inline(name='m', cpp_sources=S, cuda_sources=[])\n", "cpp"),
    (BUILD + "m = load_inline(name='m', cpp_sources=S, cuda_sources=[''])\n", "cpp"),
    ("from torch.utils.cpp_extension import load\nm = load(name='m', sources=['a.cpp'])\n", "cpp"),
    ("import torch\nx = torch.load('weights.pt')\n", "torch"),
    ("import json\nx = json.load(open('b'))\n", "torch"),
    (BUILD + "# never called\n", "torch"),
    ("import torch\n", "torch"),
])
def test_the_language_is_told_from_calls_and_imports(tmp_path: Path, source: str, language: str) -> None:
    assert _read(tmp_path, source + MODEL).language == language


def test_a_folder_may_be_given_as_text(tmp_path: Path) -> None:
    assert find_candidates(str(_folder(tmp_path, "a.py")))[0].path == tmp_path / "a.py"


def test_a_source_of_a_thousand_branches_is_read(tmp_path):
    branches = "if a == 0: pass\n" + "".join(f"elif a == {number}: pass\n" for number in range(1, 1000))
    path = tmp_path / "branches.py"
    path.write_text(f"import torch\na = 0\n{branches}class ModelNew(torch.nn.Module): pass\n")
    assert read_candidate(path).fault is None


def test_a_source_too_long_to_be_searched_is_a_fault_in_words(tmp_path):
    path = tmp_path / "long.py"
    path.write_text("class ModelNew: pass\n" + "#" * (1 << 20))
    assert "1.0 MB; a candidate may have 1.0" in read_candidate(path).fault


@pytest.mark.parametrize(("name", "cell", "said"), [
    ("nan.py", "?nan", "missing value"), ("=1+1.py", "?1+1", "formula"), ("-rank.py", "?rank", "formula"),
    ("a\nb.py", "?a?b", "line break"), ("a\x1b[31m.py", "?a??31m", "line break"), ("eager.py", "?eager", "a baseline"),
    ("torch.compile.py", "?torch.compile", "a baseline"),
])
def test_a_file_whose_name_no_table_can_hold_says_so_in_its_row(tmp_path: Path, name: str, cell: str, said: str) -> None:
    found = _read(tmp_path, MODEL, name)
    assert (found.name, found.fault_code) == (cell, ReasonCode.IMPORT_ERROR)
    assert found.fault.startswith(f"{cell}.py: ") and said in found.fault and found.fault.endswith("Rename the file")
    assert found.fault.isprintable()


def test_no_candidate_has_the_name_of_any_baseline(tmp_path: Path) -> None:
    assert all("name of a baseline" in _read(tmp_path, MODEL, f"{name}.py").fault for name in BASELINES)


def test_other_names_are_left_as_they_are(tmp_path: Path) -> None:
    for name in ("tiled-32.py", "Tiled(2).py", "two words.py", "eager2.py", "v1.2.py"):
        found = _read(tmp_path, MODEL, name)
        assert (found.name, found.fault) == (name.removesuffix(".py"), None)
