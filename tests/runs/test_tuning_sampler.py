"""Which values are tried: each once, the defaults first, and more often what was worth more."""

from __future__ import annotations

import sys

import pytest

from harness.model.errors import NothingToRun
from harness.model.files.parameters import combinations, defaults
from harness.runs.tuning import Exhaustive, Sampled, search_for

FEW = {"A": [1, 2], "B": ["x", "y", "z"]}
MANY = {"A": list(range(8)), "B": list(range(8)), "C": ["p", 2, True, 1.5]}


def test_few_combinations_are_all_tried_and_need_no_optimiser(monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    search = search_for(FEW, 6)
    assert isinstance(search, Exhaustive)
    found = search.ask(4) + search.ask(4)
    assert len(found) == 6 and len({str(each) for each in found}) == 6 and found[0] == defaults(FEW)
    assert search.ask(4) == []


def test_without_optuna_many_combinations_are_refused_with_what_to_type(monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(NothingToRun, match="--trials 256 to try them all"):
        search_for(MANY, 20)


def worth(values) -> float | None:
    if values["A"] == 3:
        return None  # does not run
    return 1.0 + values["A"] + 8 * values["B"] / 7 + (values["C"] == "p")


@pytest.fixture(scope="module")
def searched():
    pytest.importorskip("optuna")
    search, tried = search_for(MANY, 60), []
    assert isinstance(search, Sampled)
    while choices := search.ask(4):
        for values in choices:
            search.tell(values, worth(values))
            tried.append(values)
    return tried


def test_no_choice_is_tried_twice_and_the_defaults_are_first(searched):
    assert searched[0] == defaults(MANY)
    assert len(searched) == 60 == len({str(each) for each in searched})
    assert all(values["C"] in MANY["C"] for values in searched)


def test_what_was_worth_more_is_looked_at_more_closely(searched):
    known = [worth(each) or 0.0 for each in searched]
    assert sum(known[10:30]) / 20 > sum(known[:10]) / 10 + 2
    assert max(known) == 17


def test_a_search_proposes_the_same_again_when_it_hears_the_same():
    pytest.importorskip("optuna")
    first, second = (search_for(MANY, 20).ask(8) for _ in range(2))
    assert first == second


def test_more_trials_than_combinations_end_when_all_were_tried():
    pytest.importorskip("optuna")
    search = Sampled(FEW, 100)
    found = []
    while choices := search.ask(3):
        for values in choices:
            search.tell(values, 1.0)
        found += choices
    assert sorted(map(str, found)) == sorted(map(str, combinations(FEW)))
