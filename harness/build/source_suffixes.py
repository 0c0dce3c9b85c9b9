"""How the names of C++ and CUDA sources end."""

from __future__ import annotations

# What a compiler is called for, and what it reads besides.
UNITS = frozenset({".cu", ".c", ".cc", ".cpp", ".cxx"})
HEADERS = frozenset({".cuh", ".h", ".hh", ".hpp", ".inl"})
SOURCES = UNITS | HEADERS
# Those of them that are for nvcc; a tuple, as `str.endswith` takes it.
CUDA = (".cu", ".cuh")
