"""Whether PyTorch was installed with its compiled bytecode, as some installers and images do not."""

from __future__ import annotations

import importlib.util
import os
import shlex
import sys
from pathlib import Path

from harness.cli.diagnosis.finding import NOTE, Finding


def bytecode_finding() -> Finding | None:
    """A note with the command that compiles PyTorch's bytecode where it is missing; None where it is there.

    What stands for the rest is a module that only candidates' processes import: the sandbox keeps those from writing
    any.
    """
    folder = _torch_folder()
    source = None if folder is None else Path(folder, "_inductor", "compile_fx.py")
    if source is None or not source.is_file() or Path(importlib.util.cache_from_source(source)).is_file():
        return None
    text = "PyTorch's is missing: each run reads some thousand source files anew, which takes seconds"
    return Finding("bytecode", NOTE, text, f"{shlex.quote(sys.executable)} -m compileall -q {shlex.quote(folder)}")


def advice_on_bytecode() -> str | None:
    """What to type before the next run, in one line; None where there is nothing to gain, or no right to write there."""
    found = bytecode_finding()
    if found is None or not os.access(_torch_folder(), os.W_OK):
        return None
    return f"each run begins seconds later than it could, as PyTorch has no compiled bytecode here; once: {found.hint}"


def _torch_folder() -> str | None:
    spec = importlib.util.find_spec("torch")
    return None if spec is None or not spec.submodule_search_locations else spec.submodule_search_locations[0]
