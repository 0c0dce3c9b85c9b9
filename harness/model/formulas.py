"""Formulas in the sizes of a problem, such as ``M*(M+1)*(M+2)/3``, as a YAML file states its useful work.

They are parsed with `ast` and walked in floating point, never handed to `eval`: they compute a number and nothing else.
"""

from __future__ import annotations

import ast
import math
import operator
import re
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from harness.model.spelling import hint_for, listed

_OPERATORS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.Div: operator.truediv, ast.FloorDiv: operator.floordiv, ast.Pow: operator.pow,
}
_SIGNS: dict[type[ast.unaryop], Callable[[float], float]] = {ast.USub: operator.neg, ast.UAdd: operator.pos}
_FUNCTIONS: dict[str, Callable[..., float]] = {
    "min": min, "max": max, "ceil": math.ceil, "sqrt": math.sqrt, "log2": math.log2,
}
_OF_ONE_NUMBER = ("ceil", "sqrt", "log2")
_FOREIGN_SYMBOLS = {ast.BitXor: "^", ast.Mod: "%", ast.MatMult: "@", ast.BitAnd: "&", ast.BitOr: "|",
                    ast.LShift: "<<", ast.RShift: ">>"}
_GRAMMAR = "A formula holds numbers, sizes, + - * / // **, parentheses, min, max, ceil, sqrt and log2."
_LONGEST_TEXT = 500


class FormulaError(ValueError):
    """Raised when a formula cannot be read or has no finite value. `fault` is the sentence without its subject ("uses
    'Q', which is …"), for messages that name the key themselves; `hint` is what to write instead, or None.
    """

    def __init__(self, text: str, fault: str, hint: str | None = None) -> None:
        self.text, self.fault, self.hint = text, fault, hint
        super().__init__(f"the formula '{text}' {fault}" + (f". {hint}" if hint else ""))


@dataclass(frozen=True)
class Formula:
    """A formula in size names; `text` is what the user wrote. Raises FormulaError when it cannot be read."""

    text: str

    def __post_init__(self) -> None:
        _parsed(self.text)

    @property
    def names(self) -> tuple[str, ...]:
        """The size names that the formula uses, sorted."""
        nodes = list(ast.walk(_parsed(self.text)))
        called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
        return tuple(sorted({node.id for node in nodes if isinstance(node, ast.Name) and id(node) not in called}))

    def check_names(self, sizes: Iterable[str]) -> None:
        """Raises FormulaError for the first name in the formula that is none of `sizes`."""
        known = list(sizes)
        for name in self.names:
            if name not in known:
                there_are = f" ({', '.join(known)})" if known else ", which has none"
                fault = f"uses '{name}', which is no size of this problem{there_are}"
                raise FormulaError(self.text, fault, hint_for(name, known))

    def evaluate(self, sizes: Mapping[str, int]) -> float:
        """The value with `sizes` put in, in double precision. Raises FormulaError for a name that is no size, a
        division by zero, the root of a negative number and anything else that has no finite real value.
        """
        self.check_names(sizes)
        at = ", ".join(f"{name}={sizes[name]}" for name in self.names)
        where = f" at {at}" if at else ""
        try:
            value = _value(_parsed(self.text).body, sizes)
        except ZeroDivisionError:
            raise FormulaError(self.text, f"divides by zero{where}") from None
        except OverflowError:
            raise FormulaError(self.text, f"is too large for a number{where}") from None
        except (ValueError, TypeError):  # sqrt and log2 of what they do not take; a complex power rounded
            raise FormulaError(self.text, f"has no real value{where}") from None
        if isinstance(value, complex):
            raise FormulaError(self.text, f"has no real value{where}")
        if not math.isfinite(value):
            raise FormulaError(self.text, f"is too large for a number{where}")
        return float(value)


@lru_cache(maxsize=256)
def _parsed(text: str) -> ast.Expression:
    """The checked syntax tree of `text`."""
    if not isinstance(text, str):
        raise FormulaError(str(text), "is not text")
    line = " ".join(text.split())  # a folded YAML text may break its line anywhere
    if not line:
        raise FormulaError(text, "is empty")
    if len(line) > _LONGEST_TEXT:
        raise FormulaError(f"{line[:20]}…", f"is longer than {_LONGEST_TEXT} characters")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(line, mode="eval")
        _check(tree.body, line)
    except FormulaError:
        raise
    except SyntaxError:
        raise FormulaError(text, *_why_unreadable(line)) from None
    except (ValueError, RecursionError, MemoryError):
        raise FormulaError(text, "cannot be read", _GRAMMAR) from None
    return tree


def _why_unreadable(line: str) -> tuple[str, str]:
    """Fault and hint for text that Python's grammar refuses; its own wording differs between versions."""
    if re.search(r"\d\s*[A-Za-z_(]|\w\s+\w|\)\s*\w", line):
        return "lacks an operator between two factors", "Write * between them."
    if line.count("(") != line.count(")"):
        return f"has {line.count('(')} '(' and {line.count(')')} ')'", "Close each bracket once."
    if line[-1] in "+-*/":
        return f"ends in '{line[-1]}'", "Write what follows it, or take it away."
    return "cannot be read", _GRAMMAR


def _check(node: ast.expr, text: str) -> None:
    """Raises FormulaError at the first part of the tree that is no part of a formula."""
    part = ast.get_source_segment(text, node) or text
    if isinstance(node, ast.BinOp):
        if type(node.op) not in _OPERATORS:
            symbol = _FOREIGN_SYMBOLS.get(type(node.op), "?")
            hint = "A power is written **." if symbol == "^" else _GRAMMAR
            raise FormulaError(text, f"uses '{symbol}', which is no operator of a formula", hint)
        _check(node.left, text)
        _check(node.right, text)
    elif isinstance(node, ast.UnaryOp) and type(node.op) in _SIGNS:
        _check(node.operand, text)
    elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
        if not math.isfinite(_as_float(node.value)):
            raise FormulaError(text, f"holds '{part}', which is too large for a number")
    elif isinstance(node, ast.Call):
        _check_call(node, text)
    elif not isinstance(node, ast.Name):
        raise FormulaError(text, f"holds '{part}', which is no part of a formula", _GRAMMAR)


def _check_call(node: ast.Call, text: str) -> None:
    """Raises FormulaError unless `node` calls a known function with the right count of plain arguments."""
    if not isinstance(node.func, ast.Name):
        part = ast.get_source_segment(text, node) or text
        hint = "Write * between two factors." if isinstance(node.func, (ast.Constant, ast.BinOp)) else _GRAMMAR
        raise FormulaError(text, f"holds '{part}', which is no part of a formula", hint)
    name = node.func.id
    if name not in _FUNCTIONS:
        hint = hint_for(name, list(_FUNCTIONS)) or f"A product is written {name}*(…)."
        raise FormulaError(text, f"calls '{name}', which is none of {listed(list(_FUNCTIONS))}", hint)
    of_one = name in _OF_ONE_NUMBER
    if node.keywords or (len(node.args) != 1 if of_one else len(node.args) < 2):
        wanted, example = ("one number", "M") if of_one else ("two or more numbers", "M, 32")
        raise FormulaError(text, f"must give {name}() {wanted}", f"For example {name}({example}).")
    for argument in node.args:
        _check(argument, text)


def _value(node: ast.expr, sizes: Mapping[str, int]) -> float:
    """The value of a checked node. Floats throughout: an integer power could grow without end."""
    if isinstance(node, ast.BinOp):
        return _OPERATORS[type(node.op)](_value(node.left, sizes), _value(node.right, sizes))
    if isinstance(node, ast.UnaryOp):
        return _SIGNS[type(node.op)](_value(node.operand, sizes))
    if isinstance(node, ast.Call):
        return _FUNCTIONS[node.func.id](*(_value(argument, sizes) for argument in node.args)) * 1.0
    return float(sizes[node.id] if isinstance(node, ast.Name) else node.value)


def _as_float(number: int | float) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf
