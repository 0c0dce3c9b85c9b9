"""What torch.compile's process has behind it when its turn comes: imports, and the keys of the compiler's own cache,
which are hashes of PyTorch's sources and of Triton's library of 400 MB, each computed once in a process. Where PyTorch
or the cache lies in a folder whose name has a blank, the C++ compiler would not find its files: that is mended here.
"""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import torch._inductor.compile_fx  # noqa: F401  what a first call would import
from torch._inductor import codecache, cpp_builder


def quoted(folders_of: Callable[[object], list[str]]) -> Callable[[object], list[str]]:
    """Inductor's own `folders_of` libraries, each quoted for the shell: it quotes the folders of headers alone."""
    return lambda options: [shlex.quote(folder) for folder in folders_of(options)]


def with_quoted_files(make: Callable[..., None]) -> Callable[..., None]:
    """Inductor's own `make` of a `CppBuilder`, whose command then has each file quoted for the shell."""
    signature = inspect.signature(make)

    def made(*positional: Any, **named: Any) -> None:
        make(*positional, **named)
        builder, sources = positional[0], signature.bind(*positional, **named).arguments["sources"]
        target = builder._target_file
        for path in [sources] if isinstance(sources, str) else sources:
            builder._sources_args = builder._sources_args.replace(path, shlex.quote(path))
        builder._output = builder._output.replace(target, shlex.quote(target))

    return made


with suppress(AttributeError):  # a later PyTorch may have others
    cpp_builder.BuildOptionsBase.get_libraries_dirs = quoted(cpp_builder.BuildOptionsBase.get_libraries_dirs)
    if {"_target_file", "_sources_args", "_output"} <= set(cpp_builder.CppBuilder.__init__.__code__.co_names):
        cpp_builder.CppBuilder.__init__ = with_quoted_files(cpp_builder.CppBuilder.__init__)

with suppress(AttributeError):  # neither is for the public, and a later PyTorch may have others
    codecache.torch_key()
with suppress(Exception):  # without Triton it raises one of several
    from torch._inductor.runtime.triton_compat import triton_key

    triton_key()
