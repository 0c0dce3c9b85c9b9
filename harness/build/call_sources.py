"""What a call of `load` or `load_inline` is built from: its files and texts, and where its own headers lie.

`arguments` are those of the call by name.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.build import compile_only, flag_files, source_suffixes


def source_files(arguments: Mapping[str, Any]) -> list[Path]:
    """The files that a call of "load" names, one or several."""
    given = arguments.get("sources") or []
    return [Path(each).resolve() for each in ([given] if isinstance(given, (str, os.PathLike)) else given)]


def headers_beside(sources: Sequence[Path]) -> set[Path]:
    """The headers in the folders of `sources`."""
    suffixes = source_suffixes.HEADERS
    return {header for source in sources for suffix in suffixes for header in source.parent.glob(f"*{suffix}")}


def header_folders(kind: str, arguments: Mapping[str, Any]) -> list[Path]:
    """Where a call's own headers are looked for: beside its sources, and on the include paths that it gives."""
    beside = [path.parent for path in source_files(arguments)] if kind == "load" else []
    return [*beside, *flag_files.header_folders(arguments)]


def all_texts(kind: str, arguments: Mapping[str, Any]) -> list[str]:
    """The texts of both halves of a call, as `texts_of_halves` has them. Raises OSError."""
    return [each for half in texts_of_halves(kind, arguments) for each in half]


def texts_of_halves(kind: str, arguments: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """The C++ and the CUDA texts of a call; of "load" also the headers beside them. Raises OSError."""
    if kind == "load_inline":
        cpp = arguments.get("cpp_sources") or []
        implicit = [] if arguments.get("no_implicit_headers") else ["#include <torch/extension.h>"]
        return [*implicit, *([cpp] if isinstance(cpp, str) else cpp)], compile_only.cuda_files(kind, arguments)
    sources = source_files(arguments)
    headers = headers_beside(sources)
    cuda = {path for path in [*sources, *headers] if path.suffix in source_suffixes.CUDA}
    texts = {path: path.read_text(encoding="utf-8", errors="replace") for path in {*sources, *headers}}
    return [texts[path] for path in texts if path not in cuda], [texts[path] for path in cuda]
