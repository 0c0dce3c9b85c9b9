"""What the judge does while a worker makes a queue that is gated: the last outputs, and the next inputs."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from harness.launch.failures import Failed, failed
from harness.model.verdict import ReasonCode, Status
from harness.timing.probes.schedule import Probe
from harness.timing.rounds import Rounds

# How the log names a segment of the candidate's: one that is timed, or a look.
SEGMENTS = ("A", "early", "inspected", "completed", "valued", "recorded")


@pytest.fixture
def watched(small_regions, scripted, reference_of, settings):
    """`watched(kind, in_worker_us, verify)`: the log of a whole run, in which "making A" and "made A" are around what
    the judge does while the worker makes that queue; with it the launches that were verified, by the number of their A.
    """

    def run(kind="cuda", in_worker_us=None, verify=lambda number: None):
        log, made_by, verified = [], {}, []
        run.log = log
        session, backend = scripted.Session(lambda _: 10.0, log), scripted.Backend(10.0, log, kind)
        session.in_worker_us = in_worker_us
        plain = {"A": session.launch, "I": session.time_reference}

        def around(arm):
            def launch(sets, *, gate, meanwhile=None, **how):
                def work():
                    log.append((f"making {arm}", len(sets), gate))
                    if meanwhile is not None:
                        meanwhile()
                    log.append((f"made {arm}", len(sets), gate))

                if meanwhile is not None and not gate:  # beforehand, as a session does
                    meanwhile()
                    meanwhile = None
                made = plain[arm](sets, gate=gate, meanwhile=work, **how)
                made_by[id(made)] = len(made_by), made  # kept, so that no other gets its number
                return made

            return launch

        session.launch, session.time_reference = around("A"), around("I")

        def judge(sets, made, only=None):
            number = made_by[id(made)][0]
            log.append(("verify", number))
            verified.append(number)
            verify(number)

        reference = reference_of()
        plain_draw = reference.draw

        def draw(*how):
            log.append(("draw",))
            return plain_draw(*how)

        reference.draw = draw
        brief = replace(settings, looks=(4, 6, 8), budget_s=100.0)
        Rounds(session, backend, reference, brief, judge, set()).run()
        return log, verified

    return run


def in_worker(log, step):
    """Of each `step` in the log the arm whose queue is being made, and whether that is gated; None outside."""
    found, making = [], None
    for entry in log:
        if entry[0].startswith("making"):
            making = entry[0][-1], entry[2]
        elif entry[0].startswith("made"):
            making = None
        elif entry[0] == step:
            found.append(making)
    return found


def gated_rounds(log):
    """The log from the first gated queue to the last pair."""
    first = next(at for at, entry in enumerate(log) if entry[0] == "making A" and entry[2])
    last = max(at for at, entry in enumerate(log) if entry[0] == "B")
    return log[first:last]


def test_outputs_are_verified_while_the_first_queue_of_the_next_pair_is_made(watched):
    log, _ = watched(in_worker_us=10.0)
    found = in_worker(gated_rounds(log), "verify")
    within = [each for each in found if each is not None]
    assert {arm for arm, _ in within} == {"A", "I"}
    assert all(gated for _, gated in within)
    assert len(within) >= 6


def test_inputs_of_the_next_pair_are_drawn_while_the_last_queue_of_this_one_is_made(watched):
    log, _ = watched(in_worker_us=10.0)
    assert {each for each in in_worker(gated_rounds(log), "draw") if each is not None} == {("A", True), ("I", True)}


def test_nothing_is_done_beside_a_queue_that_runs_at_once(watched):
    log, _ = watched(kind="cpu")
    assert set(in_worker(log, "verify")) == {None} and set(in_worker(log, "draw")) == {None}


@pytest.mark.parametrize("what", list(Probe))
@pytest.mark.parametrize(("kind", "in_worker_us"), [("cuda", None), ("cuda", 10.0), ("cpu", None)])
def test_as_much_is_drawn_for_a_look_as_for_the_segment_whose_place_it_takes(watched, monkeypatch, kind, in_worker_us, what):
    """Before its queue where that is not gated, and else beside it: whoever waits for it sees how long that takes."""

    def drawn_for(looks):
        monkeypatch.setattr(
            "harness.timing.rounds.ProbeSchedule", lambda kinds: SimpleNamespace(before=looks.get, last=lambda: what)
        )
        log, _ = watched(kind, in_worker_us)
        found, draws, is_making = [], 0, False
        for entry in log:
            if entry[0] == "draw":
                draws += is_making or kind == "cpu"
            elif entry[0].startswith("making"):
                is_making, draws = True, draws if kind == "cpu" else 0
            elif entry[0].startswith("made"):
                is_making = False
            elif entry[0] in SEGMENTS:
                found.append(("L" if entry[0] != "A" else "A", draws))
                draws = 0
        return found

    def first_of_each(found):  # a look at open inputs is two segments on a CPU, the first of which takes the place
        return [each for before, each in zip([("A", 0), *found], found) if (before[0], each[0]) != ("L", "L")]

    plain, places = first_of_each(drawn_for({})), (0, 3, 5, 6)
    before = len(plain) - 2 * 8 - 1 - 5  # eight rounds, the last look, the single calls
    plain = [draws for _, draws in plain[before:]]
    looked = first_of_each(drawn_for(dict.fromkeys(places, what)))[before:]
    assert "".join(arm for arm, _ in looked).startswith("LAAALAALALAA")
    at_places = [draws for arm, draws in looked if arm == "L"]
    assert at_places == [plain[place] for place in (*places, 0)], "the last stands at the start of an even round"


def test_without_eager_in_the_worker_no_arm_follows_the_others_checking_more_often(watched, monkeypatch):
    looks = SimpleNamespace(before=lambda segment: None, last=lambda: Probe.FLUSH)
    monkeypatch.setattr("harness.timing.rounds.ProbeSchedule", lambda kinds: looks)
    log, _ = watched()
    rounds = [entry[0] for entry in gated_rounds(log) if entry[0] in ("verify", "made A", "B")]
    after = [rounds[at + 1] for at, step in enumerate(rounds[:-1]) if step == "verify" and rounds[at + 1] != "verify"]
    assert abs(after.count("B") - after.count("made A")) <= 3  # those of the warm-up follow A
    assert len(after) >= 8


def test_each_queue_is_verified_once_and_before_the_next_outputs_are_taken(watched):
    for in_worker_us in (None, 10.0):
        log, verified = watched(in_worker_us=in_worker_us)
        queues = [entry[0] for entry in log if entry[0] in SEGMENTS]
        # The one launch whose inputs were completed late is verified apart from the others.
        assert len(verified) == len(queues) + queues.count("completed")
        taken = None
        for entry in log:
            if entry[0] in SEGMENTS:
                assert taken is None
                taken = entry
            elif entry[0] == "verify":
                taken = None


@pytest.mark.parametrize("in_worker_us", [None, 10.0])
@pytest.mark.parametrize("number", [0, 3, 9, 16])
def test_a_wrong_output_ends_the_rounds_wherever_it_is_found(watched, number, in_worker_us):
    def verify(found):
        if found >= number:
            raise failed(Status.INCORRECT, ReasonCode.WRONG_VALUES, f"number {found}")

    with pytest.raises(Failed) as caught:
        watched(in_worker_us=in_worker_us, verify=verify)
    assert caught.value.verdict.status is Status.INCORRECT


def test_what_is_wrong_with_the_last_pair_is_found_before_anything_is_estimated(watched):
    def pairs():  # not the looks, which come by chance, nor the single calls at the end
        return sum(entry[0] == "A" and entry[1] > 1 for entry in watched.log)

    watched(in_worker_us=10.0)
    all_pairs = pairs()

    def verify(found):
        if pairs() == all_pairs:
            raise failed(Status.INCORRECT, ReasonCode.WRONG_VALUES, "the last")

    with pytest.raises(Failed, match="the last"):
        watched(in_worker_us=10.0, verify=verify)
    assert not any(entry[0] == "A" and entry[1] == 1 for entry in watched.log)


@pytest.mark.parametrize("arm", ["A", "I"])
def test_what_was_found_wrong_meanwhile_comes_before_the_death_in_the_queue_under_way(
    small_regions, scripted, reference_of, settings, arm
):
    session, backend = scripted.Session(lambda _: 10.0, []), scripted.Backend(10.0, [], "cuda")
    session.in_worker_us, worked = 10.0, []
    plain = {"A": session.launch, "I": session.time_reference}

    def wrong(sets, made, only=None):
        if worked:
            raise failed(Status.INCORRECT, ReasonCode.WRONG_VALUES, "wrong before")

    def dying(own):
        def launch(sets, *, gate, meanwhile=None, **how):
            if gate and meanwhile is not None and own == arm:
                worked.append(own)
                meanwhile()
                raise failed(Status.CRASHED, ReasonCode.SIGNAL, "killed")
            return plain[own](sets, gate=gate, meanwhile=meanwhile, **how)

        return launch

    session.launch, session.time_reference = dying("A"), dying("I")
    with pytest.raises(Failed, match="wrong before" if arm == "A" else "killed|wrong before") as caught:
        Rounds(session, backend, reference_of(), settings, wrong, set()).run()
    if arm == "A":
        assert caught.value.__cause__.verdict.status is Status.CRASHED


@pytest.mark.parametrize("number", [4, 5])
def test_a_wrong_output_ends_the_pair_in_which_it_is_found(watched, number):
    found_at = []

    def verify(found):
        if found == number:  # of the first rounds, before any look
            found_at.append(len(watched.log))
            raise failed(Status.INCORRECT, ReasonCode.WRONG_VALUES, "wrong")

    with pytest.raises(Failed, match="wrong"):
        watched(in_worker_us=10.0, verify=verify)
    later = [entry[0] for entry in watched.log[found_at[0]:]]
    assert later.count("A") <= 1 and later.count("B") <= 1
