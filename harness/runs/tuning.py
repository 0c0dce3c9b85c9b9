"""Searching a candidate's `PARAMETERS`: every trial is a candidate of its own and goes through the whole judge. Trials
are all combinations where there are few, else those that Optuna's sampler proposes, which is told what became of each.
They go in batches through one warm judge, the best once more; the winner has a file.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.judge.run import nothing_ran
from harness.model.candidate import Candidate, values_of
from harness.model.errors import HarnessError, InputError, NothingToRun
from harness.model.files.parameters import Value, combinations, defaults
from harness.model.files.text_files import replacing, shown
from harness.model.problem import Problem
from harness.model.settings import Settings
from harness.model.verdict import Status
from harness.report.progress import Progress
from harness.results.changes import WRONG
from harness.results.record import Record

if TYPE_CHECKING:
    from harness.runs.cluster.referees import Referees
    from harness.runs.referee import Referee

    Judging = Referee | Referees  # of one device, or of a cluster's devices of one model

_JUDGED_AGAIN = 3  # the fastest of many was also lucky: the first few are judged again, and that decides
_SEED = 0  # two searches of the same trials propose the same
_REPEATED = 5  # proposals that were tried before, after which one is drawn at random
_FIRST_AT_RANDOM = 8


def search_for(allowed: Mapping[str, list[Value]], trials: int) -> Exhaustive | Sampled:
    """Every combination where `trials` suffice for them, else Optuna's. Raises NothingToRun without Optuna."""
    if math.prod(map(len, allowed.values())) <= trials:
        return Exhaustive(allowed)
    return Sampled(allowed, trials)


class Exhaustive:
    """All combinations in order, the defaults first."""

    def __init__(self, allowed: Mapping[str, list[Value]]) -> None:
        self._left = combinations(allowed)

    def ask(self, count: int) -> list[dict[str, Value]]:
        """Up to `count` choices of values that were not tried before; none when the search is over."""
        return list(itertools.islice(self._left, count))

    def tell(self, values: Mapping[str, Value], speedup: float | None) -> None:
        """All are tried, whatever they are worth."""


class Sampled:
    """Optuna's tree-structured Parzen estimator over the lists of values; the defaults are its first trial."""

    def __init__(self, allowed: Mapping[str, list[Value]], trials: int) -> None:
        count = math.prod(map(len, allowed.values()))
        try:
            import optuna
        except ImportError:
            raise NothingToRun(
                f"Searching {count} combinations in {trials} trials takes Optuna, and it is not installed. Type "
                f"pip install optuna, or --trials {count} to try them all"
            ) from None
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._allowed, self._most = allowed, min(trials, count)
        self._random = random.Random(_SEED)
        # All are chosen by their place in the list. Where the list is a scale, neighbours tell of each other.
        distributions = optuna.distributions
        self._places = {
            name: distributions.IntDistribution(0, len(values) - 1) if _is_scale(values)
            else distributions.CategoricalDistribution(list(range(len(values))))
            for name, values in allowed.items()
        }
        sampler = optuna.samplers.TPESampler(
            seed=_SEED, n_startup_trials=min(_FIRST_AT_RANDOM, trials), multivariate=True, constant_liar=True
        )
        self._study = optuna.create_study(direction="maximize", sampler=sampler)
        self._duplicate = optuna.trial.TrialState.FAIL  # which the sampler passes over
        self._study.enqueue_trial(dict.fromkeys(allowed, 0))
        self._asked: dict[tuple[Any, ...], Any] = {}

    def ask(self, count: int) -> list[dict[str, Value]]:
        chosen: list[dict[str, Value]] = []
        repeated = 0
        while len(chosen) < count and len(self._asked) < self._most:
            if repeated >= _REPEATED:
                self._study.enqueue_trial(self._untried())
            trial = self._study.ask(self._places)
            places = tuple(trial.params[name] for name in self._allowed)
            if places in self._asked:
                self._study.tell(trial, state=self._duplicate)
                repeated += 1
                continue
            self._asked[places], repeated = trial, 0
            chosen.append({name: self._allowed[name][place] for name, place in zip(self._allowed, places)})
        return chosen

    def _untried(self) -> dict[str, int]:
        """A choice at random that was not asked for yet."""
        while True:
            places = {name: self._random.randrange(len(values)) for name, values in self._allowed.items()}
            if tuple(places.values()) not in self._asked:
                return places

    def tell(self, values: Mapping[str, Value], speedup: float | None) -> None:
        """What a choice came to; None for one that is not ok."""
        # By their texts: 1 and True are two values.
        places = tuple(list(map(repr, allowed)).index(repr(values[name])) for name, allowed in self._allowed.items())
        self._study.tell(self._asked[places], speedup or 0.0)


def _is_scale(values: list[Value]) -> bool:
    """Whether these are numbers in order, one way or the other."""
    numbers = all(isinstance(each, (int, float)) and not isinstance(each, bool) for each in values)
    return numbers and values in (sorted(values), sorted(values, reverse=True))


@dataclass(frozen=True)
class Trial:
    """Values, and what the judge said of the candidate with them."""

    values: Mapping[str, Value]
    record: Record

    @property
    def speedup(self) -> float | None:
        return self.record.speedup if self.record.status is Status.OK else None


@dataclass(frozen=True)
class Tuned:
    """All trials in their order, then the best and the defaults, whatever their verdict, as they were judged again."""

    trials: Sequence[Trial]
    again: Sequence[Trial]
    best: Trial
    default: Trial | None
    csv_path: Path | None

    @property
    def why_not_written(self) -> str | None:
        """Why the best does not count from now on; None if its interval is above the defaults', or they are wrong."""
        best, default = self.best.record, None if self.default is None else self.default.record
        if self.best is self.default:
            return "the defaults are the best"
        if default is not None and default.status in WRONG:
            return None
        if default is None or default.status is not Status.OK or default.speedup_hi is None:
            return "the defaults could not be timed, so nothing says that these are better"
        if best.speedup_lo is None or best.speedup_lo <= default.speedup_hi:
            return "its interval reaches that of the defaults, so it may be no better"
        return None


def tune(
    problem: Problem, candidate: Candidate, settings: Settings, trials: int, progress: Progress,
    judges: AbstractContextManager[Judging],
) -> Tuned:
    """Search the `PARAMETERS` of `candidate`, read untuned, in so many `trials`. Raises HarnessError if none is ok."""
    allowed = values_of(candidate)
    if allowed is None:
        hint = 'Write PARAMETERS = {"BM": [64, 128]} at its left margin, and take PARAMETERS["BM"][0] as the value'
        raise InputError("declares no PARAMETERS to tune", shown(candidate.path), hint=hint)
    search = search_for(allowed, trials)
    made: list[Trial] = []
    with judges as referee:
        def judged(choices: Sequence[Mapping[str, Value]]) -> list[Trial]:
            variants = [candidate.with_parameters(values) for values in choices]
            records = {each.record.source_hash: each.record for each in referee.judge(problem, variants, settings)}
            return [Trial(values, records[variant.source_hash]) for values, variant in zip(choices, variants)]

        while choices := search.ask(referee.at_once):
            for trial in judged(choices):
                search.tell(trial.values, trial.speedup)
                made.append(trial)
                told = f"{trial.speedup:.3f}×" if trial.speedup else trial.record.status.value
                progress.note(f"trial {len(made)}: {trial.record.parameters}: {told}")
        fit = sorted((trial for trial in made if trial.speedup), key=lambda trial: -trial.speedup)
        if not fit:
            records = [trial.record for trial in made]
            kind = NothingToRun if nothing_ran(records) else HarnessError
            raise kind(f"none of {len(made)} choices of PARAMETERS is ok; with the defaults: {records[0].reason}")
        finalists = fit[:_JUDGED_AGAIN]
        finalists += [trial for trial in made if dict(trial.values) == defaults(allowed) and trial not in finalists]
        progress.note("the best once more")
        again = judged([trial.values for trial in finalists])
        csv_path = referee.csv_of(problem, settings)
    sure = [trial for trial in again if trial.speedup] or fit[:_JUDGED_AGAIN]
    default = next((trial for trial in again if dict(trial.values) == defaults(allowed)), None)
    return Tuned(made, again, max(sure, key=lambda trial: trial.speedup), default, csv_path)


def yaml_text(candidate: Candidate, tuned: Tuned, command: str) -> str:
    """The file beside the candidate: the values, and where they come from."""
    import yaml

    record, default = tuned.best.record, tuned.default and tuned.default.speedup
    body = {"parameters": dict(tuned.best.values), "tuned": {
        "device": record.device_name, "problem": record.problem, "sizes": record.sizes, "mode": record.mode,
        "trials": len(tuned.trials), "speedup": round(record.speedup, 4),
        "speedup_of_defaults": None if default is None else round(default, 4), "utc": record.utc,
        "source_hash": candidate.source_hash,
    }}
    head = f"# The values of PARAMETERS that count in {candidate.path.name}; without this file the first of each do.\n"
    return f"{head}# Written by: {command}\n{yaml.safe_dump(body, sort_keys=False, allow_unicode=True)}"


def write(path: Path, text: str) -> None:
    """Put `text` into `path` whole. Raises InputError when the disk refuses."""
    try:
        with replacing(path) as part:
            part.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot be written ({error.strerror or error})", path) from None
