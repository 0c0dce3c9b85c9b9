"""The name by which builder and player speak of one compiled extension: a hash of what its call was given.

Arguments that change where or how loudly something is built, and not what, are left out; and so is where the candidate
lies, as long as compilers are only told to look for files there.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_LEFT_OUT = frozenset({"build_directory", "verbose", "keep_intermediates", "use_pch", "kwargs"})
_LISTS = frozenset({"sources", "cpp_sources", "cuda_sources", "sycl_sources", "functions"})
_OF_COMPILERS = ("extra_cflags", "extra_cuda_cflags", "extra_include_paths")
_OWN = "<the candidate's folder>"


def extension_key(kind: str, arguments: Mapping[str, Any], folder: str | os.PathLike[str] | None = None) -> str:
    """Return 16 hex digits for a call of `kind` ("load_inline" or "load") with `arguments` by name.

    Equal for calls that build the same: a string and a list of that one string, a None and a missing argument, and
    wherever the candidate's `folder` lies in which compilers look for files. For "load" the contents of the source files
    count, and their names without the folder.
    """
    return hashlib.sha256(_text(kind, arguments, folder).encode("utf-8", errors="surrogatepass")).hexdigest()[:16]


def names_folder(kind: str, arguments: Mapping[str, Any], folder: str | os.PathLike[str]) -> bool:
    """Whether what is built may have the place of the candidate's `folder` in it, so that it is another one elsewhere, or
    the call has another key there: by its own name, or by that of a folder that it lies in.
    """
    text = _text(kind, arguments, folder)
    above = {str(each) for name in _spellings(folder) for each in (Path(name), *Path(name).parents)}
    named = (re.escape(json.dumps(each)[1:-1]) for each in above if len(Path(each).parts) > 2)
    return re.search(rf"(?:{'|'.join(named)})(?![\w.-])", text) is not None


def _text(kind: str, arguments: Mapping[str, Any], folder: str | os.PathLike[str] | None) -> str:
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
    if folder is not None:
        for name in given.keys() & _OF_COMPILERS:
            given[name] = _without_place(given[name], folder)
    return json.dumps([kind, given], sort_keys=True, default=str)


def _without_place(paths: Any, folder: str | os.PathLike[str]) -> Any:
    """`paths`, or flags, in which `folder` is replaced where it begins a path in which a compiler looks for files."""
    if not isinstance(paths, (list, tuple)):
        return paths
    own = "|".join(map(re.escape, _spellings(folder)))
    begins = re.compile(f"^(-I|-isystem|-iquote|--include-path=)?(?:{own})(?=/|$)")
    texts = (os.fspath(each) if isinstance(each, os.PathLike) else each for each in paths)
    return [begins.sub(rf"\g<1>{_OWN}", each) if isinstance(each, str) else each for each in texts]


def _spellings(folder: str | os.PathLike[str]) -> list[str]:
    return sorted({os.path.abspath(folder), os.path.realpath(folder)})


def _file(path: Any) -> list[str]:
    try:
        with open(path, "rb") as file:
            content = hashlib.sha256(file.read()).hexdigest()
    except OSError:
        content = "missing"
    return [os.path.basename(os.fspath(path)), content]
