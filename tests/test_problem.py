"""Problem files: what they become, and the exact sentence for each way to get one wrong."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from harness.errors import InputError
from harness.formulas import Formula
from harness.problem import (
    PROBLEMS_DIR, REPOSITORY, AccuracyRule, Problem, at_sizes, in_mode, list_problems, load_problem,
)

REFERENCE = """\
import torch
M = 4096
K: int = 4 * 2
N = 4
class Model(torch.nn.Module):
    pass
def get_inputs():
    return []
def get_init_inputs():
    return []
"""
YAML = """\
title: A product
reference: x.py
dtype: float32
sizes:
  timed: {M: 4096, K: 8, N: 4}
  check:
    - {M: 1, K: 1, N: 1}
    - {M: 31, K: 9, N: 3}
  cpu: {M: 512, K: 8, N: 4}
useful:
  flops: "2*M*K*N"
  bytes: "4*(M*K + K*N + M*N)"
accuracy: {class: fp32, scale: abs_inputs, terms: K, contracted: [1, 0]}
baselines: [eager, torch.compile, eager-tf32]
kinds: [custom]
"""
MINIMAL = "title: A sum\nreference: x.py\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with ``problems/`` in it, so that messages read as they do in a repository."""
    (tmp_path / "problems").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("harness.problem.PROBLEMS_DIR", Path("problems"))
    return tmp_path


def _load(yaml: str | bytes = YAML, reference: str | bytes = REFERENCE) -> Problem:
    for name, content in (("x.yaml", yaml), ("x.py", reference)):
        Path("problems", name).write_bytes(content.encode() if isinstance(content, str) else content)
    return load_problem(Path("problems/x.yaml"))


def _message(yaml: str | bytes = YAML, reference: str | bytes = REFERENCE) -> str:
    with pytest.raises(InputError) as caught:
        _load(yaml, reference)
    assert caught.value.exit_code == 2
    return str(caught.value)


# What a right file becomes


def test_a_problem_file_becomes_a_problem(folder: Path) -> None:
    assert _load() == Problem(
        name="x", title="A product", path=Path("problems/x.yaml"), reference_path=Path("problems/x.py"),
        reference_source=REFERENCE, sizes={"M": 4096, "K": 8, "N": 4}, cpu_sizes={"M": 512, "K": 8, "N": 4},
        check_sizes=({"M": 1, "K": 1, "N": 1}, {"M": 31, "K": 9, "N": 3}), dtype="float32",
        flops=Formula("2*M*K*N"), bytes=Formula("4*(M*K + K*N + M*N)"),
        accuracy=AccuracyRule("fp32", "abs_inputs", Formula("K"), (1, 0)),
        baselines=("eager", "torch.compile", "eager-tf32"), kinds=("custom",),
        candidates_dir=REPOSITORY / "candidates" / "x",
        hash=hashlib.sha256((YAML + REFERENCE).encode()).hexdigest()[:16],
    )


def test_title_and_reference_are_enough(folder: Path) -> None:
    problem = _load(MINIMAL)
    assert (problem.sizes, problem.cpu_sizes, problem.check_sizes) == ({}, {}, ())
    assert (problem.flops, problem.bytes, problem.dtype) == (None, None, "float32")
    assert problem.accuracy == AccuracyRule("fp32", "row_max", None, None)
    assert problem.baselines == ("eager", "torch.compile") and problem.kinds == ("custom",)


def test_a_kernelbench_file_is_a_problem_by_itself(folder: Path) -> None:
    Path("15_tril_matmul.py").write_text(REFERENCE)
    problem = load_problem("15_tril_matmul.py", candidates_dir="mine")
    assert (problem.name, problem.title) == ("15_tril_matmul", "15 tril matmul")
    assert problem.path == problem.reference_path == Path("15_tril_matmul.py")
    assert (problem.sizes, problem.check_sizes, problem.flops) == ({}, (), None)
    assert problem.accuracy == AccuracyRule("fp32", "row_max", None, None)
    assert problem.baselines == ("eager", "torch.compile") and problem.candidates_dir == Path("mine")
    assert problem.hash == hashlib.sha256(REFERENCE.encode()).hexdigest()[:16]
    assert load_problem("15_tril_matmul.py").candidates_dir == REPOSITORY / "candidates" / "15_tril_matmul"


def test_the_cpu_is_timed_at_its_own_sizes_and_checked_at_none_that_is_larger(folder: Path) -> None:
    problem = _load()
    assert problem.timed_sizes("cuda")["M"] == 4096 and problem.timed_sizes("cpu")["M"] == 512
    assert problem.checks_for("cuda") == problem.check_sizes
    assert problem.checks_for("cpu") == ({"M": 1, "K": 1, "N": 1},)  # the other has K=9 > 8
    with pytest.raises(ValueError, match="'cuda' or 'cpu', not 'tpu'"):
        problem.timed_sizes("tpu")


def test_what_the_sizes_are_asked_for_can_be_changed_without_changing_the_problem(folder: Path) -> None:
    problem = _load()
    problem.timed_sizes("cpu")["M"] = 1
    problem.checks_for("cuda")[0]["M"] = 99
    assert problem.cpu_sizes["M"] == 512 and problem.check_sizes[0]["M"] == 1


def test_without_cpu_sizes_the_cpu_is_timed_at_the_timed_ones(folder: Path) -> None:
    assert _load(YAML.replace("  cpu: {M: 512, K: 8, N: 4}\n", "")).timed_sizes("cpu")["M"] == 4096


def test_sizes_keep_the_order_of_the_timed_ones(folder: Path) -> None:
    problem = _load(YAML.replace("cpu: {M: 512, K: 8, N: 4}", "cpu: {N: 4, M: 512, K: 8}"))
    assert list(problem.cpu_sizes) == ["M", "K", "N"]


def test_a_class_alone_may_stand_for_the_accuracy(folder: Path) -> None:
    assert _load(MINIMAL + "accuracy: tf32\n").accuracy == AccuracyRule("tf32", "row_max", None, None)


def test_terms_may_be_a_number(folder: Path) -> None:
    assert _load(MINIMAL + "accuracy: {terms: 8192}\n").accuracy.terms == Formula("8192")


def test_the_hash_moves_with_either_file_and_not_with_line_ends(folder: Path) -> None:
    first = _load().hash
    assert _load(YAML.replace("A product", "Another")).hash != first
    assert _load(reference=REFERENCE + "# more\n").hash != first
    assert _load(YAML.replace("\n", "\r\n"), REFERENCE.replace("\n", "\r\n")).hash == first


def test_scalars_are_read_as_yaml_1_2_reads_them(folder: Path) -> None:
    problem = _load(YAML.replace("M: 4096", "M: 04_096").replace("A product", "no"))
    assert (problem.title, problem.sizes["M"]) == ("no", 4096)


def test_an_anchor_may_be_used(folder: Path) -> None:
    yaml = YAML.replace("timed: {", "timed: &t {").replace("cpu: {M: 512, K: 8, N: 4}", "cpu: *t")
    assert _load(yaml).cpu_sizes == {"M": 4096, "K": 8, "N": 4}


def test_a_reference_is_never_imported(folder: Path) -> None:
    source = REFERENCE + "raise SystemExit('imported')\n"
    assert _load(reference=source).reference_source == source


@pytest.mark.parametrize("reference", [
    REFERENCE.replace("def get_init_inputs():\n    return []\n", ""),
    REFERENCE.replace("class Model(torch.nn.Module):\n    pass", "from y import Model"),
    REFERENCE.replace("get_inputs():", "get_inputs(n=1, *, k=2):"),
    REFERENCE.replace("get_inputs():", "get_inputs(*some, **more):"),
    REFERENCE + "class Helper: pass\ndef helper(n): pass\n",
])
def test_any_reference_that_can_be_called_will_do(folder: Path, reference: str) -> None:
    assert _load(reference=reference).reference_source == reference


# The sentences: keys and values

E1 = "Write, for example, timed: {M: 4096}"
E2 = "Write, for example, title: Product of two lower triangular matrices"
NO_QUOTES = "Take the quotes away: 4096"


@pytest.mark.parametrize(("old", "new", "says"), [
    ("title", "tilte", "1: unknown key 'tilte'. Did you mean 'title'?"),
    ("kinds:", "wibble:",
     "15: unknown key 'wibble'. The keys here are title, reference, dtype, mode, sizes, useful, "
     "accuracy and 2 more."),
    ("class:", "clas:", "13: unknown key 'accuracy.clas'. Did you mean 'class'?"),
    ("kinds: [custom]", "flops: M", "15: unknown key 'flops'. It belongs below 'useful:'."),
    ("  flops:", "  title:",
     "11: unknown key 'useful.title'. It belongs at the left margin, not below another key."),
    ("  cpu:", "  gpu:", "9: unknown key 'sizes.gpu'. Did you mean 'cpu'?"),
    ("title: A product\n", "", f"1: 'title' is missing. {E2}"),
    ("reference: x.py\n", "", "1: 'reference' is missing. Write, for example, reference: tril_matmul.py"),
    ("  timed: {M: 4096, K: 8, N: 4}\n", "", f"4: 'sizes.timed' is missing. {E1}"),
    ("A product", "", f"1: title must be a line of text, not empty. {E2}"),
    ("A product", "5", f"1: title must be a line of text, not 5. {E2}"),
    ("M: 4096", "M: 4k", f"5: sizes.timed.M must be a whole number of at least 1, not '4k'. {E1}"),
    ("M: 4096", "M: 0", f"5: sizes.timed.M must be a whole number of at least 1, not 0. {E1}"),
    ("M: 4096", "M: -1", f"5: sizes.timed.M must be a whole number of at least 1, not -1. {E1}"),
    ("M: 4096", "M: 1.5", f"5: sizes.timed.M must be a whole number of at least 1, not 1.5. {E1}"),
    ("M: 4096", "M: true", f"5: sizes.timed.M must be a whole number of at least 1, not true. {E1}"),
    ("M: 4096", "M: ", f"5: sizes.timed.M must be a whole number of at least 1, not empty. {E1}"),
    ("M: 4096", "M: '4096'",
     f"5: sizes.timed.M must be a whole number of at least 1, not '4096'. {NO_QUOTES}"),
    ("{M: 4096, K: 8, N: 4}", "{}", f"5: sizes.timed must be a mapping from size to number, not {{}}. {E1}"),
    ("{M: 4096, K: 8, N: 4}", "[4096]",
     f"5: sizes.timed must be a mapping from size to number, not [4096]. {E1}"),
    ("{M: 31, K: 9, N: 3}", "5",
     "8: sizes.check[1] must be a mapping from size to number, not 5. "
     "Write, for example, check: [{M: 1}, {M: 31}]"),
    ("{M: 31, K: 9, N: 3}", "{M: 31, K: x, N: 3}",
     "8: sizes.check[1].K must be a whole number of at least 1, "
     "not 'x'. Write, for example, check: [{M: 1}, {M: 31}]"),
    ("float32", "flaot32",
     "3: dtype must be float32, float64, float16 or bfloat16, not 'flaot32'. "
     "Did you mean 'float32'?"),
    ("float32", "fp32",
     "3: dtype must be float32, float64, float16 or bfloat16, not 'fp32'. Did you mean 'float32'?"),
    ("float32", "[float32]", "3: dtype must be float32, float64, float16 or bfloat16, not [float32]"),
    ("fp32,", "fp23,",
     "13: accuracy.class must be fp32, tf32, bf16 or fp16, not 'fp23'. Did you mean 'fp32'?"),
    ("abs_inputs", "abs_input",
     "13: accuracy.scale must be abs_inputs or row_max, not 'abs_input'. "
     "Did you mean 'abs_inputs'?"),
    ("[1, 0]", "1",
     "13: accuracy.contracted must be the list of the axes that are summed over, one for each factor, "
     "not 1. Write, for example, contracted: [1, 0]"),
    ("[1, 0]", "[-1, 0]",
     "13: accuracy.contracted[0] must be an axis: 0, 1, 2, …, not -1. "
     "Write, for example, contracted: [1, 0]"),
    ("[eager,", "[eagr,",
     "14: baselines[0] must be eager, torch.compile or eager-tf32, not 'eagr'. "
     "Did you mean 'eager'?"),
    ("[eager, torch.compile, eager-tf32]", "eager",
     "14: baselines must be a list of eager, torch.compile and eager-tf32, not 'eager'. "
     "Write, for example, baselines: [eager, torch.compile]"),
    ("[eager, torch", "[torch",
     "14: baselines leaves out eager, which every speedup is measured against. "
     "Add eager to the list."),
    ("eager-tf32", "eager", "14: baselines names 'eager' twice. Once is enough."),
    ("[custom]", "[]",
     "15: kinds must be a list of custom, mixed and library, not []. "
     "Write, for example, kinds: [custom]"),
    ("[custom]", "[custom, libary]",
     "15: kinds[1] must be custom, mixed or library, not 'libary'. "
     "Did you mean 'library'?"),
])
def test_a_wrong_key_or_value_names_its_line_and_what_to_type(
    folder: Path, old: str, new: str, says: str
) -> None:
    assert _message(YAML.replace(old, new, 1)) == f"problems/x.yaml:{says}"


# The sentences: keys that must fit each other


@pytest.mark.parametrize(("old", "new", "says"), [
    ("2*M*K*N", "2*M*Q*N", "11: useful.flops uses 'Q', which is no size of this problem (M, K, N)"),
    ("2*M*K*N", "2*m*K*N",
     "11: useful.flops uses 'm', which is no size of this problem (M, K, N). "
     "Did you mean 'M'?"),
    ('"2*M*K*N"', "2M", "11: useful.flops lacks an operator between two factors. Write * between them."),
    ('"2*M*K*N"', "[1]",
     '11: useful.flops must be a formula in the sizes, not [1]. '
     'Write, for example, flops: "2*M*N*K"'),
    ('"2*M*K*N"', "true",
     '11: useful.flops must be a formula in the sizes, not true. '
     'Write, for example, flops: "2*M*N*K"'),
    ('"2*M*K*N"', "M-4096", "11: useful.flops must be more than 0, but is 0 at M=4096, K=8, N=4"),
    ('"2*M*K*N"', "M-600", "11: useful.flops must be more than 0, but is -88 at M=512, K=8, N=4"),
    ('"2*M*K*N"', "M/(K-8)", "11: useful.flops divides by zero at K=8, M=4096"),
    ("terms: K", "terms: log2(K)", "13: accuracy.terms must be at least 1, but is 0 at M=1, K=1, N=1"),
    ("{M: 31, K: 9, N: 3}", "{M: 31, K: 9}", "8: sizes.check[1] leaves out N. Write {M: 31, K: 9, N: …}."),
    ("{M: 31, K: 9, N: 3}", "{M: 31, k: 9, N: 3}",
     "8: sizes.check[1] has 'k', which is no size of sizes.timed "
     "(M, K, N). Did you mean 'K'?"),
    ("N: 4}\nuseful", "N: 4, Q: 3}\nuseful",
     "9: sizes.cpu has 'Q', which is no size of sizes.timed (M, K, N). "
     "Add it to sizes.timed or take it away."),
])
def test_keys_that_do_not_fit_each_other_are_told_at_their_line(
    folder: Path, old: str, new: str, says: str
) -> None:
    assert _message(YAML.replace(old, new, 1)) == f"problems/x.yaml:{says}"


def test_a_formula_without_any_size_says_that_there_is_none(folder: Path) -> None:
    assert _message(MINIMAL + "useful: {flops: M}\n") == \
        "problems/x.yaml:3: useful.flops uses 'M', which is no size of this problem, which has none"


def test_a_size_that_python_could_not_name_is_refused(folder: Path) -> None:
    message = _message(MINIMAL + "sizes: {timed: {batch-size: 3}}\n")
    assert message == ("problems/x.yaml:3: 'batch-size' is no name that Python could give to a size. "
                       "Use letters, digits and underscores, a letter first.")


def test_every_mistake_in_both_files_is_reported_on_a_line_of_its_own(folder: Path) -> None:
    yaml = YAML.replace("title", "tilte").replace("M: 4096", "M: 4k").replace("2*M*K*N", "2*M*Q*N")
    assert _message(yaml.replace("[custom]", "[cusom]"), REFERENCE.replace("class Model", "class Modle")) == (
        "problems/x.yaml:1: unknown key 'tilte'. Did you mean 'title'?\n"
        f"problems/x.yaml:5: sizes.timed.M must be a whole number of at least 1, not '4k'. {E1}\n"
        "problems/x.yaml:11: useful.flops uses 'Q', which is no size of this problem (M, K, N)\n"
        "problems/x.yaml:15: kinds[0] must be custom, mixed or library, not 'cusom'. Did you mean 'custom'?\n"
        "problems/x.py:5: found class Modle; the harness runs the class named Model. Rename it to Model."
    )


# The sentences: YAML itself


@pytest.mark.parametrize(("yaml", "says"), [
    ("", ": is empty. Copy a neighbouring file and change it."),
    ("# a comment\n", ": is empty. Copy a neighbouring file and change it."),
    ("- a\n- b\n", ":1: must be keys and values, such as 'title: …', one to a line"),
    ("hello\n", ":1: must be keys and values, such as 'title: …', one to a line"),
    ("title: a\ntitle: b\n", ":2: 'title' stands here a second time. Keep this line or line 1."),
    ("sizes:\n  timed: {M: 1, M: 2}\n",
     ":2: 'sizes.timed.M' stands here a second time. Keep this line or line 2."),
    ("title: x\n\tdtype: y\n", ":2: a tab stands where YAML wants spaces. Indent with spaces."),
    ("sizes:\n\ttimed: y\n", ":2: a tab stands where YAML wants spaces. Indent with spaces."),
    (b"title: a\ndtype: \xff\n", ":2: byte 0xff is not UTF-8. Save the file again as UTF-8."),
    (YAML.encode("utf-16"), ":1: is UTF-16, not UTF-8. Save it again as UTF-8."),
    ("title: a: b\n",
     ":1: a ':' stands where no key can be. Put text that holds ': ' in quotes, and give keys of "
     "one level one indent."),
    ("title: 'x\ndtype: y\n", ":1: the quote that opens here is never closed"),
    ("a: 1\nsizes: {M: 1\nb: 2\n", ":2: the '{' that opens here is not closed, or a ',' is missing after it"),
    ("a: 1\nkinds: [custom\n", ":2: the '[' that opens here is not closed, or a ',' is missing after it"),
    ("useful: {flops: *M}\n", ":1: a value cannot begin with '*' or '&'. Put the value in quotes."),
    ("title: %x\n", ":1: a value cannot begin with '%'. Put the value in quotes."),
    ("title: @x\n", ":1: a value cannot begin with '@'. Put the value in quotes."),
    ("a: 1\n---\nb: 2\n", ":2: a second document begins after '---'. Keep one document to a file."),
    ("a: 1\nb: \x01\n", ":2: the character U+0001 cannot stand in YAML"),
    ("? [a]\n: 1\n", ":1: a key must be a word, not a list or a mapping"),
    ("title: !!python/object:os.system x\n",
     ":1: the tag '!!python/object:os.system' is not used in this file. Write the plain value."),
    ("title: &x [*x]\n", ":1: an alias (*) refers to the value that it stands in"),
    ("title: x\ndtype\nkinds: [custom]\n", ":2: there is a key without its ':'. Write key: value."),
    ("sizes: {timed: {M:1}}\n", ":1: 'M:1' needs a space after its ':'. Write M: 1"),
    ("title: 'x' y\n",
     ":1: text follows after a closing quote or bracket. Put the whole value in one pair of quotes."),
    ("title: x]\nkinds: [a]]\n", ":2: there is a bracket too many. Take it away, or put the text in quotes."),
    ("  title: a\ndtype: b\n",
     ":2: this line is not indented like those above it. Give keys of one level one indent."),
    ("- a\nb: 1\n", ":2: keys and list items stand at one level. Indent one of them."),
    ('title: "C:\\quick"\n',
     ":1: a text in double quotes holds a backslash that means nothing. Use single quotes."),
    ("title: " + "[" * 600, ": is nested too deeply to be read"),
])
def test_broken_yaml_is_told_in_one_sentence_at_its_line(folder: Path, yaml: str | bytes, says: str) -> None:
    assert _message(yaml) == f"problems/x.yaml{says}"


# The sentences: the reference


@pytest.mark.parametrize(("old", "new", "says"), [
    ("class Model(", "class Modle(",
     "problems/x.py:5: found class Modle; the harness runs the class named Model. "
     "Rename it to Model."),
    ("class Model(", "class ModelNew(",
     "problems/x.py:5: defines class ModelNew and no class Model, so it is a "
     "candidate and not a reference. A reference defines class Model, get_inputs and get_init_inputs."),
    ("class Model(torch.nn.Module):\n    pass\n", "", "problems/x.py: there is no class Model. "
     "Write class Model(nn.Module) with a forward method."),
    ("get_inputs", "get_input",
     "problems/x.py:7: there is no function get_inputs. "
     "Did you mean get_inputs where it says 'get_input'?"),
    ("def get_inputs():\n    return []\n", "", "problems/x.py: there is no function get_inputs. "
     "Write def get_inputs(): return [torch.rand(M, M), …]"),
    ("get_init_inputs", "get_initial_inputs",
     "problems/x.py:9: found a function 'get_initial_inputs'. "
     "Did you mean get_init_inputs?"),
    ("get_inputs():", "get_inputs(n, *, k):",
     "problems/x.py:7: get_inputs is called without arguments, but wants "
     "n, k. Use module-level names instead."),
    ("get_init_inputs():", "get_init_inputs(n):",
     "problems/x.py:9: get_init_inputs is called without arguments, "
     "but wants n. Use module-level names instead."),
    ("M = 4096", "m = 4096", "problems/x.yaml:5: size 'M' is not assigned in x.py. Did you mean 'm'?"),
    ("M = 4096\n", "",
     "problems/x.yaml:5: size 'M' is not assigned in x.py. Write M = 4096 at the top of x.py."),
    ("M = 4096", "M, L = 4096, 1",
     "problems/x.py:2: size 'M' is not set by an assignment of its own at the left "
     "margin. Write M = 4096 on a line of its own."),
    ("M = 4096", "M = L = 4096",
     "problems/x.py:2: size 'M' is not set by an assignment of its own at the left "
     "margin. Write M = 4096 on a line of its own."),
    ("M = 4096", "if True:\n    M = 4096",
     "problems/x.py:3: size 'M' is not set by an assignment of its own at the "
     "left margin. Write M = 4096 on a line of its own."),
    ("N = 4", "N = 4\nM = 8",
     "problems/x.py:5: size 'M' is assigned on line 2 and again here. Keep one of them."),
    ("M = 4096", "M = (4096", "problems/x.py:2: Python cannot read this: '(' was never closed"),
    (REFERENCE, " \n", "problems/x.py: is empty; a reference defines class Model and get_inputs"),
])
def test_what_a_reference_lacks_is_told_with_what_to_write(
    folder: Path, old: str, new: str, says: str
) -> None:
    assert _message(reference=REFERENCE.replace(old, new, 1)) == says


def test_a_size_assigned_inside_a_function_does_not_count(folder: Path) -> None:
    reference = REFERENCE.replace("M = 4096\n", "") + "def f():\n    M = 4096\n"
    assert "size 'M' is not assigned in x.py" in _message(reference=reference)


def test_all_that_a_reference_lacks_is_told_at_once(folder: Path) -> None:
    assert len(_message(reference="import torch\nM = 1\n").splitlines()) == 4


@pytest.mark.parametrize(("name", "says"), [
    ("y.py", "problems/x.yaml:2: reference y.py: no such file. Did you mean problems/x.py?"),
    ("nothing_like_it.py",
     "problems/x.yaml:2: reference nothing_like_it.py: no such file. There is problems/x.py."),
    (".",
     "problems/x.yaml:2: reference .: is a folder, not a file. Name a file in it, for example problems/x.py"),
])
def test_a_reference_that_is_not_there_is_told_at_the_line_that_names_it(
    folder: Path, name: str, says: str
) -> None:
    assert _message(YAML.replace("x.py", name)) == says


def test_a_kernelbench_file_has_the_same_sentences(folder: Path) -> None:
    Path("a.py").write_text("import torch\n\nclass Modell: pass\n")
    with pytest.raises(InputError) as caught:
        load_problem("a.py")
    first, second = str(caught.value).splitlines()
    assert first == "a.py:3: found class Modell; the harness runs the class named Model. Rename it to Model."
    assert second.startswith("a.py: there is no function get_inputs.")


# The sentences: files


@pytest.mark.parametrize(("path", "says"), [
    ("problems/tril_matmull.yaml", ": no such file. Did you mean problems/tril_matmul.yaml?"),
    ("problms/tril_matmul.yaml",
     ": no such file: there is no folder problms. Did you mean problems/tril_matmul.yaml?"),
    ("problems/tril_matmul", ": no such file. Did you mean problems/tril_matmul.yaml?"),
    ("tril_matmul", ": no such file. Did you mean problems/tril_matmul.yaml?"),
    ("tril_matmul.yml", ": no such file. Did you mean problems/tril_matmul.yaml?"),
    ("problems/TRIL_MATMUL.yaml", ": no such file. Did you mean problems/tril_matmul.yaml?"),
    ("problems/tril.py", ": no such file. Did you mean problems/tril_matmul.py?"),
    ("wibble", ": no such file. There are problems/softmax.yaml and problems/tril_matmul.yaml."),
    ("problems", ": is a folder, not a file. Name a file in it, for example problems/softmax.yaml"),
    ("problems/notes.txt", ": is no problem file. A problem is a .yaml file, or a KernelBench .py file."),
    ("/dev/null", ": is not a regular file, so it cannot be read"),
    ("problems/softmax.yaml/x", ": no such file: there is no folder problems/softmax.yaml. There are"),
    ("x" * 300 + ".yaml", ": cannot be read (File name too long)"),
    ("a\0b.yaml", ": cannot be read ("),
])
def test_a_path_that_is_no_problem_file_offers_the_nearest(folder: Path, path: str, says: str) -> None:
    for name in ("tril_matmul.yaml", "tril_matmul.py", "softmax.yaml", "notes.txt", ".hidden.yaml"):
        Path("problems", name).write_text("x")
    with pytest.raises(InputError) as caught:
        load_problem(path)
    assert str(caught.value).startswith(f"{path}{says}")


def test_a_file_that_may_not_be_read_says_what_to_type(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _load()

    def refused(self: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", refused)
    with pytest.raises(InputError) as caught:
        load_problem("problems/x.yaml")
    assert str(caught.value) == "problems/x.yaml: permission denied. Type chmod u+r problems/x.yaml"


# The folder of problems


def test_problems_are_listed_by_name(folder: Path) -> None:
    _load()
    Path("problems/a.yml").write_text(YAML)
    assert [problem.name for problem in list_problems(Path("problems"))] == ["a", "x"]


def test_the_list_names_every_problem_that_cannot_be_loaded(folder: Path) -> None:
    _load()
    Path("problems/a.yaml").write_text("")
    Path("problems/b.yaml").write_text("tilte: x\nreference: x.py\n")
    with pytest.raises(InputError) as caught:
        list_problems(Path("problems"))
    files = [line.split(":")[0] for line in str(caught.value).splitlines()]
    assert files == ["problems/a.yaml", "problems/b.yaml"]


@pytest.mark.parametrize(("name", "says"), [
    ("nowhere", "nowhere: no such folder of problems"),
    ("empty", "empty: holds no problem file. A problem is NAME.yaml beside its reference NAME.py."),
    ("file", "file: is a file, not a folder of problems"),
])
def test_a_folder_without_problems_says_so(folder: Path, name: str, says: str) -> None:
    Path("empty").mkdir()
    Path("file").write_text("x")
    with pytest.raises(InputError) as caught:
        list_problems(Path(name))
    assert str(caught.value) == says


def test_every_shipped_problem_loads() -> None:
    problems = {problem.name: problem for problem in list_problems(PROBLEMS_DIR)}
    assert {"tril_matmul", "matmul_transposed_a"} <= set(problems)
    tril = problems["tril_matmul"]
    assert tril.sizes == {"M": 4096} and tril.flops is not None and tril.bytes is not None
    assert tril.flops.evaluate(tril.sizes) == pytest.approx(2 * 4096 * 4097 * 4098 / 6)
    assert tril.bytes.evaluate(tril.sizes) == pytest.approx(134.2e6, rel=1e-3)
    transposed = problems["matmul_transposed_a"]
    assert transposed.flops is not None
    assert transposed.flops.evaluate(transposed.sizes) == pytest.approx(137.4e9, rel=1e-3)
    for problem in problems.values():
        assert problem.checks_for("cpu"), f"{problem.name} would be checked at one size only on a CPU"


def test_the_useful_work_of_the_gradients_is_that_of_the_products_that_are_not_zero() -> None:
    problem = load_problem(PROBLEMS_DIR / "tril_matmul_backward.yaml")
    assert problem.mode == "forward_backward"
    M = 7
    places = [(i, j, k) for i in range(M) for j in range(M) for k in range(M)]
    forward = sum(j <= k <= i for i, j, k in places)
    gradient_of_a = sum(j <= i and j <= k for i, j, k in places)  # dA[i, k] += G[i, j] * B[k, j]
    gradient_of_b = sum(i >= k and j <= i for i, j, k in places)  # dB[k, j] += A[i, k] * G[i, j]
    assert problem.flops is not None
    assert problem.flops.evaluate({"M": M}) == 2 * (forward + gradient_of_a + gradient_of_b)


def test_another_mode_keeps_no_formulas_of_the_old_one() -> None:
    problem = load_problem(PROBLEMS_DIR / "tril_matmul.yaml")
    assert in_mode(problem, None) is in_mode(problem, "forward") is problem
    changed = in_mode(problem, "forward_backward")
    assert (changed.mode, changed.flops, changed.bytes) == ("forward_backward", None, None)


def test_sizes_that_were_asked_for_count_on_every_device_and_several_are_several_problems() -> None:
    problem = load_problem(PROBLEMS_DIR / "tril_matmul.yaml")
    assert at_sizes(problem, []) is problem and problem.each_size() == (problem,)
    chosen = at_sizes(problem, ["M=1024", "M=256"])
    assert chosen.timed_sizes("cuda") == chosen.timed_sizes("cpu") == {"M": 1024}
    assert [each.timed_sizes("cuda") for each in chosen.each_size()] == [{"M": 1024}, {"M": 256}]
    assert [each.timed_sizes("cpu") for each in chosen.each_size()] == [{"M": 1024}, {"M": 256}]
    assert {each.hash for each in chosen.each_size()} == {problem.hash}
    assert all(each.each_size() == (each,) for each in chosen.each_size())


def test_sizes_at_which_a_formula_has_no_sense_are_refused(folder: Path) -> None:
    sinking = replace(_load(YAML), flops=Formula("M-100"))
    with pytest.raises(InputError, match=r"--sizes M=64,K=8,N=4: the formula 'M-100' is not positive there"):
        at_sizes(sinking, ["M=64"])


def test_a_kernelbench_file_has_no_other_sizes(folder: Path) -> None:
    alone = load_problem(REPOSITORY / "tests/fixtures/kernelbench/linear_relu.py")
    with pytest.raises(InputError, match="keeps its own sizes"):
        at_sizes(alone, ["M=64"])


def test_importing_the_module_loads_neither_torch_nor_pydantic_nor_yaml() -> None:
    code = ("import sys, harness.problem, harness.settings, harness.candidate; "
            "print(sorted({'torch', 'pydantic', 'yaml', 'pandas', 'numpy'} & set(sys.modules)))")
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, cwd=REPOSITORY, check=True)
    assert done.stdout.strip() == "[]"
