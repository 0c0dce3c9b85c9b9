"""The name by which builder and player speak of one compiled extension: a hash of what its call was given.

Arguments that change where or how loudly something is built, and not what, are left out.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from typing import Any

_LEFT_OUT = frozenset({"build_directory", "verbose", "keep_intermediates", "use_pch", "kwargs"})
_LISTS = frozenset({"sources", "cpp_sources", "cuda_sources", "sycl_sources", "functions"})


def extension_key(kind: str, arguments: Mapping[str, Any]) -> str:
    """Return 16 hex digits for a call of `kind` ("load_inline" or "load") with `arguments` by name.

    Equal for calls that build the same: a string and a list of that one string, a None and a missing
    argument. For "load" the contents of the source files count, and their names without the folder.
    """
    given: dict[str, Any] = {}
    for name, value in arguments.items():
        if name in _LEFT_OUT or value is None:
            continue
        if name in _LISTS:
            if isinstance(value, (str, os.PathLike)):
                value = [value]
            elif not isinstance(value, Mapping):
                value = list(value)
            if not value:
                continue
        given[name] = value
    if kind == "load":
        given["sources"] = [_file(source) for source in given.get("sources", ())]
    text = json.dumps([kind, given], sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", errors="surrogatepass")).hexdigest()[:16]


def _file(path: Any) -> list[str]:
    try:
        with open(path, "rb") as file:
            content = hashlib.sha256(file.read()).hexdigest()
    except OSError:
        content = "missing"
    return [os.path.basename(os.fspath(path)), content]
