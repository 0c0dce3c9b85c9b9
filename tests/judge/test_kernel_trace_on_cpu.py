"""Whose the calls on a CPU were, by what a worker lists of some that were watched."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace

import pytest

from harness.attribution import code_regions
from harness.attribution.code_regions import CodeSeen
from harness.judge import kernel_trace
from harness.judge.judgement import Prepared
from harness.judge.kernel_trace import trace
from harness.launch import failures
from harness.model.device_limits import CPU
from harness.model.verdict import ReasonCode, Status
from harness.timing.timings import Timing

TIMED_US = 1000.0


def listing(own_share, **others):
    """What is listed of a call of 1000 µs, so much of it in its extension and the rest in a product."""
    return {
        "operators": [{"name": "aten::mm", "us": TIMED_US * (1 - own_share)}], "own_us": TIMED_US * own_share,
        "total_us": TIMED_US, "others_us": 0.0, "others_began": False, "called_back": False, "idle_us": 0.0, "addresses": [],
        **others,
    }


def all_its_own(reference, own_files):
    return CodeSeen(Counter({code_regions.OWN: 100}), Counter(), 100.0), None


@pytest.fixture
def traced(tmp_path, monkeypatch):
    """`traced(*listings, text=…, is_built=…)`: what is made of these in turn, and how many were not asked for. A failure
    among them is raised. `text` is the candidate's, which has an extension where it `is_built`.
    """
    monkeypatch.setattr(kernel_trace, "judge_launch", lambda *_: None)
    monkeypatch.setattr(kernel_trace.check, "decide", lambda *_: None)
    monkeypatch.setattr(kernel_trace, "foreign_functions", lambda *paths: [])

    def made_of(*listings, text="", is_built=True):
        left = list(listings)

        def profile(inputs):
            answer = left.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer

        session = SimpleNamespace(
            profile=profile, backend=SimpleNamespace(synchronize=lambda: None, limits=CPU), core_time_beside_us=lambda: 0.0,
            code_watch=SimpleNamespace(seen=all_its_own),
        )
        (tmp_path / "x.py").write_text(text)
        extensions = (tmp_path / "x.so",) if is_built else ()
        prepared = Prepared("x", str(tmp_path / "x.py"), {}, extensions, None, "fp32", "cpp")
        reference = SimpleNamespace(draw=lambda: None, output_specs=())
        timing = Timing(candidate_us=[TIMED_US] * 3, launch_hidden=True)
        return trace(session, reference, prepared, timing), len(left)

    return made_of


@pytest.mark.parametrize(
    "wrong",
    [None, {"total_us": "long"}, {"operators": 7}, {"operators": [7]}, {"addresses": None}, {"total_us": None},
     {"own_us": 10**400}, {"idle_us": []}, {"operators": [{"name": "aten::mm", "us": "long"}]}],
)
def test_a_listing_that_is_none_is_unknown(traced, wrong):
    found, _ = traced({} if wrong is None else listing(0.99, **wrong), is_built=False)
    assert found.kind == "unknown"
    assert found.notes == ("the profiler's listing could not be read",)


@pytest.mark.parametrize("error", [KeyError, TypeError, ValueError, AttributeError])
def test_an_exception_of_the_judges_own_is_no_fault_of_a_listing(traced, monkeypatch, error):
    def defect(*_, **__):
        raise error("of the judge's own")

    monkeypatch.setattr(kernel_trace, "kind_on_cpu", defect)
    with pytest.raises(error, match="of the judge's own"):
        traced(listing(0.99), is_built=False)


@pytest.mark.parametrize(
    ("own_shares", "kind"),
    [([0.1, 0.01, 0.02], "library"), ([0.3, 0.01, 0.31], "mixed"), ([0.5, 0.6, 0.99], "mixed"),
     ([0.9, 0.99, 0.98], "custom"), ([0.01], "library"), ([0.99], "custom"),
     ([0.3, failures.failed(Status.CRASHED, ReasonCode.EXITED, "gone")], "mixed"), ([0.3, {}], "mixed"),
     ([0.3, 0.01, {}], "library")],
    ids=["a pause in its own part", "and in the library's", "in both", "in the library's", "a library's at once",
         "its own at once", "then it died", "then a listing that is none", "of two the lesser"],
)
def test_of_three_calls_that_come_out_as_mixed_the_middle_one_counts(traced, own_shares, kind):
    found, left = traced(*[listing(share) if isinstance(share, float) else share for share in own_shares])
    assert (found.kind, left) == (kind, 0)


@pytest.mark.parametrize(("text", "kind"), [("CODE = [1, 2]", "custom"), (f"CODE = {list(range(512))}", "unknown")])
def test_of_a_source_that_may_carry_machine_code_nothing_counts_as_own(traced, text, kind):
    found, _ = traced(listing(0.99), text=text)
    assert found.kind == kind
    assert any("its source carries as bytes" in note for note in found.notes) == (kind == "unknown")


def test_a_call_that_a_pause_made_longer_is_watched_again_and_one_that_always_takes_longer_is_unknown(traced):
    paused = [listing(0.99, total_us=9000.0) for _ in range(5)]
    found, left = traced(*paused[:2], listing(0.99))
    assert (found.kind, left) == ("custom", 0)
    found, left = traced(*paused[2:])
    assert (found.kind, left) == ("unknown", 0)
    assert "when it was traced it took 9000.0 µs, where a timed call took 1000.0 µs" in found.notes[-1]


@pytest.mark.parametrize(
    ("library_us", "is_built", "kind", "left"),
    [([400.0, 900.0, 900.0], False, "library", 0), ([400.0, 900.0, 400.0], False, "unknown", 0),
     ([900.0, 400.0], False, "library", 1), ([400.0, 950.0, 950.0], True, "library", 0)],
    ids=["a pause", "no pause", "a library's at once", "a pause beside an extension"],
)
def test_nothing_is_unknown_for_one_pause(traced, library_us, is_built, kind, left):
    listings = [listing(0.0, operators=[{"name": "aten::mm", "us": us}]) for us in library_us]
    found, not_asked = traced(*listings, is_built=is_built)
    assert (found.kind, not_asked) == (kind, left)
