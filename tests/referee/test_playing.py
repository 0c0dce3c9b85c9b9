"""What is noted of a contestant while it is played."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from harness.device.bench import LocalTimes
from harness.provenance.kinds import Provenance, Span
from harness.provenance.recording import Unproven, Window
from harness.referee import failures, playing
from harness.referee.control import Control
from harness.referee.failures import Failed
from harness.referee.judgement import Judgement
from harness.referee.playing import Play, compilation_notes
from harness.referee.timed import Timing
from harness.statistics import Interval
from harness.verdict import ReasonCode, Status


def test_graphs_that_are_compiled_while_a_baseline_is_timed_are_noted():
    assert compilation_notes("torch.compile", 1, 1) == compilation_notes("eager", 0, 0) == []
    assert compilation_notes("torch.compile", 1, 2) == [
        "torch.compile compiled 1 more graph while it was timed: that is in its times"
    ]
    assert "2 more graphs" in compilation_notes("torch.compile", 3, 5)[0]


def test_a_torch_compile_that_compiled_nothing_is_eager_and_said_to_be():
    assert compilation_notes("torch.compile", 0, 0) == ["torch.compile compiled nothing: what was timed is eager"]


@pytest.fixture
def play(reference_of, settings):
    """`play(kind)`: a `Play` on a device that times nothing, whose `log` has what it asked others for."""

    def make(kind="cuda", open_next=lambda: None):
        log = []

        def local_launches(model, sets, *, hold):
            log.append("eager alone")
            return LocalTimes([1.0] * len(sets), 1.0)

        bench = SimpleNamespace(
            kind=kind, identity=SimpleNamespace(memory_bytes=1 << 40), synchronize=lambda: None,
            release_memory=lambda: log.append("memory released"), local_launches=local_launches,
        )
        made = Play(
            bench, [reference_of()], settings, None, 1, (), lambda: log.append("waited") or [],
            lambda: log.append("next opened") or open_next(),
        )
        made.log, made.reference = log, made._references[0]
        made.reference.truth(made.reference.draw())
        return made

    return make


def test_eager_is_timed_alone_when_no_player_that_waits_is_busy(play):
    found = play()
    found._eager_alone_us(True)
    assert found.log == ["waited", *["eager alone"] * 3]


@pytest.mark.parametrize(("kind", "ready"), [("cuda", True), ("cpu", False)])
def test_as_a_player_goes_the_next_opens_the_device_and_its_checks_are_made_ready(play, kind, ready):
    found = play(kind)
    found._get_on()
    assert found.log == ["next opened"] and bool(found.reference._ready._drawn) is ready


def test_what_goes_wrong_there_is_nothing_of_the_players_that_went(play):
    def refuse():
        raise OSError("no more processes")

    found = play(open_next=refuse)
    found.reference.draw = lambda family: (_ for _ in ()).throw(RuntimeError("out of memory"))
    found._get_on()
    assert found.log == ["next opened", "memory released"] and not found.reference._ready._drawn


def test_whatever_goes_wrong_there_hides_no_verdict(play):
    def lost():
        raise RuntimeError("the device is lost")

    found = play(open_next=lost)
    found._bench.release_memory = lost
    found.reference.draw = lambda family: (_ for _ in ()).throw(RuntimeError("out of memory"))
    found._get_on()
    assert not found.reference._ready._drawn


@pytest.mark.parametrize(("is_baseline", "hidden", "is_control_held", "is_doubted"), [
    (True, True, True, False), (False, True, True, True), (False, False, True, True), (False, False, False, False),
])
def test_a_candidate_whose_rounds_scatter_is_doubted_but_where_the_reference_cannot_be_queued_and_no_baseline_is(
    play, monkeypatch, is_baseline, hidden, is_control_held, is_doubted
):
    found, judgement = play(), Judgement()
    known = Interval(2.0, 1.0, 4.0)
    timing = Timing(
        candidate_us=[1000.0] * 20, baseline_us=[2000.0] * 20, speedup=known, scattered=known, launch_hidden=hidden,
        confidence=0.99,
    )
    control = Control(None, None, 2000.0, is_held=is_control_held)
    monkeypatch.setattr(playing, "Session", lambda *_: SimpleNamespace(stop=lambda _: None))
    monkeypatch.setattr(playing, "Loader", lambda *_: None)
    monkeypatch.setattr(playing, "_reconcile", lambda *_: None)
    traced = Provenance("custom", 1.0, launched=3)
    for step, made in (("_check", None), ("_time", timing), ("_trace", traced), ("_count_kernels", 2)):
        monkeypatch.setattr(found, step, lambda *_, made=made, **__: made)
    contestant = SimpleNamespace(is_baseline=is_baseline, precision_class="fp32")

    def judge():
        found(contestant, lambda: None, judgement, control, lambda _: None, first=True)

    if not is_doubted:
        judge()
        assert judgement.timings == [timing] and judgement.launched == (2 if is_baseline else 3)
        return
    with pytest.raises(Failed, match="only known to lie between 1 and 4"):
        judge()
    assert judgement.timings == []


@pytest.mark.parametrize(("kind", "hidden", "is_baseline", "is_traced"), [
    ("cuda", False, False, True), ("cuda", True, False, False), ("cuda", False, True, False), ("cpu", False, False, False),
])
@pytest.mark.parametrize("is_longer", [True, False])
def test_a_doubted_clock_of_an_unheld_queue_is_settled_by_what_its_kernels_take(
    play, monkeypatch, kind, hidden, is_baseline, is_traced, is_longer
):
    found, traced = play(kind), []
    doubt = failures.failed(Status.UNSURE, ReasonCode.NOISY, "work was done outside the timed window, perhaps")
    doubt.beside_control = True

    def trace(session, kind, reference, contestant, timing):
        traced.append(timing)
        if is_longer:
            raise failures.failed(Status.REJECTED, ReasonCode.CLOCKS_DISAGREE, "its kernels kept the GPU busy for longer")

    monkeypatch.setattr(playing, "trace", trace)
    timing, contestant = Timing(launch_hidden=hidden), SimpleNamespace(is_baseline=is_baseline)
    with pytest.raises(Failed) as ended, found._settled_by_the_profiler(None, contestant, timing):
        raise doubt
    assert traced == [timing] * is_traced
    assert ended.value.verdict.status is (Status.REJECTED if is_traced and is_longer else Status.UNSURE)


def test_what_is_certain_or_of_another_kind_than_the_clocks_is_not_traced_for_that(play, monkeypatch):
    monkeypatch.setattr(playing, "trace", lambda *_: pytest.fail("it was traced"))
    for status, code, beside in (
        (Status.REJECTED, ReasonCode.CLOCKS_DISAGREE, True), (Status.UNSURE, ReasonCode.NOISY, False),
    ):
        known = failures.failed(status, code, "a sentence about it")
        known.beside_control = beside
        with pytest.raises(Failed) as ended, play("cuda")._settled_by_the_profiler(
            None, SimpleNamespace(is_baseline=False), Timing(launch_hidden=False)
        ):
            raise known
        assert ended.value is known


def test_kernels_are_counted_in_a_probe_among_the_rounds_or_else_in_one_more_launch(play, monkeypatch):
    found, timing, asked = play(), Timing(), []
    found._references = [None]
    window = Window(9.0, (Span("tile", 0.0, 4.0), Span("mask", 4.0, 5.0)))
    monkeypatch.setattr(playing, "recorded_launches", lambda *_, **__: asked.append(1) or "one more")
    monkeypatch.setattr(playing, "timed_windows", lambda session, made: [window] if made == "probe" else [])
    timing.recorded = ["probe"]
    assert found._count_kernels(None, timing, None) == 2 and asked == []

    def unproven(session, made):
        raise Unproven("the listing is cut off")

    monkeypatch.setattr(playing, "timed_windows", unproven)
    assert found._count_kernels(None, Timing(), None) == 0 and asked == [1]
