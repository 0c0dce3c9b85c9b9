"""Whether Python was asked for the address of a function, or for a way to one, since the candidate came: on a CPU an
extension that is handed one calls what nobody sees. So does one that takes a name which anybody may take from a library
of the candidate's own that its build did not make; that is seen by its code, which the system lists.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from harness.protocol.installed import is_installed

_ASKED = ("ctypes.dlopen", "ctypes.dlsym", "ctypes.dlsym/handle")
# Modules by which addresses are had that Python tells nobody of.
_LENDERS = ("_cffi_backend", "llvmlite", "numba", "scipy.linalg.cython_blas", "scipy.linalg.cython_lapack")
# Whose hooks are its own, so that nobody hears here what it asks for.
_INTERPRETER, _ANOTHER = "cpython.PyInterpreterState_New", "another interpreter's functions"
_MAPS, _NOT_READ = "/proc/self/maps", "code that is not listed"
_MOST, _LONGEST = 200, 4000
MORE = "more than are listed"

asked_for: set[str] = set()
_text, _add, _startswith, _open, _realpath = str, asked_for.add, str.startswith, open, os.path.realpath
_here_before: set[str] = set()


def heed() -> None:
    """Note what is asked for from here on in `asked_for`: names of functions, of modules, and paths of libraries."""
    _here_before.update(_files_of_code())
    sys.addaudithook(_heed)


def code_from_elsewhere() -> set[str]:
    """The files that the process has code of, which came since `heed` and lie where things are not just installed."""
    return {path[:_LONGEST] for path in _files_of_code() - _here_before if not is_installed(path)}


def memory_of(path: str) -> list[range]:
    """The addresses at which code of the file at `path` lies; none where that cannot be said."""
    resolved = _realpath(path)
    bounds = (piece[0].split("-") for piece in _pieces() if piece[5] == resolved)
    return [range(int(first, 16), int(end, 16)) for first, end in bounds]


def _files_of_code() -> set[str]:
    return {piece[5] for piece in _pieces()} or {_NOT_READ}


def _pieces() -> list[list[str]]:
    """The executable pieces of memory that come from a file, as the system lists them; its own have names in brackets."""
    try:
        with _open(_MAPS, encoding="utf-8", errors="replace") as lines:
            pieces = [line.rstrip("\n").split(maxsplit=5) for line in lines]
    except OSError:
        return []
    return [piece for piece in pieces if len(piece) == 6 and "x" in piece[1] and not _startswith(piece[5], "[")]


def _heed(event: str, arguments: tuple[Any, ...]) -> None:
    if event == _INTERPRETER:
        _add(_ANOTHER)
    named = arguments[-1] if event in _ASKED else arguments[0] if event == "import" else None
    if named is None:  # another event, or this process itself, which names nothing yet
        return
    name = _text(named)[:_LONGEST]
    if event in _ASKED or _startswith(name, _LENDERS):
        _add(name if len(asked_for) < _MOST else MORE)
