"""A candidate's file, and the modules beside it, imported from their text: what runs is what was read.

Python would take bytecode from `__pycache__`, and nobody knows from whose text that was compiled. And it would
read the text in the encoding that a comment declares, in which other code may stand there than the judge has read.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from importlib.machinery import EXTENSION_SUFFIXES, SOURCE_SUFFIXES, ExtensionFileLoader, FileFinder, SourceFileLoader
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
    _import_from_texts_below(path.parent)
    if path.parent.name.startswith(WITH_FILES):
        sys.path.insert(0, str(path.parent))
    name = f"candidate_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path, loader=_FromText(name, str(path)))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _import_from_texts_below(folder: Path) -> None:
    """Have modules below `folder` imported from their texts too, and none there from bytecode; but what is installed below
    it, in an environment of a project, as ever.
    """
    places = os.path.join(os.path.abspath(folder), ""), os.path.join(os.path.realpath(folder), "")
    searched = (os.path.join(each, "") for each in sys.path)
    installed = tuple(each for each in searched if each.startswith(places) and each not in places)
    loaders = (ExtensionFileLoader, EXTENSION_SUFFIXES), (_FromText, SOURCE_SUFFIXES)

    def is_its_own(name: str) -> bool:
        place = os.path.join(os.path.abspath(name), "")
        return place.startswith(places) and not place.startswith(installed)

    def finder(name: str) -> FileFinder:
        if not is_its_own(name):
            raise ImportError(f"{name} is not the candidate's")
        return FileFinder(name, *loaders)

    sys.path_hooks.insert(0, finder)
    for name in filter(is_its_own, list(sys.path_importer_cache)):
        del sys.path_importer_cache[name]
