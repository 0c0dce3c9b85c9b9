"""Reads a settings file; the defaults of its keys are those of `settings.Settings`.

Only `settings` imports this, and only while it loads a file: pydantic takes a tenth of a second to import.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictInt, ValidationError

from harness.reading.text_files import joined
from harness.reading.yaml_lines import read_yaml
from harness.reading.yaml_mistakes import fault, input_errors, key

# The interval trims a fifth of the rounds at each end; with fewer than five rounds nothing would be trimmed.
_FEWEST_ROUNDS = 5


def _rising(looks: list[int]) -> list[int]:
    if looks[0] < _FEWEST_ROUNDS:
        raise fault(f"begins with {looks[0]}, and an interval takes {_FEWEST_ROUNDS} rounds or more",
                    "Write, for example, looks: [10, 20, 40, 80]")
    if any(later <= earlier for earlier, later in zip(looks, looks[1:])):
        raise fault("must rise from each look to the next", "Write, for example, looks: [10, 20, 40, 80]")
    return looks


Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Count = Annotated[StrictInt, Field(ge=1)]


def _seconds(example: str, default: Any = ...) -> Any:
    return key("a number of seconds above 0", example=example, default=default)


class SettingsSchema(BaseModel):
    """A settings file, key by key."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    half_width: Annotated[float, Field(gt=0, lt=1)] = key(
        "a number between 0 and 1, relative to the speedup", example="half_width: 0.001"
    )
    budget_s: Seconds = _seconds("budget_s: 3")
    players: Count = key("a whole number of at least 1", example="players: 1")
    warmup_s: Annotated[float, Field(ge=0, allow_inf_nan=False)] = key(
        "a number of seconds, 0 or more", example="warmup_s: 0.5"
    )
    check_launches: Count = key("a whole number of at least 1", example="check_launches: 3")
    looks: Annotated[list[Count], Field(min_length=1), AfterValidator(_rising)] | None = key(
        "a list of numbers of rounds", "a whole number of at least 1",
        example="looks: [10, 20, 40, 80]", default=None,
    )
    segment_ms: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = key(
        "a number of milliseconds above 0", example="segment_ms: 3", default=None
    )
    load_timeout_s: Seconds | None = _seconds("load_timeout_s: 60", None)
    launch_timeout_s: Seconds | None = _seconds("launch_timeout_s: 30", None)
    build_timeout_s: Seconds | None = _seconds("build_timeout_s: 600", None)
    confidence: Annotated[float, Field(ge=0.5, lt=1)] | None = key(
        "a number from 0.5 to below 1", example="confidence: 0.99", default=None
    )
    eager_players: Count | None = key("a whole number of at least 1", example="eager_players: 3", default=None)


def read_settings_file(path: Path, configs_dir: Path) -> dict[str, Any]:
    """The keys and values that stand in `path`; when it is missing, files in `configs_dir` are offered too.

    Raises InputError with one line for each mistake.
    """
    file = read_yaml(path, also=(configs_dir,))
    try:
        schema = SettingsSchema.model_validate(file.values)
    except ValidationError as error:
        raise joined(input_errors(error, SettingsSchema, file)) from None
    given = schema.model_dump(exclude_none=True)  # an empty key means the default
    return {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}
