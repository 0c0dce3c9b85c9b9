"""What torch.compile's process has behind it when its turn comes: imports, and the keys of the compiler's own cache.

Whether a kernel is in that cache is asked with a hash of PyTorch's sources and one of Triton's library of 400 MB, which
a first call would wait for; each is computed once in a process.
"""

from __future__ import annotations

from contextlib import suppress

import torch._inductor.compile_fx  # noqa: F401  what a first call would import
from torch._inductor import codecache

with suppress(AttributeError):  # neither is for the public, and a later PyTorch may have others
    codecache.torch_key()
with suppress(Exception):  # without Triton it raises one of several
    from torch._inductor.runtime.triton_compat import triton_key

    triton_key()
