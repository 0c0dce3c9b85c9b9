"""From what the engine found to sentences: which key, on which line, must be what, and what to type instead.

The words are those that a section declares with each `key`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from pydantic_core import ValidationError

from harness.model.errors import InputError
from harness.model.files.schema_engine import Key, keys_of
from harness.model.files.yaml_lines import YamlFile, dotted_name
from harness.model.spelling import hint_for, listed, nearest

_QUOTE = "'"


def input_errors(error: ValidationError, section: type, file: YamlFile) -> list[InputError]:
    """One InputError for each finding, in the order of the file's lines."""
    findings = error.errors(include_url=False)
    unknown = [finding["loc"] for finding in findings if finding["type"] == "extra_forbidden"]
    guessed = {(*keys[:-1], nearest(str(keys[-1]), _beside(section, keys))) for keys in unknown}
    errors = [_sentence(finding, section, file) for finding in findings
              if finding["type"] != "missing" or finding["loc"] not in guessed]  # the misspelt key says it already
    return sorted(errors, key=lambda each: each.line or 0)


def _sentence(finding: dict[str, Any], section: type, file: YamlFile) -> InputError:
    keys, kind, value = finding["loc"], finding["type"], finding.get("input")
    name = dotted_name(keys)
    if kind == "extra_forbidden":
        return file.fault(keys, f"unknown key '{name}'", _hint_for_unknown(section, keys))
    declared, depth = _declared_at(section, keys)
    example = f"Write, for example, {declared.example}" if declared is not None else None
    if kind == "missing":
        return file.fault(keys, f"'{name}' is missing", example)
    if kind == "fault":
        return file.fault(keys, f"{name} {finding['ctx']['sentence']}", finding["ctx"]["hint"] or None)
    if kind == "literal_error":
        words = re.findall(r"'([^']*)'", finding["ctx"]["expected"])
        synonyms = declared.synonyms if declared is not None else {}
        meant = synonyms.get(value.lower(), value) if isinstance(value, str) else ""
        hint = f"Did you mean '{meant}'?" if meant in words else hint_for(meant, words)
        return file.fault(keys, f"{name} must be {listed(words, 'or')}, not {_written(value)}", hint)
    must_be = declared.must_be if declared is not None else ()
    wanted = must_be[min(depth, len(must_be) - 1)] if must_be else "something else"
    if isinstance(value, str) and re.fullmatch(r"\s*[-+]?[0-9.]+\s*", value) and "number" in wanted:
        example = f"Take the quotes away: {value.strip()}"
    return file.fault(keys, f"{name} must be {wanted}, not {_written(value)}", example)


def _written(value: Any) -> str:
    """A value as the user wrote it, cut short."""
    if value is None:
        return "empty"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f"'{value}'" if len(value) <= 40 else f"'{value[:40]}…'"
    if isinstance(value, dict):
        inside = ", ".join(f"{name}: {_written(each).strip(_QUOTE)}" for name, each in value.items())
        return "{" + inside + "}" if len(inside) <= 40 else "a mapping"
    if isinstance(value, list):
        inside = ", ".join(_written(each).strip(_QUOTE) for each in value)
        return f"[{inside}]" if len(inside) <= 40 else "a list"
    return str(value)[:40]


def _declared_at(section: type, keys: Sequence[str | int]) -> tuple[Key | None, int]:
    """The deepest declared key on the way to `keys`, and how many levels below it the value lies."""
    current: type | None = section
    deepest_key, depth = None, 0
    for each in keys:
        declared = keys_of(current).get(str(each)) if current is not None else None
        if declared is None:
            depth, current = depth + 1, None
        else:
            deepest_key, depth, current = declared, 0, declared.section
    return deepest_key, depth


def _beside(section: type, keys: Sequence[str | int]) -> dict[str, Key]:
    """The keys that may stand beside the last of `keys`."""
    current = section
    for each in keys[:-1]:
        current = keys_of(current)[str(each)].section or current
    return keys_of(current)


def _hint_for_unknown(section: type, keys: Sequence[str | int]) -> str:
    """The nearest right spelling, else the section the key belongs to, else the keys there are."""
    word = str(keys[-1])
    for name, declared in keys_of(section).items():
        if len(keys) == 1 and declared.section is not None and word in keys_of(declared.section):
            return f"It belongs below '{name}:'."
    if len(keys) > 1 and word in keys_of(section):
        return "It belongs at the left margin, not below another key."
    return hint_for(word, list(_beside(section, keys)), "The keys here are") or ""
