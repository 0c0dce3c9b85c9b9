"""Which files the compilers read for a build, as they say themselves. Those of the toolchain, known by its versions,
are left out; everything else decides whether a kept build is still good.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import sysconfig
from collections.abc import Iterable
from pathlib import Path

import torch.utils.cpp_extension as cpp_extension

from harness.build.toolchain import cuda_home, find_host_compiler

_SYSTEM = ("/usr/include", "/usr/lib", "/usr/local/cuda")
# Where a compiler looks because somebody told it to, and what is not a compiler's though it lies beside one.
_TOLD_BY = ("CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH")
_EVERYBODYS = (Path("/"), Path("/usr"), Path("/usr/local"))
_SEARCH_LIST = re.compile(r"^#include <\.\.\.> search starts here:\n(.*?)^End of search list", re.MULTILINE | re.DOTALL)


def files_of_rule(rule: str) -> set[str]:
    """The files that a makefile's rule depends on, as compilers write it with -MD."""
    words = re.split(r"(?<!\\)\s+", rule.replace("\\\n", " ").partition(":")[2].strip())
    return {word.replace("\\ ", " ") for word in words if word}


def files_of_ninja(place: Path) -> set[str]:
    """The files that the build in `place` read, as ninja keeps them; empty when it cannot say."""
    command = ["ninja", "-C", str(place), "-t", "deps"]
    try:
        process = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return set()
    # A name may end in a blank, and hold what Python counts as the end of a line.
    return {str(place / line[4:]) for line in process.stdout.split("\n") if line.startswith("    ")}


def local(paths: Iterable[str], folder: Path, nvcc: str | None) -> set[str]:
    """Those of `paths` that belong neither to the toolchain nor to the build's own `folder`."""
    left_out = [str(folder.resolve()), sysconfig.get_paths()["include"], *_SYSTEM, *cpp_extension.include_paths()]
    homes = () if nvcc is None else (cuda_home(nvcc), Path(nvcc).resolve().parent.parent)
    left_out += [folder for home in homes for folder in _cudas_own(home)]
    named = (find_host_compiler(), shutil.which("g++"), *map(os.environ.get, ("CC", "NVCC_CCBIN")))
    left_out += [folder for compiler in dict.fromkeys(filter(None, named)) for folder in _compilers_own(compiler)]
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


@functools.lru_cache
def _compilers_own(compiler: str) -> tuple[str, ...]:
    """The folders of headers that came with a host compiler; not /usr/local/include, which is everybody's."""
    compiler = os.path.join(compiler, "g++") if os.path.isdir(compiler) else compiler  # as nvcc takes $NVCC_CCBIN
    told = {name: value for name, value in os.environ.items() if name not in _TOLD_BY} | {"LC_ALL": "C"}
    words, nothing = [compiler, "-E", "-v", "-x", "c++", os.devnull], subprocess.DEVNULL
    try:
        said = subprocess.run(words, env=told, stdin=nothing, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ()
    searched = _SEARCH_LIST.search(said.stderr)
    home = Path(shutil.which(compiler) or compiler).resolve().parent.parent
    folders = [Path(os.path.normpath(line.strip())) for line in (searched[1].splitlines() if searched else [])]
    return tuple(str(folder) for folder in folders if _came_with(home, folder))


def _came_with(home: Path, folder: Path) -> bool:
    """Whether a compiler in `home` brought `folder`: it is below that, or where only compilers have headers."""
    if home not in _EVERYBODYS and folder.resolve().is_relative_to(home):
        return True
    return "c++" in folder.parts or "/lib/gcc" in str(folder) or "/lib/clang" in str(folder)
