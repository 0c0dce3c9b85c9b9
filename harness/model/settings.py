"""How long and how exactly to measure: the settings that ``--config`` names.

quick, default and rigorous lie in ``configs/``; a path to another YAML file with the same keys works too.
"""

from __future__ import annotations

import argparse
import hashlib
from dataclasses import asdict, dataclass
from pathlib import Path

from harness.model.errors import InputError
from harness.model.files.text_files import files_in, shown
from harness.model.paths import CONFIGS_DIR, located, own
from harness.model.spelling import hint_for

_DEFAULTS = {"device": "auto", "config": "default", "trials": 32}  # of flags; the others have none
_NOT_SETTINGS = ("gpus", "selftest")  # datasheet peaks, and what only `selftest` uses


@dataclass(frozen=True)
class Settings:
    """One configuration. Keys without a value here must stand in the YAML file; `name` is the file's stem.

    `half_width` is relative: measuring stops once the interval of the speedup is no wider than ± that, or after
    `budget_s` of measuring, whichever comes first. `looks` are the counts of rounds after which the interval is looked
    at. `check_launches` is how often the timed size is checked before any timing. `eager_players` is in how many
    processes of its own eager is timed where it is short, on a GPU; those that its row has count. `memory_gb` is how
    much of the device's memory the harness and its workers may use together, in 10⁹ bytes. `row_budget_s` is how long
    all of a candidate's row may take once it is built; where ten times as long as eager's own row is more, that is.
    """

    name: str
    half_width: float
    budget_s: float
    players: int
    warmup_s: float
    check_launches: int
    looks: tuple[int, ...] = (10, 20, 40, 80)
    segment_ms: float = 3.0
    load_timeout_s: float = 60.0
    launch_timeout_s: float = 30.0
    build_timeout_s: float = 600.0
    row_budget_s: float = 300.0
    confidence: float = 0.99
    eager_players: int = 1
    memory_gb: float | None = None

    @property
    def interim_checks(self) -> tuple[int, ...]:
        """The counts of rounds after which the judge asks whether the interval is narrow enough: the key `looks`."""
        return self.looks

    @property
    def workers(self) -> int:
        """How many fresh workers each candidate is timed in: the key `players`."""
        return self.players

    @property
    def memory_bytes(self) -> int | None:
        """Of the device, for the harness and its workers together; None for all that there is."""
        return None if self.memory_gb is None else int(self.memory_gb * 1e9)

    @property
    def hash(self) -> str:
        """The first 16 hex digits of the SHA-256 over all values: two files of one name are told apart. The name is
        left out, and so is the budget of a row, which says how long is waited and not how it is measured.
        """
        left_out = ("name", "row_budget_s")
        values = {name: value for name, value in asdict(self).items() if name not in left_out and value is not None}
        return hashlib.sha256(repr(sorted(values.items())).encode()).hexdigest()[:16]


def load_settings(name_or_path: str) -> Settings:
    """The settings called `name_or_path` in ``configs/``, or those in the YAML file at that path. Raises InputError;
    its text has one line for each mistake found.
    """
    shipped = settings_names()
    if name_or_path in shipped:
        path = CONFIGS_DIR / f"{name_or_path}.yaml"
    elif Path(name_or_path).suffix or len(Path(name_or_path).parts) != 1:
        path = located(Path(name_or_path))
    else:
        raise InputError(f"there is no configuration '{name_or_path}'",
                         hint=hint_for(name_or_path, shipped, "There are"))
    from harness.model.files.settings_file import read_settings_file  # with pydantic's engine

    return Settings(name=path.stem, **read_settings_file(path, CONFIGS_DIR))


def extras_of(options: argparse.Namespace) -> tuple[str, ...]:
    """What --energy and --extra-times ask for beside the ranking time, as `judge.extras` names it."""
    return ("energy",) * options.energy + ("times",) * options.extra_times


def typed_flags(options: argparse.Namespace, *names: str) -> list[str]:
    """Return those of the flags `names` that say another thing than without them, as words to type."""
    words = []
    for name in names:
        value = getattr(options, name)
        if value is True:
            words.append(f"--{name.replace('_', '-')}")
        elif isinstance(value, list):
            words += [word for each in value for word in (f"--{name}", each)]
        elif value not in (None, False) and value != (own("results") if name == "out" else _DEFAULTS.get(name)):
            words += [f"--{name}", str(shown(value) if name == "baseline" else value)]
    return words


def check_one_size(options: argparse.Namespace, flag: str) -> None:
    """Raises InputError where --sizes names several and `flag` is for one."""
    if len(options.sizes) > 1:
        raise InputError(f"{flag} goes with one set of sizes", hint="Give --sizes once, or run one after the other")


def settings_names() -> list[str]:
    """The names that ``--config`` accepts, from the quickest to the most exact."""
    names = {file.stem for file in files_in(CONFIGS_DIR, (".yaml",))} - set(_NOT_SETTINGS)
    order = [name for name in ("quick", "default", "rigorous") if name in names]
    return order + sorted(names - set(order))
