"""The environment an untrusted child sees: a short list of what compilers, CUDA, Triton and Inductor need.

Everything else is dropped, so that no token, key or preloaded library of the user's crosses the sandbox. The
places inside the child's private folder are added by `private_places`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from harness.protocol.context_opening import DRIVER_SETTINGS

KEPT = frozenset({
    "PATH", "LANG", "LANGUAGE", "TZ", "USER", "LOGNAME", "PYTHONPATH", "LD_LIBRARY_PATH", "LIBRARY_PATH", "CPATH",
    "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "CC", "CXX", "CUDA_HOME", "CUDA_PATH", "CUDACXX", "CUDNN_HOME",
    "NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS", "NVCC_CCBIN", "TORCH_CUDA_ARCH_LIST", "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER", "NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES", "NCCL_NVLS_ENABLE", "MAX_JOBS",
    "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "GOMP_CPU_AFFINITY", "OMP_PROC_BIND",
    "TRITON_PTXAS_PATH", "TRITON_LIBCUDA_PATH",
    # What Windows cannot start a process or find a compiler without.
    "SYSTEMROOT", "COMSPEC", "PATHEXT", "INCLUDE", "LIB", "PROGRAMDATA",
})
_KEPT_PREFIXES = ("LC_",)
_ABSOLUTE_PATH = re.compile(r"""/[^\s:;,'"=]+""")

_SET = {
    **DRIVER_SETTINGS, "PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1",
    # A pool of compiler processes would outlive its call and count against the limits.
    "TORCHINDUCTOR_COMPILE_THREADS": "1",
    # It would lie in the process's own TMPDIR and go with it: 150 MB and 5 s of one core, for what it takes off each
    # kernel after the first.
    "TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS": "0",
}


def scrubbed(environment: Mapping[str, str], extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return what of `environment` may cross the sandbox, with the fixed settings and then `extra` on top."""
    kept = [name for name in environment if name.upper() in KEPT or name.upper().startswith(_KEPT_PREFIXES)]
    return {**{name: environment[name] for name in kept}, **_SET, **(extra or {})}


def named_in(environment: Mapping[str, str]) -> list[str]:
    """The absolute paths that variables name, in lists of them (there also with blanks) and in flags of compilers."""
    items = [item for value in environment.values() for item in value.split(os.pathsep) if item.startswith("/")]
    return [*items, *(path for value in environment.values() for path in _ABSOLUTE_PATH.findall(value))]


def private_places(private: Path) -> dict[str, str]:
    """Return the variables that send every tool's files into `private`: one subfolder each, made by `spawn`."""
    folders = {
        "HOME": "home", "TMPDIR": "tmp", "TEMP": "tmp", "TMP": "tmp", "XDG_CACHE_HOME": "cache",
        "TORCH_EXTENSIONS_DIR": "extensions", "TRITON_CACHE_DIR": "triton", "TORCHINDUCTOR_CACHE_DIR": "inductor",
        "CUDA_CACHE_PATH": "cuda",
    }
    return {name: str(private / folder) for name, folder in folders.items()}
