"""Whether Python was asked for the address of a function, or for a way to one, since the candidate came: on a CPU an extension
that is handed such an address calls what nobody sees, and takes no name from elsewhere for it.
"""

from __future__ import annotations

import sys
from typing import Any

_ASKED = ("ctypes.dlopen", "ctypes.dlsym", "ctypes.dlsym/handle")
# Modules by which addresses are had that Python tells nobody of.
_LENDERS = ("_cffi_backend", "llvmlite", "numba", "scipy.linalg.cython_blas", "scipy.linalg.cython_lapack")
_MOST, _LONGEST = 200, 4000
MORE = "more than are listed"

asked_for: set[str] = set()
_text, _add, _startswith = str, asked_for.add, str.startswith


def heed() -> None:
    """Note what is asked for from here on in `asked_for`: names of functions, of modules, and paths of libraries."""
    sys.addaudithook(_heed)


def _heed(event: str, arguments: tuple[Any, ...]) -> None:
    named = arguments[-1] if event in _ASKED else arguments[0] if event == "import" else None
    if named is None:  # another event, or this process itself, which names nothing yet
        return
    name = _text(named)[:_LONGEST]
    if event in _ASKED or _startswith(name, _LENDERS):
        _add(name if len(asked_for) < _MOST else MORE)
