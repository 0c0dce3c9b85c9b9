"""A candidate's file imported from its text: what runs is what was read.

Python would take bytecode from `__pycache__`, and nobody knows from whose text that was compiled. And it would
read the text in the encoding that a comment declares, in which other code may stand there than the judge has read.
"""

from __future__ import annotations

import importlib.util
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

WITH_FILES = "with-files-"  # begins the name of a folder in which what a candidate imports was laid beside it


class _FromText(SourceFileLoader):
    """Python's own loader of a file, which compiles the text each time, as UTF-8 whatever it declares."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path).decode("utf-8-sig"), path)


def import_source(path: Path) -> ModuleType:
    """Import the file at `path` under a name of its own, since a file may be called triton.py; raises what it raises."""
    if path.parent.name.startswith(WITH_FILES):
        sys.path.insert(0, str(path.parent))
    name = f"candidate_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path, loader=_FromText(name, str(path)))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
