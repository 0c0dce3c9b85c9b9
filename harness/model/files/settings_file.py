"""Reads a settings file; the defaults of its keys are those of `settings.Settings`.

Only `settings` imports this, and only while it loads a file: what checks it takes a while to import.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pydantic_core import ValidationError, core_schema

from harness.model.files.schema_engine import checked_by, fault, key, read_section
from harness.model.files.text_files import joined
from harness.model.files.yaml_lines import read_yaml
from harness.model.files.yaml_mistakes import input_errors

# The interval trims a fifth of the rounds at each end; with fewer than five rounds nothing would be trimmed.
_FEWEST_ROUNDS = 5


def _rising(looks: list[int]) -> list[int]:
    example = "Write, for example, looks: [10, 20, 40, 80]"
    if looks[0] < _FEWEST_ROUNDS:
        raise fault(f"begins with {looks[0]}, and an interval takes {_FEWEST_ROUNDS} rounds or more", example)
    if any(later <= earlier for earlier, later in zip(looks, looks[1:])):
        raise fault("must rise from each look to the next", example)
    return looks


_COUNT = core_schema.int_schema(ge=1)
_ABOVE_0 = core_schema.float_schema(gt=0, allow_inf_nan=False)
_LOOKS = checked_by(core_schema.list_schema(_COUNT, min_length=1), _rising)


def _count(example: str, **default: Any) -> Any:
    return key(_COUNT, "a whole number of at least 1", example=example, **default)


def _seconds(example: str, **default: Any) -> Any:
    return key(_ABOVE_0, "a number of seconds above 0", example=example, **default)


@dataclass(frozen=True)
class SettingsSchema:
    """A settings file, key by key."""

    half_width: float = key(core_schema.float_schema(gt=0, lt=1), "a number between 0 and 1, relative to the speedup",
                            example="half_width: 0.001")
    budget_s: float = _seconds("budget_s: 3")
    players: int = _count("players: 1")
    warmup_s: float = key(core_schema.float_schema(ge=0, allow_inf_nan=False), "a number of seconds, 0 or more",
                          example="warmup_s: 0.5")
    check_launches: int = _count("check_launches: 3")
    looks: list[int] | None = key(_LOOKS, "a list of numbers of rounds", "a whole number of at least 1",
                                  example="looks: [10, 20, 40, 80]", default=None)
    segment_ms: float | None = key(_ABOVE_0, "a number of milliseconds above 0", example="segment_ms: 3", default=None)
    load_timeout_s: float | None = _seconds("load_timeout_s: 60", default=None)
    launch_timeout_s: float | None = _seconds("launch_timeout_s: 30", default=None)
    build_timeout_s: float | None = _seconds("build_timeout_s: 600", default=None)
    row_budget_s: float | None = _seconds("row_budget_s: 300", default=None)
    confidence: float | None = key(core_schema.float_schema(ge=0.5, lt=1), "a number from 0.5 to below 1",
                                   example="confidence: 0.99", default=None)
    eager_players: int | None = _count("eager_players: 3", default=None)
    memory_gb: float | None = key(_ABOVE_0, "a number of gigabytes above 0", example="memory_gb: 24", default=None)


def read_settings_file(path: Path, configs_dir: Path) -> dict[str, Any]:
    """The keys and values that stand in `path`; when it is missing, files in `configs_dir` are offered too. Raises
    InputError with one line for each mistake.
    """
    file = read_yaml(path, also=(configs_dir,))
    try:
        schema = read_section(SettingsSchema, file.values)
    except ValidationError as error:
        raise joined(input_errors(error, SettingsSchema, file)) from None
    return {name: tuple(value) if isinstance(value, list) else value
            for name, value in asdict(schema).items() if value is not None}  # an empty key means the default
