"""Which problem of a suite has which device; no cluster is there."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest

from harness.model.errors import HarnessError
from harness.runs.cluster import pool as pools
from harness.runs.cluster import run
from harness.runs.cluster.link import Seat
from harness.runs.cluster.pool import OneSeat, Pool
from harness.runs.cluster.run import judges_for

FIRST, SECOND, THIRD = (Seat(name, name, 0, "H100") for name in ("first", "second", "third"))
OTHER = Seat("other", "other", 0, "A100")


@pytest.fixture(autouse=True)
def _soon(monkeypatch):
    monkeypatch.setattr(pools, "_POLL_S", 0.01)


@pytest.fixture
def there():
    return [FIRST, SECOND]


@pytest.fixture
def pool(there):
    return Pool(SimpleNamespace(kind="cuda", seats=lambda: list(there)))


@pytest.fixture
def stopped():
    return threading.Event()


def test_a_problem_of_a_suite_moves_on_from_a_node_that_is_lost(pool, there, stopped):
    there[:] = [FIRST]
    with pool.lease("H100", stopped) as lease:
        assert lease.seats() == lease.seats() == [FIRST]
        with pool.lease("H100", stopped) as other:
            stopped.set()
            assert other.seats() == []  # there is but one, and nobody waits for it any more
        there[:] = [SECOND]
        assert lease.seats() == [SECOND]
    there.clear()
    with pool.lease("H100", threading.Event()) as lease:
        assert lease.seats() == []


def test_a_problem_has_a_device_of_each_model(pool, there, stopped):
    there.append(OTHER)
    assert pool.models() == ["H100", "A100"]
    with pool.lease("H100", stopped) as one, pool.lease("A100", stopped) as another:
        assert (one.seats(), another.seats()) == ([FIRST], [OTHER])


def test_a_device_that_another_command_has_is_given_back_for_the_next_that_comes_free(pool, stopped):
    with pool.lease("H100", stopped) as held:
        with pool.lease("H100", stopped) as ends:
            assert (held.seats(), ends.seats()) == ([FIRST], [SECOND])
            assert held.seats(is_held=True) == [FIRST] and not held.is_alone
        assert held.is_alone
        with pool.lease("H100", stopped) as new:  # who has waited longer is first
            assert not pool.has_given(new)
            assert held.seats(is_held=True) == [SECOND]
            assert new.seats() == [FIRST]
            assert held.seats() == [SECOND]


def test_a_device_of_no_use_is_given_to_nobody(pool, stopped):
    with pool.lease("H100", stopped) as lease:
        lease.seats()
        lease.refuse()
        assert lease.seats() == [SECOND] and pool.seats() == [SECOND]


def test_a_device_that_joins_has_a_judge_too(there):
    link = SimpleNamespace(kind="cuda", seats=lambda: list(there))
    more = judges_for(link, 3, silent=True)
    assert len(more()) == 2 and more() == []
    there.append(THIRD)
    assert len(more()) == 1 and more() == []


def test_fewer_problems_than_devices_have_one_judge_on_all(there):
    more = judges_for(SimpleNamespace(kind="cuda", seats=lambda: list(there)), 1, silent=True)
    assert len(more()) == 1 and more() == []


def test_what_one_model_could_not_judge_is_handed_on_beside_the_rows_of_another(pool, there, monkeypatch):
    there[:] = [FIRST, OTHER]

    def judged(request, link, progress, lease, *_):
        if lease.model == "A100":
            raise HarnessError("no room")
        return [SimpleNamespace(csv_path="h100.csv")]

    monkeypatch.setattr(run, "run", judged)
    judges = run.ClusterJudges(SimpleNamespace(kind="cuda"), pool, silent=True)
    for _ in range(2):
        judges.ask(asked_of(SimpleNamespace(name="tril")))
        assert judges.answer() == ["h100.csv"] and judges.fault == "on A100: no room"
    there[:] = [FIRST]
    judges.ask(asked_of(SimpleNamespace(name="tril")))
    assert judges.answer() == ["h100.csv"] and judges.fault is None


def test_what_is_about_one_device_is_judged_on_no_other(there):
    lease = OneSeat(SimpleNamespace(seats=lambda: list(there)), SECOND)
    assert lease.seats() == lease.seats(is_held=True) == [SECOND]
    there[:] = [FIRST]  # its node is lost
    assert lease.seats() == []
    there[:] = [SECOND]
    lease.refuse()
    assert lease.seats() == []


def asked_of(problem):
    return {"problem": problem, "candidates": [], "device": "cuda", "settings": None, "out_dir": None}
