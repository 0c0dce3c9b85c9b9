"""What a right problem file becomes."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from harness.model.formulas import Formula
from harness.model.problem import AccuracyRule, Problem, load_problem


def test_a_problem_file_becomes_a_problem(files):
    assert files.load() == Problem(
        name="x", title="A product", path=Path("problems/x.yaml"), reference_path=Path("problems/x.py"),
        reference_source=files.reference, sizes={"M": 4096, "K": 8, "N": 4}, cpu_sizes={"M": 512, "K": 8, "N": 4},
        check_sizes=({"M": 1, "K": 1, "N": 1}, {"M": 31, "K": 9, "N": 3}), dtype="float32",
        flops=Formula("2*M*K*N"), bytes=Formula("4*(M*K + K*N + M*N)"),
        accuracy=AccuracyRule("fp32", "abs_inputs", Formula("K"), (1, 0)),
        baselines=("eager", "torch.compile", "eager-tf32"), kinds=("custom",),
        candidates_dir=Path("candidates/x"),
        hash=hashlib.sha256((files.yaml + files.reference).encode()).hexdigest()[:16],
    )


def test_title_and_reference_are_enough(files):
    problem = files.load(files.minimal)
    assert (problem.sizes, problem.cpu_sizes, problem.check_sizes) == ({}, {}, ())
    assert (problem.flops, problem.bytes, problem.dtype) == (None, None, "float32")
    assert problem.accuracy == AccuracyRule("fp32", "row_max", None, None)
    assert problem.baselines == ("eager", "torch.compile") and problem.kinds == ("custom",)


def test_a_kernelbench_file_is_a_problem_by_itself(files):
    Path("15_tril_matmul.py").write_text(files.reference)
    problem = load_problem("15_tril_matmul.py", candidates_dir="mine")
    assert (problem.name, problem.title) == ("15_tril_matmul", "15 tril matmul")
    assert problem.path == problem.reference_path == Path("15_tril_matmul.py")
    assert (problem.sizes, problem.check_sizes, problem.flops) == ({}, (), None)
    assert problem.accuracy == AccuracyRule("fp32", "row_max", None, None)
    assert problem.baselines == ("eager", "torch.compile") and problem.candidates_dir == Path("mine")
    assert problem.hash == hashlib.sha256(files.reference.encode()).hexdigest()[:16]
    assert load_problem("15_tril_matmul.py").candidates_dir == Path("candidates/15_tril_matmul")


def test_the_cpu_is_timed_at_its_own_sizes_and_checked_at_none_that_is_larger(files):
    problem = files.load()
    assert problem.timed_sizes("cuda")["M"] == 4096 and problem.timed_sizes("cpu")["M"] == 512
    assert problem.checks_for("cuda") == problem.check_sizes
    assert problem.checks_for("cpu") == ({"M": 1, "K": 1, "N": 1},)  # the other has K=9 > 8
    with pytest.raises(ValueError, match="'cuda' or 'cpu', not 'tpu'"):
        problem.timed_sizes("tpu")


def test_what_the_sizes_are_asked_for_can_be_changed_without_changing_the_problem(files):
    problem = files.load()
    problem.timed_sizes("cpu")["M"] = 1
    problem.checks_for("cuda")[0]["M"] = 99
    assert problem.cpu_sizes["M"] == 512 and problem.check_sizes[0]["M"] == 1


def test_without_cpu_sizes_the_cpu_is_timed_at_the_timed_ones(files):
    assert files.load(files.yaml.replace("  cpu: {M: 512, K: 8, N: 4}\n", "")).timed_sizes("cpu")["M"] == 4096


def test_sizes_keep_the_order_of_the_timed_ones(files):
    problem = files.load(files.yaml.replace("cpu: {M: 512, K: 8, N: 4}", "cpu: {N: 4, M: 512, K: 8}"))
    assert list(problem.cpu_sizes) == ["M", "K", "N"]


def test_a_class_alone_may_stand_for_the_accuracy(files):
    assert files.load(files.minimal + "accuracy: tf32\n").accuracy == AccuracyRule("tf32", "row_max", None, None)


def test_terms_may_be_a_number(files):
    assert files.load(files.minimal + "accuracy: {terms: 8192}\n").accuracy.terms == Formula("8192")


def test_the_hash_moves_with_either_file_and_not_with_line_ends(files):
    first = files.load().hash
    assert files.load(files.yaml.replace("A product", "Another")).hash != first
    assert files.load(reference=files.reference + "# more\n").hash != first
    assert files.load(files.yaml.replace("\n", "\r\n"), files.reference.replace("\n", "\r\n")).hash == first


def test_scalars_are_read_as_yaml_1_2_reads_them(files):
    problem = files.load(files.yaml.replace("M: 4096", "M: 04_096").replace("A product", "no"))
    assert (problem.title, problem.sizes["M"]) == ("no", 4096)


def test_an_anchor_may_be_used(files):
    yaml = files.yaml.replace("timed: {", "timed: &t {").replace("cpu: {M: 512, K: 8, N: 4}", "cpu: *t")
    assert files.load(yaml).cpu_sizes == {"M": 4096, "K": 8, "N": 4}
