"""What a section of a YAML file may hold, declared key by key, and checked by pydantic's engine.

A section is a frozen dataclass whose fields are made by `key(...)`; a field's name is the key, or its `alias` is. The
engine, `pydantic_core`, is imported alone: pydantic with its models would take another tenth of a second and more.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic_core import CoreSchema, PydanticCustomError, SchemaValidator, core_schema

NEEDED: Any = dataclasses.MISSING
_Section = TypeVar("_Section")


@dataclass(frozen=True)
class Key:
    """A key as it was declared: see `key`. `section` is the dataclass of the section below it, None for a plain value."""

    schema: CoreSchema
    must_be: tuple[str, ...]
    example: str
    default: Any
    alias: str | None
    synonyms: Mapping[str, str]
    section: type | None

    @property
    def choices(self) -> tuple[str, ...]:
        """The words that it may be, where there are only so many."""
        return tuple(self.schema["expected"]) if self.schema["type"] == "literal" else ()


def key(
    holds: CoreSchema | type, *must_be: str, example: str, default: Any = NEEDED, alias: str | None = None,
    synonyms: Mapping[str, str] | None = None, before: Callable[[Any], Any] | None = None,
) -> Any:
    """A field of a section, for a key that holds a plain value or, where `holds` is a dataclass, a section of its own.

    `must_be` completes "… must be" for the value itself and, with a further one for each level down, for
    what it contains; `example` is a whole right line. A key whose `default` is None may be left empty. `synonyms` maps names
    that other software uses for a value to ours, to be offered and not accepted; `before` is given what stands in the file.
    """
    section = holds if isinstance(holds, type) else None
    schema = holds if section is None else _schema_of(section)
    if before is not None:
        schema = core_schema.no_info_before_validator_function(before, schema)
    declared_key = Key(schema, must_be, example, default, alias, dict(synonyms or {}), section)
    return dataclasses.field(default=default, metadata={"key": declared_key}, kw_only=True)


def fault(sentence: str, hint: str | None = None) -> PydanticCustomError:
    """For functions that check a value: a finding already in words; `sentence` follows the name of the key."""
    # {…} in a template is filled in, so the words travel in the context and not in the template itself
    return PydanticCustomError("fault", "{sentence}", {"sentence": sentence, "hint": hint or ""})


def checked_by(schema: CoreSchema, *checks: Callable[[Any], Any]) -> CoreSchema:
    """`schema`, and then each of `checks`, which returns the value or raises a `fault`."""
    return functools.reduce(lambda inner, check: core_schema.no_info_after_validator_function(check, inner), checks, schema)


def keys_of(section: type) -> dict[str, Key]:
    """The keys of a section as they stand in the file."""
    return {declared.alias or name: declared for name, declared in _declared(section).items()}


def read_section(section: type[_Section], values: Any) -> _Section:
    """`values`, as they stand in a file, as a `section`. Raises pydantic_core.ValidationError with all that is wrong."""
    return SchemaValidator(_schema_of(section)).validate_python(values, strict=True)


def _declared(section: type) -> dict[str, Key]:
    return {field.name: field.metadata["key"] for field in dataclasses.fields(section)}


@functools.cache
def _schema_of(section: type) -> CoreSchema:
    fields = {}
    for name, declared in _declared(section).items():
        schema = core_schema.nullable_schema(declared.schema) if declared.default is None else declared.schema
        fields[name] = core_schema.typed_dict_field(schema, required=declared.default is NEEDED,
                                                    validation_alias=declared.alias)
    mapping = core_schema.typed_dict_schema(fields, extra_behavior="forbid")
    return core_schema.no_info_after_validator_function(lambda values: section(**values), mapping)
