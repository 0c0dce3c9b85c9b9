"""The process that builders and workers are forked from, started early: PyTorch takes seconds to import."""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from harness.protocol.clocks.idle_threads import SPIN, shorten_spinning
from harness.sandbox.environment import scrubbed
from harness.sandbox.fork_client import begin, server_for
from harness.sandbox.sandbox_choice import strongest_sandbox

# Not more of PyTorch than this: some of its modules look for a GPU when they are imported, and CUDA then works in no
# fork. setuptools is what takes the longest of torch.utils.cpp_extension, which every builder and worker imports.
PRELOADED = ("torch", *(name for name in ("setuptools",) if find_spec(name)))


def prestart() -> None:
    """Set the variables of OpenMP and OpenBLAS that are read at import, and start the process in the background.

    Call it before importing torch, and in no process that is to fork itself.
    """
    shorten_spinning(os.environ)
    environment = scrubbed(os.environ, {name: os.environ[name] for name in SPIN if name in os.environ})

    def start() -> None:
        begin(environment, PRELOADED)  # it imports while the sandbox is tried
        server_for(strongest_sandbox(), environment, PRELOADED)

    threading.Thread(target=start, name="fork-server-ahead", daemon=True).start()


@contextmanager
def uncollected() -> Iterator[None]:
    """Meanwhile nobody looks for garbage, and nobody ever looks through what is there at the end: for the imports of a
    process of the harness's own, of which a fifth goes into that. Where PyTorch is there already, so may be what an
    earlier run has left: that is still to be found.
    """
    if "torch" in sys.modules:
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
