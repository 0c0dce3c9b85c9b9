"""Who judges which job as devices come and go: no job is lost, none waits for ever, and none ends device after device."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace
from io import StringIO
from itertools import islice, repeat
from typing import ClassVar

import pytest
from fake_executors import CPU, FakeExecutors, answer_to
from listening import Listening

from harness.model.errors import HarnessError
from harness.report.progress import LiveProgress
from harness.runs.cluster import dispatch
from harness.runs.cluster.dispatch import AHEAD
from harness.runs.cluster.referees import Job

pytestmark = pytest.mark.timeout(60)
SOURCE = "import torch\n\n\nclass ModelNew(torch.nn.Module):\n    pass\n"


def job(name, **words):
    return Job("tril_matmul", f"{SOURCE}# {name}\n", name=name, config="quick", **words)


def right(place, asked):
    return answer_to(asked)


def losing(victim, times):
    """A judge that is lost over `victim`, so many times."""
    left = [times]

    def judge(place, asked):
        if asked["candidate"]["name"] == victim and left[0]:
            left[0] -= 1
            return "gone", "ended by SIGKILL"
        return answer_to(asked)

    return judge


class PretendBuilds:
    """Builds that are there at once; of all that are made, `made` is told."""

    made: ClassVar[list[PretendBuilds]] = []
    waiting = 0

    def __init__(self, *_, on_ready, **__):
        self.is_paused, self.is_idle, self.on_ready = False, False, on_ready
        self.made.append(self)

    def add_as(self, key, candidate):
        self.on_ready(key)

    def is_ready(self, key):
        return True

    def result(self, key):
        return None

    def look(self):
        self.is_idle = self.is_paused  # what had begun has ended

    def give_up(self, key):
        """It is there."""

    def close(self):
        """Nothing is left to give up."""


class DoubtingPlaces(FakeExecutors):
    """Judges on GPUs of which that of a job called "doubtful" doubts a clock, and answers or `is_lost` once it is told."""

    def __init__(self, *, is_lost):
        self.doubting, self.is_lost, self.seen = {}, is_lost, []
        super().__init__(self._judged, [replace(CPU, kind="cuda", sm="9.0", uuid=f"GPU-{number}") for number in range(2)])

    def _judged(self, place, asked):
        if asked["candidate"]["name"] == "doubtful" and not self.doubting:
            self.doubting[place] = asked
            return "until quiet", True
        self.seen.append((asked["candidate"]["name"], asked["quiet"], [each.is_paused for each in PretendBuilds.made]))
        return answer_to(asked)

    def send(self, number, said):
        if said == "quiet":
            self.seen.append(("quiet", None, [each.is_paused for each in PretendBuilds.made]))
            asked = self.doubting[number]
            self.say(number, *(("gone", "ended by SIGKILL") if self.is_lost else answer_to(asked)))
        return super().send(number, said)


@pytest.mark.parametrize("is_lost", [False, True])
def test_no_build_begins_while_a_clock_is_doubted_and_they_go_on_when_its_judge_has_answered_or_is_lost(
    opened, monkeypatch, is_lost
):
    monkeypatch.setattr(dispatch, "ClusterBuilds", PretendBuilds)
    monkeypatch.setattr(PretendBuilds, "made", [])
    places = DoubtingPlaces(is_lost=is_lost)
    judges = opened(places)
    judges.submit(job("doubtful")).result(20)
    [builds] = PretendBuilds.made
    judges.submit(job("after")).result(20)
    assert places.seen[0] == ("quiet", None, [True])
    assert places.seen[-1] == ("after", False, [False]), "compilers may run again, and are said to"
    assert not builds.is_paused


def test_a_job_over_which_a_device_is_lost_is_judged_once_more_and_its_record_says_so(opened):
    places = FakeExecutors(losing("victim", 1))
    answers = {each.name: found for each, found in opened(places).map(map(job, ("victim", "other")))}
    assert {name: found.record.status.value for name, found in answers.items()} == {"victim": "checked", "other": "checked"}
    assert "the judge on node" in answers["victim"].record.warnings and "SIGKILL" in answers["victim"].record.warnings
    assert answers["other"].record.warnings is None
    assert len({place for place, name in places.jobs if name == "victim"}) == 2


def test_a_job_over_which_two_devices_are_lost_has_that_for_its_record_and_meets_no_third(opened):
    places = FakeExecutors(losing("killer", 9), [CPU] * 4)
    names = ["killer", *(f"c{number}" for number in range(20))]
    answers = {each.name: found.record for each, found in opened(places).map(map(job, names))}
    lost = answers.pop("killer")
    assert (lost.status.value, lost.reason_code.value, lost.blame) == ("skipped", "device_lost", "machine")
    assert "lost twice" in lost.reason
    assert {each.status.value for each in answers.values()} == {"checked"} and len(answers) == 20
    assert Counter(name for _, name in places.jobs) == Counter(dict.fromkeys(names, 1)) + Counter(["killer"])
    assert len(places.open) == 2


def test_a_job_that_did_not_reach_its_judge_is_tried_again_and_its_device_goes_on(opened):
    left = ["a build was lost with its node"]
    places = FakeExecutors(lambda place, asked: ("unsent", left.pop()) if left else answer_to(asked), [CPU])
    answers = [found.record for _, found in opened(places).map(map(job, "ab"))]
    assert {each.status.value for each in answers} == {"checked"} and len(places.jobs) == 3
    assert [each.warnings for each in answers if each.warnings] == ["judged at a second try: a build was lost with its node"]


def test_when_all_devices_are_gone_every_job_hears_of_it(opened):
    answers = [found for _, found in opened(FakeExecutors(lambda *_: ("gone", "ended by SIGKILL"))).map(map(job, "abcde"))]
    words = [str(each) if isinstance(each, HarnessError) else each.record.reason for each in answers]
    assert len(words) == 5 and all("SIGKILL" in each for each in words)
    assert sum(isinstance(each, HarnessError) for each in answers) >= 4  # one may have met both devices


def test_an_answer_that_is_none_ends_the_judges_and_leaves_nobody_waiting(opened):
    def judge(place, asked):
        return ("answer", asked["number"], {"no": "record"}, {}, None)

    with pytest.raises(HarnessError, match="TypeError"):
        opened(FakeExecutors(judge)).submit(job("a")).result(30)


def test_a_job_that_could_not_be_judged_has_words_for_its_answer_and_the_device_goes_on(opened):
    def judge(place, asked):
        if asked["candidate"]["name"] == "bad":
            return "answer", asked["number"], None, (2, "no such size"), None
        return answer_to(asked)

    answers = {each.name: found for each, found in opened(FakeExecutors(judge, [CPU])).map(map(job, ("bad", "good")))}
    assert str(answers["bad"]) == "no such size" and answers["good"].record.status.value == "checked"


def stage(places, place, asked):
    places.say(place, "stage", asked["candidate"]["name"], "timing")


@pytest.mark.parametrize("said", [("gone", "ended by SIGKILL"), ("answer", None, (2, "no such size"), None)])
def test_no_line_stays_on_the_screen_of_what_was_lost_or_could_not_be_judged(opened, said):
    told = LiveProgress(StringIO())

    def judge(place, asked):
        stage(places, place, asked)
        is_bad = asked["candidate"]["name"] == "bad"
        return ((said[0], asked["number"], *said[1:]) if said[0] == "answer" else said) if is_bad else answer_to(asked)

    places = FakeExecutors(judge, [CPU] * 3)
    found = {each.name: answer for each, answer in opened(places, told).map(map(job, ("bad", "good")))}
    assert len(found) == 2 and told._at_work == {}


def test_the_row_of_what_was_lost_twice_is_told_with_its_device_and_all_together_are_counted(opened):
    told = Listening()
    judges = opened(FakeExecutors(losing("killer", 9), [CPU] * 3), told)
    list(judges.map(map(job, ("killer", *"abc"))))
    assert all(device for device, _ in told.outcomes) and len(told.outcomes) == 4
    assert len(told.cleared) == 2
    judges.close()
    assert (told.totals[-1]["of"], told.totals[-1]["builds"]) == (4, 0)
    assert max(each["judged"] for each in told.totals) == 4 and max(each["devices"] for each in told.totals) == 3


def test_what_is_not_judged_when_they_are_closed_hears_of_it(opened):
    judges = opened(FakeExecutors(lambda *_: None))
    waiting = judges.submit(job("a"))
    judges.close()
    with pytest.raises(HarnessError, match="closed"):
        waiting.result(30)


def test_a_device_that_is_opened_later_takes_part(opened):
    places = FakeExecutors(lambda place, asked: answer_to(asked) if place else None)
    judges = opened(places)
    answers = [judges.submit(job(name)) for name in "ab"]
    places.opened(CPU)
    places.say(0, "gone", "lost its node")
    assert {each.result(30).record.status.value for each in answers} == {"checked"}


def test_other_versions_are_told_and_builds_for_one_pytorch_go_to_no_other(opened):
    told = Listening()
    others = [CPU, replace(CPU, driver="570.1"), replace(CPU, torch="2.12.0")]
    judges = opened(FakeExecutors(right, others), told)
    list(judges.map(map(job, "abcdef")))
    assert [note.partition(" has ")[2] for note in told.notes] == [
        "driver 570.1 where another Pretended CPU has None: each record names its own",
        "driver None where another Pretended CPU has 570.1; torch 2.12.0 where another Pretended CPU has 2.13.0: "
        "each record names its own",
    ]
    assert sorted(len(each.queue.judges) for each in judges._dispatcher._models.values()) == [1, 2]


def test_no_more_is_taken_than_keeps_the_devices_busy_be_it_equal_or_not(opened):
    taken = []

    def endless(names):
        for name in names:
            taken.append(name)
            yield job(name)

    judges = opened(FakeExecutors(right))
    for names in (map(str, range(10**9)), repeat("equal")):
        assert len(list(islice(judges.map(endless(names)), 3))) == 3
        assert len(taken) <= 3 + 2 * AHEAD
        taken.clear()


def test_of_equal_sources_one_is_judged_and_each_has_the_answer_under_its_own_name(opened):
    places = FakeExecutors(right)
    source = job("a").source
    jobs = [job("a"), *(replace(job("a"), name=name) for name in ("b", None)), Job("tril_matmul", source + "#", config="quick")]
    found = {each: answer.record.candidate for each, answer in opened(places).map(jobs)}
    assert list(map(found.get, jobs)) == ["a", "b", "candidate", "candidate"]
    assert len(places.jobs) == 2


def test_a_file_equals_its_text_and_another_file_of_the_same_whatever_they_are_called(opened, tmp_path):
    paths = [tmp_path / place / f"{name}.py" for place, name in (("one", "a"), ("two", "a"), ("two", "b"))]
    for path in paths:
        path.parent.mkdir(exist_ok=True)
        path.write_text(SOURCE)
    places = FakeExecutors(right)
    jobs = [Job("tril_matmul", source, config="quick") for source in (*paths, SOURCE)]
    found = {each: answer.record.candidate for each, answer in opened(places).map(jobs)}
    assert list(map(found.get, jobs)) == ["a", "a", "b", "candidate"] and len(places.jobs) == 1


def test_what_reads_beside_its_file_equals_only_what_finds_the_same_there(opened, tmp_path):
    paths = [tmp_path / place / "mine.py" for place in ("half", "double", "half again")]
    for path in paths:
        path.parent.mkdir()
        path.write_text(f"from parts import factor\n{SOURCE}")
        (path.parent / "parts.py").write_text(f"factor = '{path.parent.name.split()[0]}'\n")
    places = FakeExecutors(right)
    assert len(list(opened(places).map(Job("tril_matmul", path, config="quick") for path in paths))) == 3
    assert len(places.jobs) == 2
    (tmp_path / "half" / "parts.py").write_text("factor = 3\n")
    list(opened(again := FakeExecutors(right)).map(Job("tril_matmul", path, config="quick") for path in paths))
    assert len(again.jobs) == 3


def test_while_one_is_under_way_its_equals_wait_for_its_answer_and_later_ones_are_judged_anew(opened):
    held, places = [], FakeExecutors(lambda place, asked: held.append(asked))
    judges = opened(places)
    answers = [judges.submit(replace(job("a"), name=name)) for name in "ab"]
    while not held:
        time.sleep(0.001)
    answers.append(judges.submit(replace(job("a"), name="c")))
    places.say(places.jobs[0][0], *answer_to(held.pop()))
    assert [each.result(30).record.candidate for each in answers] == ["a", "b", "c"] and len(places.jobs) == 1
    again = judges.submit(job("a"))
    while not held:
        time.sleep(0.001)
    places.say(places.jobs[-1][0], "answer", held.pop()["number"], None, (2, "no such size"), None)
    with pytest.raises(HarnessError, match="no such size"):
        again.result(30)


def test_a_file_under_another_name_has_it_in_its_record(opened, tmp_path):
    (tmp_path / "mine.py").write_text(SOURCE)
    judges = opened(FakeExecutors(right))
    for name, recorded in ((None, "mine"), ("mine", "mine"), ("other", "other")):
        assert judges.evaluate("tril_matmul", tmp_path / "mine.py", name=name, config="quick").record.candidate == recorded


@pytest.mark.parametrize(("words", "said"), [
    ({"mode": "backward"}, "there is no mode 'backward'"), ({"config": "slow"}, "slow"), ({"baseline": "none.py"}, "none.py"),
])
def test_what_is_wrong_with_a_job_is_said_before_a_device_meets_it(opened, words, said):
    places = FakeExecutors(right)
    with pytest.raises(HarnessError, match=said):
        opened(places).evaluate("tril_matmul", SOURCE, **{"config": "quick", **words})
    assert places.jobs == []
