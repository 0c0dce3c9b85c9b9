"""Which files the compilers read for a build, as they say themselves; those of the toolchain are left out.

A toolchain is known by its versions; everything else that was read decides whether a kept build is still good.
"""

from __future__ import annotations

import re
import subprocess
import sysconfig
from collections.abc import Iterable
from pathlib import Path

import torch.utils.cpp_extension as cpp_extension

from harness.build.toolchain import cuda_home

_SYSTEM = ("/usr/include", "/usr/lib", "/usr/local/cuda")


def files_of_rule(rule: str) -> set[str]:
    """The files that a makefile's rule depends on, as compilers write it with -MD."""
    words = re.split(r"(?<!\\)\s+", rule.replace("\\\n", " ").partition(":")[2].strip())
    return {word.replace("\\ ", " ") for word in words if word}


def files_of_ninja(place: Path) -> set[str]:
    """The files that the build in `place` read, as ninja keeps them; empty when it cannot say."""
    try:
        process = subprocess.run(
            ["ninja", "-C", str(place), "-t", "deps"], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return set()
    return {str(place / line.strip()) for line in process.stdout.splitlines() if line.startswith("    ")}


def local(paths: Iterable[str], folder: Path, nvcc: str | None) -> set[str]:
    """Those of `paths` that belong neither to the toolchain nor to the build's own `folder`."""
    left_out = [str(folder.resolve()), sysconfig.get_paths()["include"], *_SYSTEM, *cpp_extension.include_paths()]
    if nvcc is not None:
        left_out += [folder for home in (cuda_home(nvcc), Path(nvcc).resolve().parent.parent) for folder in _cudas_own(home)]
    roots = tuple(f"{Path(each).resolve()}/" for each in left_out)
    real_paths = {str(Path(path).resolve()) for path in paths}
    return {path for path in real_paths if not path.startswith(roots)}


def _cudas_own(home: str | Path) -> list[str]:
    """The folders below `home` that hold a toolkit; none where nvcc lies elsewhere than its headers: a script in
    /usr/local/bin makes nobody else's headers in /usr/local its own.
    """
    # Conda's toolkits have their headers below targets/ alone.
    if not any([*Path(home).glob(f"{place}/cuda_runtime.h")] for place in ("include", "targets/*/include")):
        return []
    return [str(Path(home, name)) for name in ("include", "targets", "nvvm")]
