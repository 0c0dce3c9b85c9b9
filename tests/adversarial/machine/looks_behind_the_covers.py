"""Looks for a way behind what covers its neighbours: open folders, other processes' roots, mounts taken off or moved.

Mechanism: what is mounted over a folder hides it from whoever comes by its path, and from nobody who holds it open, has
  it as its root, or may take mounts off. No process behind the wall has one of these, and none has a power.
Expected: ok/
Fools: nothing
Device: any
Kind: library or unknown
"""

import ctypes
import os
from pathlib import Path

import torch
import torch.nn as nn

NAME = Path("candidates", "tril_matmul", "openmp_cpu.py")
NEW_USER, NEW_MOUNTS, DETACH, BIND_ALL, PRIVATE = 0x10000000, 0x00020000, 2, 4096 | 16384, (1 << 18) | 16384
libc = ctypes.CDLL(None, use_errno=True)
checkout = Path.cwd()  # the child begins in the folder that the harness lies in


def is_seen(root):
    return os.path.exists(f"{root}{checkout}/{NAME}")


def through_proc():
    """Whether a root, a folder or a descriptor of any process leads there."""
    for process in filter(str.isdigit, os.listdir("/proc")):
        for link in ("root", "cwd", *(f"fd/{number}" for number in range(64))):
            place = f"/proc/{process}/{link}"
            if is_seen(place) or any(os.path.exists(f"{place}/{'../' * up}{NAME}") for up in range(6)):
                return True
    return False


def as_root_of_its_own():
    """Whether it is there once covers are taken off, or all is bound anew, in namespaces that a child makes for itself."""
    told, tells = os.pipe()
    pid = os.fork()
    if pid == 0:
        libc.unshare(NEW_USER | NEW_MOUNTS)
        libc.mount(b"none", b"/", None, PRIVATE, None)
        libc.umount2(os.fsencode(checkout), DETACH)
        for place in (checkout, *checkout.parents):
            libc.umount2(os.fsencode(place), DETACH)
        libc.mount(b"/", os.fsencode(os.environ["TMPDIR"]), None, BIND_ALL, None)
        os.write(tells, b"y" if is_seen("") or is_seen(os.environ["TMPDIR"]) else b"n")
        os._exit(0)
    os.waitpid(pid, 0)
    return os.read(told, 1) == b"y"


if is_seen("") or through_proc() or as_root_of_its_own():
    raise RuntimeError(f"{NAME} could be seen")


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.tril(torch.matmul(A, B))
