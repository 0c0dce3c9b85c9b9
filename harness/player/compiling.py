"""What torch.compile's process has behind it when its turn comes: imports, and the keys of the compiler's own cache.

Whether a kernel is in that cache is asked with a hash of PyTorch's sources and one of Triton's library of 400 MB, which
a first call would wait for; each is computed once in a process. Where PyTorch lies in a folder whose name has a blank,
its compiler of C++ would not find its libraries: that is mended here.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from contextlib import suppress

import torch._inductor.compile_fx  # noqa: F401  what a first call would import
from torch._inductor import codecache, cpp_builder


def quoted(folders_of: Callable[[object], list[str]]) -> Callable[[object], list[str]]:
    """Inductor's own `folders_of` libraries, each quoted for the shell: it quotes the folders of headers alone."""
    return lambda options: [shlex.quote(folder) for folder in folders_of(options)]


with suppress(AttributeError):  # a later PyTorch may have another
    cpp_builder.BuildOptionsBase.get_libraries_dirs = quoted(cpp_builder.BuildOptionsBase.get_libraries_dirs)

with suppress(AttributeError):  # neither is for the public, and a later PyTorch may have others
    codecache.torch_key()
with suppress(Exception):  # without Triton it raises one of several
    from torch._inductor.runtime.triton_compat import triton_key

    triton_key()
