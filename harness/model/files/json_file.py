"""JSON texts of a user's files, and their fields, or a sentence on what is wrong with them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.model.errors import InputError
from harness.model.spelling import hint_for

_WORDS = {str: "text", dict: "an object", list: "a list", bool: "true or false", int: "a whole number"}


def read_object(text: str, path: Path, first_line: int = 1) -> dict[str, Any]:
    """Return the JSON object that `text` is; its first line is `first_line` of `path`. Raises InputError with the line."""
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f"is no JSON: {error.msg}", path, first_line + error.lineno - 1) from None
    except RecursionError:
        raise InputError("is nested too deeply to be read", path, first_line) from None
    if not isinstance(value, dict):
        raise InputError("must be one JSON object, {…}", path, first_line)
    return value


def field(values: Mapping[str, Any], name: str, kind: type, path: Path, where: str = "", line: int | None = None) -> Any:
    """Return `values[name]`, which is of this `kind`. Raises InputError; `where` names the object for the message."""
    full = f"{where}.{name}" if where else name
    if name not in values:
        hint = hint_for(name, list(values)) or f"Write \"{name}\": {_WORDS[kind]}"
        raise InputError(f"there is no '{full}'", path, line, hint)
    value = values[name]
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise InputError(f"'{full}' must be {_WORDS[kind]}, not {json.dumps(value)[:40]}", path, line)
    return value
