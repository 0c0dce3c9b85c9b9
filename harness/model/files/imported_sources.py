"""The texts that a candidate runs: its own, and those of the modules of its folder that it imports or names in a string.

They are read and never run, by whoever asks what a candidate defines, carries or reaches into.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from harness.model.errors import InputError
from harness.model.files.neighbours import beside
from harness.model.files.python_source import SourceFault, parsed
from harness.model.files.text_files import declared_encoding, decoded
from harness.protocol.source_import import WITH_FILES

UNREADABLE = "\0"  # the text of what cannot be read as Python reads it; no parser takes it
_MOST_MODULES = 200
_MOST_BYTES = 1 << 20  # of a module, which is parsed where nobody ends it
_LONGEST_NAME = 200


def imported_sources(path: Path) -> Iterator[tuple[Path, str]]:
    """The candidate's file at `path` and its text, then those of its modules; `UNREADABLE` for one that cannot be read."""
    places = _places_beside(path)
    waiting, seen = [path], {path}
    while waiting and len(seen) <= _MOST_MODULES:
        current = waiting.pop(0)
        text = _text_of(current)
        yield current, text
        imported, named = _names(text)
        # What it imports is read though it be another candidate's: it may see that where there are no namespaces.
        more = [path.parent / f"{name}.py" for name in sorted(imported) if name.isidentifier()]
        for place in places:
            name = place.name.removesuffix(".py")
            if name in imported or name in named:
                more += _files_of(place, is_imported=name in imported)
        more = [each for each in dict.fromkeys(more) if each not in seen and each.is_file()]
        waiting += more
        seen.update(more)


def _text_of(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
        text = decoded(content, path)
    except (OSError, InputError):
        return UNREADABLE
    return UNREADABLE if len(content) > _MOST_BYTES or declared_encoding(content) is not None else text


def _places_beside(path: Path) -> list[Path]:
    """The modules and folders that the candidate at `path` may import from its own folder."""
    try:
        is_copy = path.parent.name.startswith(WITH_FILES)  # where all files are its own, whatever is in them
        beside_it = list(path.parent.iterdir()) if is_copy else beside(path).own
        return [each for each in beside_it if each != path and (each.suffix == ".py" or each.is_dir())]
    except (OSError, RuntimeError):  # a folder that goes meanwhile, links in a circle
        return []


def _files_of(place: Path, *, is_imported: bool) -> list[Path]:
    """The files of a module, or of a package; a folder that is named in a string alone is one if it says so."""
    if place.suffix == ".py":
        return [place]
    try:
        is_package = is_imported or (place / "__init__.py").is_file()
        return list(islice((each for each in place.rglob("*.py") if each.is_file()), _MOST_MODULES)) if is_package else []
    except (OSError, RuntimeError):
        return []


def _names(text: str) -> tuple[set[str], set[str]]:
    """The first parts of the modules that `text` imports, and all words of its strings: one may be imported by its name."""
    try:
        tree = parsed(text)
    except SourceFault:
        return set(), set()
    imported: set[str] = set()
    named: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imported.update(each.name.partition(".")[0] for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            imported.update([(node.module or "").partition(".")[0]] if node.module else (each.name for each in node.names))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) <= _LONGEST_NAME:
            named.update(node.value.replace("/", ".").split("."))
    return imported, named
