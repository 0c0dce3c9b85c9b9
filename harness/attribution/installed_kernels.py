"""Which kernels installed packages bring: as text, to be compiled when they are called (PyTorch's own in Triton, those of
libraries in Triton, Numba, CuTe DSL, TileLang or CUDA in strings), and compiled already, in PyTorch's CUDA libraries.

Compiled in a candidate's process, such a kernel lies in its cache as the candidate's own do, and a function of its name in
the candidate's source costs a line. So a name that a package has as well says nothing of which of the two ran, and one that
PyTorch's libraries carry says no more.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import importlib.util
import mmap
import os
import re
import sys
import sysconfig
from collections.abc import Collection, Iterator
from pathlib import Path

from harness.attribution.demangling import demangled_names
from harness.attribution.kernel_names import bare_name, function_of_stem, is_mangled
from harness.attribution.source_names import kernels_in, stems_in
from harness.model.files.python_source import SourceFault, parsed

# Of CuTe DSL's and TileLang's kernels not the names stand in a text, but those of the functions that they are made of.
_STEM_MARKS = (b"cutlass", b"prim_func")
_MARKS = (b"jit", b"__global__", *_STEM_MARKS)
_LANGUAGES = ("triton", "cuda", *(mark.decode() for mark in _STEM_MARKS))
# Tests have kernels of everybody's names, `add_kernel` and `kernel`, that add and copy; a language has functions for kernels.
_NOT_OFFERED = frozenset({"__pycache__", "language", "testing", "tests", "test", "tutorials", "examples"})
_LONGEST_SYMBOL, _MOST_ALIKE = 64 << 10, 40_000
_SYMBOL = re.compile(rb"_Z[\w.$]+")
_MOST_KEPT = 10_000
_carried: set[str] = set()  # names of kernels that PyTorch's libraries are known to carry


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
    for folder, inside, names in os.walk(top):
        inside[:] = [name for name in inside if name not in _NOT_OFFERED]
        for path in (Path(folder, name) for name in names if name.endswith(".py")):
            with contextlib.suppress(OSError):
                content = path.read_bytes()
                if any(mark in content for mark in _MARKS):
                    files.append((path, content))
    return tuple(files)


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
    """The functions of a Python text that are given to a `jit` (not PyTorch's own), and the stems of other kernels."""
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


# PyTorch's CUDA libraries register their kernels by name, so that the names stand in them as plain strings. They are
# compared as C++ names: one name can be mangled in more than one way, and that of an anonymous namespace differs from file
# to file.


def shipped_by_pytorch(names: Collection[str]) -> set[str]:
    """Those of `names`, as recorded, that PyTorch has a kernel of, or too many names alike to look at all of them. To look for
    a new one takes a second. What was found is kept, as PyTorch's own come again in row after row; that a name was not
    found may be a moment's doing, where a tool was slow.
    """
    known = _carried.intersection(names)
    new = set(names) - known
    found = carried_by(_pytorch_libraries(), new) if new else set()
    if len(_carried) > _MOST_KEPT:
        _carried.clear()
    _carried.update(found)
    return known | found


def carried_by(folder: Path, names: Collection[str]) -> set[str]:
    """The same of the libraries in `folder`."""
    written = {name: _as_written(name) for name in names}
    alike: dict[str, set[str]] = {name: set() for name in names}
    for library in sorted(folder.glob("libtorch_cuda*")):
        with contextlib.suppress(OSError, ValueError), _mapped(library) as content:  # ValueError: it is empty
            for name, part in written.items():
                for symbol in _symbols_with(part, content):
                    if len(alike[name]) > _MOST_ALIKE:
                        break
                    alike[name].add(symbol)
    carried_names = {name for name, symbols in alike.items() if name in symbols or len(symbols) > _MOST_ALIKE}
    others = alike.keys() - carried_names
    return carried_names | {name for name in others if name in demangled_names(sorted(alike[name], key=len)).values()}


def _as_written(name: str) -> bytes:
    """How the function's own name stands in its symbol, whatever stands around it."""
    bare = bare_name(name)
    return name.encode() if is_mangled(name) else f"{len(bare)}{bare}".encode()


def _symbols_with(part: bytes, content: mmap.mmap) -> Iterator[str]:
    """The symbols in `content` of functions in a namespace whose own name is `part`: I, E or nothing comes after."""
    at = content.find(part)
    while at >= 0:
        after = at + len(part)
        if content[after : after + 1] in (b"I", b"E", b"\0"):
            begin = content.rfind(b"\0", max(0, at - _LONGEST_SYMBOL), at) + 1
            end = content.find(b"\0", after, after + _LONGEST_SYMBOL)
            if end >= 0 and _SYMBOL.fullmatch(content, begin, end):
                yield content[begin:end].decode()
        at = content.find(part, after)


def _pytorch_libraries() -> Path:
    spec = importlib.util.find_spec("torch")
    return Path(spec.origin).parent / "lib" if spec is not None and spec.origin is not None else Path(os.devnull)


@contextlib.contextmanager
def _mapped(path: Path) -> Iterator[mmap.mmap]:
    """The file as memory, which is read once from the disk for all processes and copied nowhere."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        yield content
