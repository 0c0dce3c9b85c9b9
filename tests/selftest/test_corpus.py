"""The headers of the adversarial corpus: what is read from a good one, and what is said of a bad one."""

from __future__ import annotations

import pytest

from harness.model.errors import HarnessError
from harness.selftest.corpus import cases_for, read_case, read_corpus


def test_a_header_is_read_field_by_field_over_lines_that_go_on(tmp_path):
    folder = tmp_path / "clock"
    folder.mkdir()
    path = folder / "side_stream.py"
    path.write_text(
        '# a comment first\n"""Launches on a side stream\nand never joins it.\n\n'
        "Mechanism: the events stand on another stream;\n  the judge's clock does not.\n"
        "Expected: rejected/clocks_disagree or incorrect/wrong_values\n"
        'Fools: clock\nDevice: cuda\nKind: library or mixed\nProblem: matmul_transposed_a\n"""\nimport torch\n',
        encoding="utf-8",
    )
    (case,) = read_corpus(tmp_path)
    assert (case.path, case.name, case.group) == (path, "side_stream", "clock")
    assert case.sentence == "Launches on a side stream and never joins it."
    assert case.mechanism == "the events stand on another stream; the judge's clock does not."
    assert case.expected == ("rejected/clocks_disagree", "incorrect/wrong_values")
    assert (case.fools, case.devices, case.kinds) == ("clock", ("cuda",), ("library", "mixed"))
    assert (case.problem, case.is_honest) == ("matmul_transposed_a", False)


def test_what_a_header_leaves_out_has_its_default(write_case):
    case = read_case(write_case("answer/stale"))
    assert (case.kinds, case.problem, case.devices, case.needs) == ((), "tril_matmul", ("cpu", "cuda"), ())


def test_the_modules_that_a_case_needs_are_named_as_python_imports_them(write_case):
    assert read_case(write_case("answer/odd", more="Needs: numba.cuda and cupy\n")).needs == ("numba.cuda", "cupy")


def test_a_file_that_is_no_python_has_a_header_all_the_same(write_case):
    case = read_case(write_case(
        "form/no_python", "class ModelNew(nn.Module:\n    def\n", expected="build_failed/syntax_error", fools="nothing"
    ))
    assert case.expected == ("build_failed/syntax_error",)


def test_bytes_that_are_no_text_below_the_header_do_no_harm(write_case):
    path = write_case("form/latin", expected="build_failed/syntax_error", fools="nothing")
    path.write_bytes(path.read_bytes() + b"x = '\xff\xfe'\n")
    assert read_case(path).name == "latin"


def test_cases_come_by_group_and_name_and_hidden_files_are_left_alone(tmp_path, write_case):
    for place in ("answer/b", "answer/a", "clock/z"):
        write_case(place)
    write_case("honest/fine", expected="ok/", fools="nothing")
    write_case("answer/_part_of_another")
    assert [case.name for case in read_corpus(tmp_path)] == ["z", "a", "b", "fine"]


def test_cases_are_chosen_by_device_and_problem(tmp_path, write_case):
    write_case("clock/both")
    write_case("clock/gpu", device="cuda")
    write_case("answer/other", more="Problem: matmul_transposed_a\n")
    cases = read_corpus(tmp_path)
    assert [case.name for case in cases_for(cases, "cpu", "tril_matmul")] == ["both"]
    assert [case.name for case in cases_for(cases, "cuda", "tril_matmul")] == ["both", "gpu"]
    assert [case.name for case in cases_for(cases, "cpu", "matmul_transposed_a")] == ["other"]


@pytest.mark.parametrize(
    ("fields", "line", "said"),
    [
        ({"expected": "rejected/clock_disagree"}, 4, "Did you mean rejected/clocks_disagree?"),
        ({"expected": "incorrect/clocks_disagree"}, 4, "is no reason for incorrect"),
        ({"expected": "wrong_values"}, 4, "is no status/reason_code"),
        ({"expected": "incorect/wrong_values"}, 4, "Did you mean incorrect/wrong_values?"),
        ({"expected": ""}, 4, "the header has no Expected"),
        ({"fools": "clocks"}, 5, "Write clock, answer, substance or nothing"),
        ({"device": "gpu"}, 6, "Write cpu, cuda or any"),
        ({"more": "Kind: libary\n"}, 7, "Write custom, library, mixed or unknown"),
        ({"more": "Problem: tril\n"}, 7, "Write tril_matmul, matmul_transposed_a or"),
        ({"more": "Needs: cupy, numba\n"}, 7, "is no module"),
        ({"more": "Expect: ok/\n"}, 7, "Did you mean Expected:?"),
        ({"more": "and so on\n"}, 7, "Indent a line that goes on by two spaces"),
        ({"more": "Fools: clock\n"}, 7, "twice"),
        ({"sentence": ""}, 1, "does not say what it does"),
        ({"expected": "ok/"}, 4, "what fools by the answer may not be ok/"),
        ({"expected": "ok/", "fools": "clock"}, 5, "Write Kind: library, mixed or unknown"),
        ({"expected": "ok/", "fools": "substance"}, 5, "Write Kind: library, mixed or unknown"),
        ({"fools": "substance", "more": "Kind: custom or mixed\n"}, 5, "of another kind than custom"),
    ],
    ids=lambda value: next(iter(value.values())).strip() or "empty" if isinstance(value, dict) else None,
)
def test_a_mistake_is_one_sentence_with_file_line_and_what_to_write(write_case, fields, line, said):
    path = write_case("answer/mistaken", **fields)
    with pytest.raises(HarnessError) as error:
        read_case(path)
    assert str(error.value).startswith(f"{path}:{line}: ")
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_a_library_behind_a_decoy_may_be_ok_when_its_kind_is_named(write_case):
    case = read_case(write_case("substance/decoy", expected="ok/", fools="substance", more="Kind: library\n"))
    assert (case.expected, case.kinds) == (("ok/",), ("library",))


def test_a_fault_that_comes_to_nothing_behind_the_sandbox_may_be_ok(write_case):
    case = read_case(write_case("machine/kills_its_parent", expected="ok/ or crashed/signal", fools="nothing"))
    assert case.expected == ("ok/", "crashed/signal")


def test_an_honest_control_that_may_fail_is_refused(write_case):
    path = write_case("honest/doubtful", expected="ok/ or incorrect/raised", fools="nothing")
    with pytest.raises(HarnessError, match="must pass"):
        read_case(path)


def test_every_mistake_of_a_corpus_is_told_at_once(tmp_path, write_case):
    write_case("clock/first", fools="nobody")
    write_case("clock/second", device="tpu")
    write_case("clocks/third")
    write_case("clock/fourth")
    write_case("answer/fourth")
    (tmp_path / "machine").mkdir()
    (tmp_path / "machine" / "headless.py").write_text("import os\n")
    with pytest.raises(HarnessError) as error:
        read_corpus(tmp_path)
    told = str(error.value).splitlines()
    assert len(told) == 5
    assert "Did you mean" in told[0] and "clocks" in told[0]
    assert any("a case of this name already" in line for line in told)
    assert any("headless.py:1: has no header" in line for line in told)


@pytest.mark.parametrize("folder", ["missing", "."])
def test_a_folder_without_cases_is_said_to_be_one(tmp_path, folder):
    with pytest.raises(HarnessError, match="no such folder|holds no case"):
        read_corpus(tmp_path / folder)
