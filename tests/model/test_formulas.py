"""Formulas: what they compute, and the sentence for each thing that is no formula."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.formulas import Formula, FormulaError

SIZES = {"M": 4096, "K": 8192, "N": 3}


@pytest.mark.parametrize(("text", "value"), [
    ("M", 4096.0),
    ("8192", 8192.0),
    ("1.5e9", 1.5e9),
    ("M*(M+1)*(M+2)/3", 22_923_272_192.0),
    ("4*(M*(M+1) + M*M)", 134_234_112.0),
    ("7 // 2 + 2**3 - -N", 14.0),
    ("min(M, K, N) + max(1, N)", 6.0),
    ("ceil(M / 1000) * sqrt(4) + log2(M)", 22.0),
    ("M\n  * 2", 8192.0),
])
def test_a_formula_has_the_value_that_arithmetic_gives(text: str, value: float) -> None:
    found = Formula(text).evaluate(SIZES)
    assert found == value and isinstance(found, float)


@given(st.integers(1, 2**20), st.integers(1, 2**20))
def test_evaluation_agrees_with_python_on_a_matrix_product(m: int, k: int) -> None:
    assert Formula("2*M*M*K").evaluate({"M": m, "K": k}) == pytest.approx(2 * m * m * k, rel=1e-15)


def test_a_size_may_be_named_like_a_function() -> None:
    assert Formula("min(min, 2)").evaluate({"min": 1}) == 1.0


def test_names_are_those_of_sizes_and_not_of_functions() -> None:
    assert Formula("ceil(M/2) + min(K, M)").names == ("K", "M")


@pytest.mark.parametrize(("text", "says"), [
    ("2*M*Q", "uses 'Q', which is no size of this problem (M, K, N)"),
    ("2*m", "uses 'm', which is no size of this problem (M, K, N). Did you mean 'M'?"),
    ("M/(N-3)", "divides by zero at M=4096, N=3"),
    ("M // 0", "divides by zero at M=4096"),
    ("sqrt(-M)", "has no real value at M=4096"),
    ("(-N)**0.5", "has no real value at N=3"),
    ("ceil((-N)**0.5)", "has no real value at N=3"),
    ("log2(0)", "has no real value"),
    ("10**10**10", "is too large for a number"),
    ("1e308*10", "is too large for a number"),
])
def test_what_has_no_finite_value_says_why_and_where(text: str, says: str) -> None:
    with pytest.raises(FormulaError) as caught:
        Formula(text).evaluate(SIZES)
    assert says in str(caught.value)


@pytest.mark.parametrize(("text", "says"), [
    ("", "is empty"),
    ("  \n ", "is empty"),
    ("M^2", "uses '^', which is no operator of a formula. A power is written **."),
    ("M % 2", "uses '%', which is no operator"),
    ("M << 1", "uses '<<', which is no operator"),
    ("2M", "lacks an operator between two factors. Write * between them."),
    ("2 M", "lacks an operator between two factors"),
    ("M K", "lacks an operator between two factors"),
    ("2(M)", "Write * between two factors."),
    ("M(M+1)", "calls 'M', which is none of min, max, ceil, sqrt and log2. A product is written M*(…)."),
    ("cel(M)", "calls 'cel', which is none of min, max, ceil, sqrt and log2. Did you mean 'ceil'?"),
    ("(M+1", "has 1 '(' and 0 ')'"),
    ("M*", "ends in '*'"),
    ("*M", "cannot be read"),
    ("sqrt(M, K)", "must give sqrt() one number. For example sqrt(M)."),
    ("min(M)", "must give min() two or more numbers"),
    ("max()", "must give max() two or more numbers"),
    ("max(M, K, key=N)", "must give max() two or more numbers"),
    ("max(*M, K)", "holds '*M', which is no part of a formula"),
    ("M.real", "holds 'M.real'"),
    ("M[0]", "holds 'M[0]'"),
    ("M.sqrt(2)", "holds 'M.sqrt(2)'"),
    ("'M'", "holds ''M''"),
    ("True", "holds 'True'"),
    ("1j", "holds '1j'"),
    ("M < K", "holds 'M < K'"),
    ("M if K else N", "holds 'M if K else N'"),
    ("lambda: M", "holds 'lambda: M'"),
    ("[M]", "holds '[M]'"),
    ("not M", "holds 'not M'"),
    ("(M := 2)", "holds 'M := 2'"),
    ("1e400", "holds '1e400', which is too large for a number"),
    ("9" * 400, "which is too large for a number"),
    ("M+" * 400 + "1", "is longer than 500 characters"),
    ("M\0", "cannot be read"),
    ("(" * 300 + ")" * 300, "is longer than 500 characters"),
    ("(" * 240 + "1" + ")" * 240, "cannot be read"),
])
def test_what_is_no_formula_is_refused_before_any_size_is_known(text: str, says: str) -> None:
    with pytest.raises(FormulaError) as caught:
        Formula(text)
    assert says in str(caught.value)


@pytest.mark.parametrize("text", [
    "__import__('os').system('true')", "().__class__", "open('/etc/passwd')", "exec('1')", "M.__class__",
    "[x for x in M]", "f'{M}'", "eval('1')", "globals()", "print",
])
def test_nothing_but_arithmetic_ever_runs(text: str) -> None:
    with pytest.raises(FormulaError):
        Formula(text).evaluate(SIZES)


@given(st.text(alphabet="MKN0123456789+-*/() .,minaxcelsqrtog2^%[]'_\n", max_size=30))
def test_any_text_gives_a_finite_number_or_a_formula_error(text: str) -> None:
    try:
        value = Formula(text).evaluate(SIZES)
    except FormulaError as error:
        assert error.fault
    else:
        assert math.isfinite(value)


def test_the_error_keeps_sentence_and_hint_apart_for_messages_with_another_subject() -> None:
    with pytest.raises(FormulaError) as caught:
        Formula("2*m").evaluate({"M": 1})
    assert caught.value.fault == "uses 'm', which is no size of this problem (M)"
    assert caught.value.hint == "Did you mean 'M'?"


def test_a_problem_without_sizes_says_so() -> None:
    with pytest.raises(FormulaError, match="no size of this problem, which has none"):
        Formula("M").evaluate({})


def test_a_formula_that_is_not_text_is_refused() -> None:
    with pytest.raises(FormulaError, match="is not text"):
        Formula(5)  # type: ignore[arg-type]
