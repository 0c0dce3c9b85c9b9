"""Which kernels installed packages bring as text, to be compiled when they are called: PyTorch's own in Triton, those of
libraries in Triton, Numba, CuTe DSL, TileLang or CUDA in strings.

Compiled in a candidate's process, such a kernel lies in its cache as the candidate's own do, and a function of its name in
the candidate's source costs a line. So a name that a package has as well says nothing of which of the two ran.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import os
import sys
import sysconfig
from collections.abc import Collection, Iterator
from pathlib import Path

from harness.attribution.kernel_names import function_of_stem
from harness.attribution.source_names import kernels_in, stems_in
from harness.model.files.python_source import SourceFault, parsed

# Of CuTe DSL's and TileLang's kernels not the names stand in a text, but those of the functions that they are made of.
_STEM_MARKS = (b"cutlass", b"prim_func")
_MARKS = (b"jit", b"__global__", *_STEM_MARKS)
_LANGUAGES = ("triton", "cuda", *(mark.decode() for mark in _STEM_MARKS))
# Tests have kernels of everybody's names, `add_kernel` and `kernel`, that add and copy; a language has functions for kernels.
_NOT_OFFERED = frozenset({"__pycache__", "language", "testing", "tests", "test", "tutorials", "examples"})


def brought_by_packages(names: Collection[str]) -> dict[str, str]:
    """Those of `names`, bare ones and stems, of which a kernel is installed, each with the file that has it."""
    file_by_name: dict[str, str] = {}
    plain, functions = ({each.encode() for each in every} for every in (names, map(function_of_stem, names)))
    for top in sorted(installed_folders()):
        for path, content in _with_kernels(top):
            wanted = functions if any(mark in content for mark in _STEM_MARKS) else plain
            if any(name in content for name in wanted):  # to parse them all takes 2 s
                for name in kernels_of(path).intersection(names):
                    file_by_name.setdefault(name, os.path.relpath(path, top))
    return file_by_name


def installed_folders() -> set[str]:
    """Where packages lie, links followed."""
    paths = sysconfig.get_paths()
    named = [paths["purelib"], paths["platlib"], *(each for each in sys.path if each.endswith(("-packages", "-packages/")))]
    return {os.path.realpath(each) for each in named if os.path.isdir(each)}


@functools.lru_cache(maxsize=4)
def _with_kernels(top: str) -> tuple[tuple[Path, bytes], ...]:
    """The Python files below `top` that may bring kernels, with their content: some hundreds of ten thousand."""
    files = []
    for path in _sources(top):
        with contextlib.suppress(OSError):
            content = path.read_bytes()
            if any(mark in content for mark in _MARKS):
                files.append((path, content))
    return tuple(files)


def _sources(top: str) -> Iterator[Path]:
    for folder, inside, names in os.walk(top):
        inside[:] = [name for name in inside if name not in _NOT_OFFERED]
        yield from (Path(folder, name) for name in names if name.endswith(".py"))


def kernels_of(path: Path) -> set[str]:
    """The functions that a Python file has compiled for a GPU, and the CUDA kernels in its text."""
    try:
        content = path.read_bytes()
    except OSError:
        return set()
    if not any(mark in content for mark in _MARKS):
        return set()
    text = content.decode(errors="replace")
    kernels = kernels_in(text) if "__global__" in text else set()
    return kernels | (_compiled(text) if any(word in text for word in _LANGUAGES) else set())


def _compiled(text: str) -> set[str]:
    """The functions of a Python text that are given to a `jit`, as decorator or by name (PyTorch's own makes no kernels), and
    the stems of those that are a kernel in another language.
    """
    try:
        tree = parsed(text)
    except SourceFault:
        return set()
    functions = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and any(map(_is_jit, node.decorator_list)):
            functions.add(node.name)
        elif isinstance(node, ast.Call) and _is_jit(node.func):
            functions |= {each.id for each in node.args if isinstance(each, ast.Name)}
    return functions | stems_in(tree)


def _is_jit(node: ast.expr) -> bool:
    """Whether it is a name that ends in `jit`, called perhaps, and not `torch.jit`."""
    node = node.func if isinstance(node, ast.Call) else node
    if isinstance(node, ast.Name):
        return node.id == "jit"
    return isinstance(node, ast.Attribute) and node.attr == "jit"
