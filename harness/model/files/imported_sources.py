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

UNREADABLE = "\0"  # the text of what cannot be read as Python reads it; no parser takes it
_MOST_MODULES = 200
_MOST_BYTES = 1 << 20  # of a module, which is parsed where nobody ends it
_LONGEST_NAME = 200


def imported_sources(path: Path) -> Iterator[tuple[Path, str]]:
    """The candidate's file at `path` and its text, then those of its modules; `UNREADABLE` for one that cannot be read."""
    modules = _modules_beside(path)
    waiting, seen = [path], {path}
    while waiting and len(seen) <= _MOST_MODULES:
        current = waiting.pop(0)
        text = _text_of(current)
        yield current, text
        named = _named(text)
        more = [each for name, files in modules.items() if name in named for each in files if each not in seen]
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


def _modules_beside(path: Path) -> dict[str, list[Path]]:
    """The modules and packages that the candidate at `path` may import from its folder, by name, with their files."""
    modules: dict[str, list[Path]] = {}
    for each in beside(path).own:
        if each.suffix == ".py" and each.stem != path.stem and each.is_file():
            modules.setdefault(each.stem, []).append(each)
        elif each.is_dir():
            modules.setdefault(each.name, []).extend(islice(each.rglob("*.py"), _MOST_MODULES))
    return modules


def _named(text: str) -> set[str]:
    """The first parts of the modules that `text` imports, and all words of its strings: one may be imported by its name."""
    try:
        tree = parsed(text)
    except SourceFault:
        return set()
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(each.name.partition(".")[0] for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            names.update([(node.module or "").partition(".")[0], *(each.name for each in node.names)])
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) <= _LONGEST_NAME:
            names.update(node.value.replace("/", ".").split("."))
    return names
