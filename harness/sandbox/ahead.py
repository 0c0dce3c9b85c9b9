"""The process that builders and players are forked from, started before anybody asks for it.

PyTorch takes seconds to import, and so a command begins with it in both processes at once.
"""

from __future__ import annotations

import os
import threading
from importlib.util import find_spec

from harness.clocks.openmp import SPIN, shorten_spinning
from harness.sandbox.environment import scrubbed
from harness.sandbox.forking import server_for
from harness.sandbox.walls import best_wall

# Not more of PyTorch than this: some of its modules look for a GPU when they are imported, and CUDA then works in no
# fork. setuptools is what takes the longest of torch.utils.cpp_extension, which every builder and player imports.
PRELOADED = ("torch", *(name for name in ("setuptools",) if find_spec(name)))


def start_ahead() -> None:
    """Set the variables of OpenMP that are read at import, and start the process in the background.

    Call it before importing torch, and in no process that is to fork itself.
    """
    shorten_spinning(os.environ)
    environment = scrubbed(os.environ, {name: os.environ[name] for name in SPIN if name in os.environ})
    threading.Thread(
        target=lambda: server_for(best_wall(), environment, PRELOADED), name="fork-server-ahead", daemon=True
    ).start()
