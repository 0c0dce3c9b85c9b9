"""The problems of this repository, and another mode of one."""

from __future__ import annotations

import subprocess
import sys

import pytest
from shipped import shipped

from harness.model.paths import REPOSITORY
from harness.model.problem import PROBLEMS_DIR, in_mode, load_problem


def test_every_shipped_problem_loads():
    problems = {path.stem: load_problem(path) for path in shipped("problems/*.yaml")}
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


def test_the_useful_work_of_the_gradients_is_that_of_the_products_that_are_not_zero():
    problem = load_problem(PROBLEMS_DIR / "tril_matmul_backward.yaml")
    assert problem.mode == "forward_backward"
    M = 7
    places = [(i, j, k) for i in range(M) for j in range(M) for k in range(M)]
    forward = sum(j <= k <= i for i, j, k in places)
    gradient_of_a = sum(j <= i and j <= k for i, j, k in places)  # dA[i, k] += G[i, j] * B[k, j]
    gradient_of_b = sum(i >= k and j <= i for i, j, k in places)  # dB[k, j] += A[i, k] * G[i, j]
    assert problem.flops is not None
    assert problem.flops.evaluate({"M": M}) == 2 * (forward + gradient_of_a + gradient_of_b)


def test_another_mode_keeps_no_formulas_of_the_old_one():
    problem = load_problem(PROBLEMS_DIR / "tril_matmul.yaml")
    assert in_mode(problem, None) is in_mode(problem, "forward") is problem
    changed = in_mode(problem, "forward_backward")
    assert (changed.mode, changed.flops, changed.bytes) == ("forward_backward", None, None)


@pytest.mark.processes
def test_importing_the_module_loads_neither_torch_nor_pydantic_nor_yaml():
    code = ("import sys, harness.model.problem, harness.model.settings, harness.model.candidate; "
            "print(sorted({'torch', 'pydantic_core', 'yaml', 'pandas', 'numpy'} & set(sys.modules)))")
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, cwd=REPOSITORY, check=True)
    assert done.stdout.strip() == "[]"
