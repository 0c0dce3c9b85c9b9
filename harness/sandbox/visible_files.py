"""What a child sees of the machine's files: the system, the interpreter and its packages, and what it was given.

Of the root's folders those that make a system are seen, and every other one is covered, but for what is named in it.
What belongs to the user is covered wherever else it lies: the project, the shipped files, the cache. `view` says in
which order; `mounts` or bubblewrap carries it out.
"""

from __future__ import annotations

import functools
import glob
import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from harness.model.paths import IS_INSTALLED, REPOSITORY, SHIPPED, own, project
from harness.sandbox.mounts import COVER, EMPTY, SCRATCH, SHOW, WRITE

# /run is none: sockets lie there, a container engine's among them, secrets, and the folders of users.
SYSTEM = frozenset({
    "bin", "sbin", "lib", "lib32", "lib64", "libx32", "usr", "etc", "opt", "dev", "proc", "sys", "nix", "gnu", "snap",
    ".singularity.d",
})
# No project or home covers one of these, or a folder that one of them lies in.
_NEVER_COVERED = tuple(
    [f"/{name}" for name in SYSTEM]
    + [f"/usr/{name}" for name in ("bin", "sbin", "lib", "lib64", "libexec", "include", "share", "local")]
    + [f"/usr/local/{name}" for name in ("bin", "sbin", "lib", "lib64", "include", "cuda")]
)
# Where CUDA and NixOS look in what is covered.
_SYSTEMS_OWN = (
    "/run/nvidia*", "/var/run/nvidia*", "/run/opengl-driver*", "/run/current-system", "/run/booted-system", "/run/host",
    "/var/lib/nvidia*", f"{SCRATCH}/nvidia-mps",
)
# What a prefix consists of, where it is the project's own folder, say, and not seen as a whole.
_OF_A_PREFIX = ("bin", "sbin", "lib", "lib32", "lib64", "libexec", "include", "targets", "nvvm", "pyvenv.cfg")
_TOOLS = ("cc", "c++", "gcc", "g++", "clang", "clang++", "ld", "ninja", "nvcc", "ptxas", "cuobjdump", "ccache")
# Of the project in whatever folder it is: its results may be of yesterday, and its problems have references.
_ROOMS = ("candidates", "problems", "results", "configs")
_OURS = ("harness", "kernel_referee")
Step = tuple[str, str]


def view(covered: Iterable[str], shown: Iterable[str], writable: Iterable[str]) -> list[Step]:
    """The steps, each a kind and a path, that leave of the folders in `covered` nothing but what is `shown`, and
    `writable` to write to. Of two that hold a place the deeper counts; of the same place first writing, then covering.

    What is shown is so by each of its names where a link leads there. A step that would change nothing is left out. /tmp
    is an empty one that may be written to.
    """
    kinds = dict.fromkeys(_both_names(shown), SHOW)
    kinds |= {os.path.realpath(path): COVER for path in covered if os.path.isdir(path)}
    if os.path.isdir(SCRATCH):
        kinds[os.path.realpath(SCRATCH)] = EMPTY
    for path in writable:
        kinds[os.path.realpath(path)] = WRITE
    steps: dict[str, str] = {}
    for path in sorted(kinds, key=lambda each: each.split("/")):
        above = next((steps[each] for each in _above(path) if each in steps), SHOW)
        if kinds[path] == above or (kinds[path], above) == (SHOW, WRITE):
            continue
        steps[path] = kinds[path]
    return [(kind, path) for path, kind in steps.items()]


def view_for(repository: Path, shown: Sequence[str], writable: Sequence[str], hidden: Iterable[str] = ()) -> list[Step]:
    """What a child sees that imports from `repository`: the machine, what is `shown`, and else nothing `hidden`."""
    packages = [str(REPOSITORY / "harness"), *([] if repository == REPOSITORY else [str(repository)])]
    return view([*users_places(), *filter(_may_be_covered, map(os.path.realpath, hidden))],
                [*machine_places(), *packages, *shown], writable)


def users_places() -> list[str]:
    """The folders of which a child sees nothing but what it was given."""
    home, here = os.path.expanduser("~"), project()
    with os.scandir("/") as entries:
        named = [each.path for each in entries if each.name not in SYSTEM and each.is_dir()]
    named += [home, os.path.join(home, ".local"), tempfile.gettempdir(), SHIPPED]
    named += [] if IS_INSTALLED else [REPOSITORY]
    named += [place / room for place in (SHIPPED, own("")) for room in _ROOMS]
    named += [here] if here is not None else []
    return list(filter(_may_be_covered, map(os.path.realpath, named)))


def _may_be_covered(folder: str) -> bool:
    return not any(f"{each}/".startswith(f"{folder.rstrip('/')}/") for each in _NEVER_COVERED)


@functools.lru_cache(maxsize=1)
def machine_places() -> tuple[str, ...]:
    """Where this interpreter, its packages, their libraries, compilers and CUDA lie, by all names of these places."""
    prefixes = {sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix}
    packages = [*_path_of_a_child(), *_in_place()]
    links = [os.path.realpath(each.path) for folder in packages if os.path.isdir(folder)
             for each in os.scandir(folder) if each.is_symlink()]
    tools = [os.path.realpath(path) for name in _TOOLS if (path := shutil.which(name))]
    prefixes |= {os.path.dirname(os.path.dirname(tool)) for tool in tools}
    parts = [os.path.join(prefix, part) for prefix in sorted(prefixes) for part in _OF_A_PREFIX]
    system = [place for pattern in _SYSTEMS_OWN for place in glob.glob(pattern)]
    return tuple(_both_names([*sorted(prefixes), *parts, *packages, *links, *_loaders_folders(), *system]))


def _both_names(paths: Iterable[str]) -> list[str]:
    """Those of `paths` where there is something, as they are and with links followed."""
    there = [path for path in paths if path and os.path.exists(path)]
    return list(dict.fromkeys(name for path in there for name in (os.path.abspath(path), os.path.realpath(path))))


def _path_of_a_child() -> list[str]:
    """Python's path, without the folder that this process was started in or its program lies in: a child has its own."""
    this_processes = {os.path.realpath(os.curdir), os.path.dirname(os.path.realpath(sys.argv[0] or os.curdir))}
    return [each for each in sys.path if each and os.path.realpath(each) not in this_processes]


def _in_place() -> list[str]:
    """The packages that are installed where they are worked on, in folders that no path of Python's names."""
    mapped = (vars(module).get("MAPPING") for name, module in list(sys.modules.items()) if name.startswith("__editable__"))
    folders = [
        str(place) for each in mapped if isinstance(each, dict) for package, place in each.items()
        if package.partition(".")[0] not in _OURS
    ]
    for name in ("torch", "triton", "numpy"):
        spec = find_spec(name)
        folders += list(spec.submodule_search_locations or ()) if spec is not None else []
    return folders


def _loaders_folders() -> list[str]:
    """The folders of libraries that the dynamic loader's settings name."""
    folders = []
    for settings in ("/etc/ld.so.conf", *glob.glob("/etc/ld.so.conf.d/*.conf")):
        with suppress(OSError), open(settings, encoding="utf-8", errors="replace") as file:
            folders += [line for each in file if (line := each.strip()).startswith("/")]
    return folders


def _above(path: str) -> Iterable[str]:
    """The folders that `path` lies in, the nearest first."""
    while path != "/":
        path = os.path.dirname(path)
        yield path
