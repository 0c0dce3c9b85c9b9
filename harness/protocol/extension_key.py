"""The name by which builder and worker speak of one compiled extension: a hash of what its call was given, without what
changes where or how loudly something is built, and not what, and without the name, which many make unique at run time.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

LEFT_OUT = frozenset({"build_directory", "verbose", "keep_intermediates", "use_pch", "kwargs"})
_TEXTS = ("cpp_sources", "cuda_sources", "sycl_sources")
_LISTS = frozenset({"sources", "cpp_sources", "cuda_sources", "sycl_sources", "functions"})
_OF_COMPILERS = ("extra_cflags", "extra_cuda_cflags", "extra_include_paths")
_OWN, _NAME = "<the candidate's folder>", "<the extension>"


def extension_key(kind: str, arguments: Mapping[str, Any], folder: str | os.PathLike[str] | None = None) -> str:
    """Return 16 hex digits for a call of `kind` ("load_inline" or "load") with `arguments` by name.

    Equal for calls that build the same: a string and a list of that one string, a None and a missing argument, wherever
    the candidate's `folder` lies in which compilers look for files, and whatever the extension is called, as long as
    sources name it only where they define their module or operators. For "load" sources' contents and suffixes count.
    """
    return hashlib.sha256(_text(kind, arguments, folder).encode("utf-8", errors="surrogatepass")).hexdigest()[:16]


def names_folder(kind: str, arguments: Mapping[str, Any], folder: str | os.PathLike[str]) -> bool:
    """Whether the call names the candidate's `folder`, or one that it lies in: what is built may differ elsewhere."""
    text = _text(kind, arguments, folder)
    above = {str(each) for name in _spellings(folder) for each in (Path(name), *Path(name).parents)}
    named = (re.escape(json.dumps(each)[1:-1]) for each in above if len(Path(each).parts) > 2)
    return re.search(rf"(?:{'|'.join(named)})(?![\w.-])", text) is not None


def _text(kind: str, arguments: Mapping[str, Any], folder: str | os.PathLike[str] | None) -> str:
    given: dict[str, Any] = {}
    for name, value in arguments.items():
        if name in LEFT_OUT or name == "name" or value is None:
            continue
        if name in _LISTS:
            if isinstance(value, (str, os.PathLike)):
                value = [value]
            elif not isinstance(value, Mapping):
                value = list(value)
            if not value:
                continue
        given[name] = value
    called = _module_name(arguments.get("name"))
    if kind == "load":
        given["sources"] = [_file(source, called) for source in given.get("sources", ())]
    for name in given.keys() & set(_TEXTS):
        given[name] = [_without_name(each, called) for each in given[name]]
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


def _module_name(name: Any) -> re.Pattern[str] | None:
    """What defines a module, or operators, of the extension's own `name`."""
    if not isinstance(name, str) or not name:
        return None
    return re.compile(rf"\b((?:PYBIND11_MODULE|NB_MODULE|(?:STABLE_)?TORCH_LIBRARY\w*)\s*\(\s*|PyInit_){re.escape(name)}\b")


def _without_name(text: Any, called: re.Pattern[str] | None) -> Any:
    return called.sub(rf"\g<1>{_NAME}", text) if called is not None and isinstance(text, str) else text


def _file(path: Any, called: re.Pattern[str] | None) -> list[str]:
    try:
        with open(path, "rb") as file:
            text = _without_name(file.read().decode("utf-8", "surrogateescape"), called)
        content = hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
    except OSError:
        content = "missing"
    return [os.path.splitext(os.fspath(path))[1], content]
