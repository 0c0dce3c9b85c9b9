"""Names of kernels that a candidate's source text defines; read by the judge and never run.

What is compiled at run time (NVRTC, CuPy, Triton, Numba, CuTe DSL, TileLang) leaves no build to look into. The text of
the candidate is the judge's own to read: a `__global__` function defined in a string of it, or a Python function.
Comments and docstrings define nothing.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.attribution.kernel_names import cute_stem, tilelang_stem
from harness.model.files.carried_code import C_COMMENT
from harness.model.files.imported_sources import imported_sources
from harness.model.files.python_source import SourceFault, parsed

_C_TOKEN = re.compile(r"[A-Za-z_]\w*|\S")
# Attributes that may stand between __global__ and the name, with an argument list of their own.
_ATTRIBUTES = frozenset({
    "__launch_bounds__", "__cluster_dims__", "__maxnreg__", "__block_size__", "__attribute__", "alignas", "__declspec",
    "requires",
})
_PYTHON_DEFINITION = re.compile(r"^[ \t]*def[ \t]+(\w+)[ \t]*\(", re.MULTILINE)
# The decorators of CuTe DSL's kernels and of TileLang's.
_STEMS = {"kernel": cute_stem, "prim_func": tilelang_stem}


@dataclass(frozen=True)
class SourceNames:
    """`kernels` are defined as `__global__`, `functions` are Python's, `stems` what DSLs call their kernels."""

    kernels: frozenset[str] = frozenset()
    functions: frozenset[str] = frozenset()
    stems: frozenset[str] = frozenset()


def source_names(path: Path) -> SourceNames:
    """What the candidate at `path`, and the modules beside it that it imports, define. Raises nothing."""
    kernels, functions, stems = set(), set(), set()
    for _, text in imported_sources(path):
        try:
            tree = parsed(text)
        except SourceFault:
            continue
        functions |= {node.name for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))}
        stems |= stems_in(tree)
        for string in _strings(tree):
            kernels |= kernels_in(string)
            functions |= set(_PYTHON_DEFINITION.findall(string))
    return SourceNames(frozenset(kernels), frozenset(functions), frozenset(stems))


def stems_in(tree: ast.Module) -> set[str]:
    """What CuTe DSL and TileLang call the kernels that they compile from functions of `tree`, told by their decorators."""
    stems = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            decorators = set(map(_last_name, node.decorator_list))
            stems |= {stem(node.name) for decorator, stem in _STEMS.items() if decorator in decorators}
    return stems


def _last_name(node: ast.expr) -> str:
    """`kernel` of `@cute.kernel`, `@kernel` and `@cute.kernel(…)` alike; "" for what is no name."""
    node = node.func if isinstance(node, ast.Call) else node
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def source_text(path: Path) -> str:
    """The text that `source_names` reads, for a look at what it uses; "\\0" when it cannot be read."""
    return "\n".join(text for _, text in imported_sources(path))


def kernels_in(cuda: str) -> set[str]:
    """The names of the `__global__` functions that CUDA source `cuda` defines; a declaration defines nothing."""
    tokens = _C_TOKEN.findall(C_COMMENT.sub(" ", cuda))
    closing = _closing_of(tokens)
    return {
        name for position, token in enumerate(tokens) if token == "__global__"
        if (name := _defined_after(tokens, position + 1, closing)) is not None
    }


def _defined_after(tokens: list[str], position: int, closing: Mapping[int, int]) -> str | None:
    """The name of the function whose definition goes on at `position`; None for a declaration or no function."""
    name = None
    while position < len(tokens):
        token = tokens[position]
        if token == "(":
            after = closing.get(position, len(tokens) - 1) + 1
            if name in _ATTRIBUTES:
                name, position = None, after
                continue
            return name if after < len(tokens) and tokens[after] == "{" else None
        if token in "{};" or token == "__global__":
            return None
        name = token if token.isidentifier() else None
        position += 1
    return None


def _closing_of(tokens: list[str]) -> dict[int, int]:
    """Where each parenthesis that is closed is closed."""
    open_at, closed_at = [], {}
    for position, token in enumerate(tokens):
        if token == "(":
            open_at.append(position)
        elif token == ")" and open_at:
            closed_at[open_at.pop()] = position
    return closed_at


def _strings(tree: ast.Module) -> Iterator[str]:
    """Every string of the file that is a value; one that stands alone as a statement is a comment."""
    idle = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            # A value put in is no letter of a name: what is called tile_{size} is not called tile_.
            yield "".join(part.value if isinstance(part, ast.Constant) else "\0" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in idle:
            yield node.value
