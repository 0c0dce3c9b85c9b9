"""From pydantic's findings to sentences: which key, on which line, must be what, and what to type instead.

A schema declares each key once with `key(...)`, in the words that a message will use.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, Field, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError

from harness.errors import InputError
from harness.spelling import hint_for, listed, nearest
from harness.reading.yaml_lines import YamlFile, dotted_name

_REQUIRED: Any = ...
_QUOTE = "'"


def key(
    *must_be: str, example: str, default: Any = _REQUIRED, alias: str | None = None,
    synonyms: Mapping[str, str] | None = None,
) -> Any:
    """A key of a schema, as a pydantic field.

    `must_be` completes "… must be" for the value itself and, with a further one for each level down, for
    what it contains; `example` is a whole right line; `synonyms` maps names that other software uses for a
    value to ours, to be offered and not accepted.
    """
    words = {"must_be": list(must_be), "synonyms": dict(synonyms or {})}
    return Field(default, alias=alias, examples=[example], json_schema_extra=words)


def fault(sentence: str, hint: str | None = None) -> PydanticCustomError:
    """For validators of a schema: a finding already in words; `sentence` follows the name of the key."""
    # pydantic fills {…} in the template, so the words travel in the context and not in the template itself
    return PydanticCustomError("fault", "{sentence}", {"sentence": sentence, "hint": hint or ""})


def input_errors(error: ValidationError, schema: type[BaseModel], file: YamlFile) -> list[InputError]:
    """One InputError for each finding of pydantic, in the order of the file's lines."""
    findings = error.errors(include_url=False)
    unknown = [finding["loc"] for finding in findings if finding["type"] == "extra_forbidden"]
    guessed = {_nearest_key(schema, keys) for keys in unknown}
    found = []
    for finding in findings:
        if finding["type"] == "missing" and finding["loc"] in guessed:
            continue  # the misspelt key says it already
        found.append(_sentence(finding, schema, file))
    return sorted(found, key=lambda each: each.line or 0)


def _sentence(finding: dict[str, Any], schema: type[BaseModel], file: YamlFile) -> InputError:
    keys, kind, value = finding["loc"], finding["type"], finding.get("input")
    line, name = file.line_of(keys), dotted_name(keys)
    if kind == "extra_forbidden":
        return InputError(f"unknown key '{name}'", file.path, line, _hint_for_unknown(schema, keys))
    field, depth = _field_of(schema, keys)
    example = f"Write, for example, {field.examples[0]}" if field is not None and field.examples else None
    if kind == "missing":
        return InputError(f"'{name}' is missing", file.path, line, example)
    if kind == "fault":
        words = finding["ctx"]
        return InputError(f"{name} {words['sentence']}", file.path, line, words["hint"] or None)
    if kind == "literal_error":
        words = re.findall(r"'([^']*)'", finding["ctx"]["expected"])
        synonyms = field.json_schema_extra["synonyms"] if field is not None else {}
        meant = synonyms.get(value.lower(), value) if isinstance(value, str) else ""
        hint = f"Did you mean '{meant}'?" if meant in words else hint_for(meant, words)
        found = f"{name} must be {listed(words, 'or')}, not {_written(value)}"
        return InputError(found, file.path, line, hint)
    must_be = field.json_schema_extra["must_be"] if field is not None else []
    wanted = must_be[min(depth, len(must_be) - 1)] if must_be else "something else"
    if isinstance(value, str) and re.fullmatch(r"\s*[-+]?[0-9.]+\s*", value) and "number" in wanted:
        example = f"Take the quotes away: {value.strip()}"
    return InputError(f"{name} must be {wanted}, not {_written(value)}", file.path, line, example)


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


def _fields(schema: type[BaseModel]) -> dict[str, FieldInfo]:
    """The fields of `schema` by the key that stands in the file."""
    return {field.alias or name: field for name, field in schema.model_fields.items()}


def _inner(field: FieldInfo) -> type[BaseModel] | None:
    """The schema of a section, None for a key with a plain value."""
    kinds: Iterable[Any] = getattr(field.annotation, "__args__", None) or (field.annotation,)
    return next((kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)), None)


def _field_of(schema: type[BaseModel], keys: Sequence[str | int]) -> tuple[FieldInfo | None, int]:
    """The deepest declared key on the way to `keys`, and how many levels below it the value lies."""
    current: type[BaseModel] | None = schema
    found, depth = None, 0
    for each in keys:
        field = _fields(current).get(str(each)) if current is not None else None
        if field is None:
            depth, current = depth + 1, None
        else:
            found, depth, current = field, 0, _inner(field)
    return found, depth


def _section(schema: type[BaseModel], keys: Sequence[str | int]) -> dict[str, FieldInfo]:
    """The keys that may stand beside the last of `keys`."""
    current: type[BaseModel] = schema
    for each in keys[:-1]:
        inner = _inner(_fields(current)[str(each)])
        current = inner or current
    return _fields(current)


def _nearest_key(schema: type[BaseModel], keys: Sequence[str | int]) -> tuple[str | int, ...] | None:
    guess = nearest(str(keys[-1]), _section(schema, keys))
    return None if guess is None else (*keys[:-1], guess)


def _hint_for_unknown(schema: type[BaseModel], keys: Sequence[str | int]) -> str:
    """The nearest right spelling, else the section the key belongs to, else the keys there are."""
    word = str(keys[-1])
    for section, field in _fields(schema).items():
        inner = _inner(field)
        if len(keys) == 1 and inner is not None and word in _fields(inner):
            return f"It belongs below '{section}:'."
    if len(keys) > 1 and word in _fields(schema):
        return "It belongs at the left margin, not below another key."
    return hint_for(word, list(_section(schema, keys)), "The keys here are") or ""
