"""Which values are tried next: all combinations where there are few, else those that Optuna's sampler proposes.

Knows nothing of kernels: it is told the speedup of each trial, or that it has none.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Mapping
from typing import Any, Protocol

from harness.model.errors import NothingToRun
from harness.model.files.parameters import Value, combinations

_SEED = 0  # two searches of the same trials propose the same
_REPEATED = 5  # proposals that were tried before, after which one is drawn at random
_FIRST_AT_RANDOM = 8


class Search(Protocol):
    """Proposes values and hears what they were worth."""

    def ask(self, count: int) -> list[dict[str, Value]]:
        """Up to `count` choices of values that were not tried before; none when the search is over."""

    def tell(self, values: Mapping[str, Value], speedup: float | None) -> None:
        """What a choice came to; None for one that is not ok."""


def search_for(allowed: Mapping[str, list[Value]], trials: int) -> Search:
    """Every combination where `trials` suffice for them, else Optuna's. Raises NothingToRun without Optuna."""
    if math.prod(map(len, allowed.values())) <= trials:
        return Exhaustive(allowed)
    return Sampled(allowed, trials)


class Exhaustive:
    """All combinations in order, the defaults first."""

    def __init__(self, allowed: Mapping[str, list[Value]]) -> None:
        self._left = combinations(allowed)

    def ask(self, count: int) -> list[dict[str, Value]]:
        return list(itertools.islice(self._left, count))

    def tell(self, values: Mapping[str, Value], speedup: float | None) -> None:
        """All are tried, whatever they are worth."""


class Sampled:
    """Optuna's tree-structured Parzen estimator over the lists of values; the defaults are its first trial."""

    def __init__(self, allowed: Mapping[str, list[Value]], trials: int) -> None:
        try:
            import optuna
        except ImportError:
            count = math.prod(map(len, allowed.values()))
            raise NothingToRun(
                f"Searching {count} combinations in {trials} trials takes Optuna, and it is not installed. Type "
                f"pip install optuna, or --trials {count} to try them all"
            ) from None
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._allowed, self._trials = allowed, trials
        self._possible = math.prod(map(len, allowed.values()))
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
        while len(chosen) < count and len(self._asked) < min(self._trials, self._possible):
            if repeated >= _REPEATED:
                self._study.enqueue_trial(self._untried())
            trial = self._study.ask(self._places)
            places = tuple(trial.params[name] for name in self._allowed)
            if places in self._asked:
                self._study.tell(trial, state=self._duplicate)
                repeated += 1
                continue
            self._asked[places] = trial
            chosen.append({name: self._allowed[name][place] for name, place in zip(self._allowed, places)})
            repeated = 0
        return chosen

    def _untried(self) -> dict[str, int]:
        """A choice at random that was not asked for yet."""
        while True:
            places = {name: self._random.randrange(len(values)) for name, values in self._allowed.items()}
            if tuple(places.values()) not in self._asked:
                return places

    def tell(self, values: Mapping[str, Value], speedup: float | None) -> None:
        # By their texts: 1 and True are two values.
        places = tuple(
            [repr(each) for each in allowed].index(repr(values[name])) for name, allowed in self._allowed.items()
        )
        trial = self._asked[places]
        self._study.tell(trial, speedup or 0.0)


def _is_scale(values: list[Value]) -> bool:
    """Whether these are numbers in order, one way or the other."""
    numbers = all(isinstance(each, (int, float)) and not isinstance(each, bool) for each in values)
    return numbers and values in (sorted(values), sorted(values, reverse=True))
