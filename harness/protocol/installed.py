"""Which places have only what was installed: no candidate can put a library there."""

from __future__ import annotations

import os
import sys

_ROOTS = tuple(f"{root}/" for root in ("/usr", "/lib", "/lib64", "/opt", sys.prefix, sys.base_prefix))
# Of packages that a user installed for himself, as Python names them while no candidate is there.
_PACKAGES = tuple(f"{os.path.realpath(each)}/" for each in sys.path if each.rstrip("/").endswith("-packages"))
_normal = os.path.normpath


def is_installed(place: str) -> bool:
    """Whether no candidate puts a library at the path `place`."""
    return _normal(place).startswith(_ROOTS + _PACKAGES)
