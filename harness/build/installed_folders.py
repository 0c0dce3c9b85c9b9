"""Where what is installed lies, which is nobody's own: the toolchain's versions speak for it.

A candidate whose folder lies in such a place, in an environment of its project say, is not installed for that.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path

_SYSTEM = ("/usr", "/lib", "/lib64")


def installed_places(own_folder: Path, also: Iterable[str] = ()) -> tuple[str, ...]:
    """How paths begin of what the system, this Python and its packages consist of, and of what lies below `also`;
    without places that `own_folder` lies in.
    """
    return places_apart({*_SYSTEM, sys.prefix, sys.base_prefix, *sysconfig.get_paths().values(), *also}, own_folder)


def places_apart(places: Iterable[str], own_folder: Path) -> tuple[str, ...]:
    """How the paths of files below `places` begin, links followed; without places that `own_folder` lies in."""
    own = below(os.path.realpath(own_folder))
    beginnings = (below(os.path.realpath(each)) for each in places)
    return tuple(each for each in beginnings if not own.startswith(each))


def below(folder: str) -> str:
    """How the paths of files below `folder` begin."""
    return folder.rstrip(os.sep) + os.sep
