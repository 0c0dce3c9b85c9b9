"""Which candidate of a watch is judged next: what needs no launch at once, then what is built; more come meanwhile."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from harness.build.product import Build
from harness.device.lock import device_lock
from harness.judge.build_pool import BuildPool
from harness.model.candidate import Candidate
from harness.model.device_limits import limits_of
from harness.model.errors import HarnessError
from harness.model.verdict import ReasonCode, Status, Verdict
from harness.report.progress import NullProgress
from harness.runs import candidate_queue
from harness.runs.candidate_queue import CandidateQueue

COMPILED = Build(Verdict(Status.COMPILED, ReasonCode.NO_GPU, "for sm_90"))
RUNNABLE = Build(None)


def candidate(name, *, fault=None, text="", path=None):
    return Candidate(name, path or f"{name}.py", text, text, "torch", fault)


class Builds:
    """Stands for a queue of builds: they end when the test says so, or while somebody waits for one."""

    def __init__(self):
        self.under_way, self.ended, self.given_up = [], {}, []
        self.ends_while_waited_for = []
        self.is_idle = True

    def add(self, candidates):
        self.under_way += candidates
        self.is_idle = not self.under_way

    def give_up(self, which):
        self.given_up.append(which)
        self.under_way.remove(which)

    def end(self, which, build=RUNNABLE):
        self.under_way.remove(which)
        self.ended[which] = build
        self.is_idle = not self.under_way

    def is_ready(self, which):
        return which in self.ended

    def result(self, which):
        return self.ended[which]

    def wait_for_one(self, candidates, timeout_s=None):
        if self.ends_while_waited_for:
            self.end(*self.ends_while_waited_for.pop(0))

    def close(self):
        self.under_way = []


class DeviceRun:
    """Notes who was judged, and whether the device was held for it."""

    def __init__(self):
        self.judged = []

    def judge(self, which, build_pool):
        self.judged.append((which.name, is_gated()))
        return which.name


def is_gated():
    """Whether somebody has the device."""
    lock = device_lock("GPU-queue")
    is_free = lock.take()
    lock.release()
    return not is_free


@pytest.fixture
def builds():
    return Builds()


@pytest.fixture(autouse=True)
def own_locks(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


@pytest.fixture
def new_queue(builds, monkeypatch, tmp_path):
    """`new_queue(kind)`: a queue for a device of that kind, whose device run is open unless `is_open` is false."""
    queues = []

    def build_pool(problem, candidates, backend, settings, gently, **_):
        made = BuildPool.__new__(BuildPool)
        made._builds = builds
        made._sound, made._folder = [], tmp_path / "none"
        return made

    monkeypatch.setattr(candidate_queue, "BuildPool", build_pool)

    def make(kind, *, is_open=True, opens=DeviceRun):
        backend = SimpleNamespace(
            limits=limits_of(kind), identity=SimpleNamespace(uuid="GPU-queue", name="a device"), settle=lambda: None,
        )
        made = CandidateQueue(None, None, backend, NullProgress(), DeviceRun().judge if is_open else None, lambda _: opens().judge)
        queues.append(made)
        return made.__enter__()

    yield make
    for made in queues:
        made.__exit__()


def test_what_is_built_on_a_gpu_is_judged_while_others_build(new_queue, builds):
    queue, slow, quick = new_queue("cuda"), candidate("slow"), candidate("quick")
    queue.add([slow, quick])
    assert queue.judge_next(within_s=0) is None
    assert builds.under_way == [slow, quick]
    builds.end(quick)
    assert queue.judge_next() == "quick"
    assert [builds.under_way, queue.left] == [[slow], [slow]]


def test_on_a_cpu_nothing_is_timed_beside_a_compiler_but_what_needs_no_launch_is_told(new_queue, builds):
    queue, slow, quick, cuda = new_queue("cpu"), candidate("slow"), candidate("quick"), candidate("cuda")
    queue.add([quick, slow, cuda])
    queue.judge_next(within_s=0)
    builds.end(quick)
    builds.end(cuda, COMPILED)
    assert queue.judge_next() == "cuda"
    assert queue.judge_next(within_s=0) is None
    builds.ends_while_waited_for = [(slow,)]
    assert [queue.judge_next(), queue.judge_next()] == ["quick", "slow"]


@pytest.mark.parametrize("kind", ["cuda", "cpu"])
def test_a_mistake_is_told_at_once_whatever_another_run_does_with_the_device(new_queue, builds, kind):
    queue = new_queue(kind)
    queue.add([candidate("sound"), candidate("broken", fault="broken.py:1: invalid syntax")])
    with device_lock("GPU-queue"):
        assert queue.judge_next() == "broken"


def test_a_gpu_is_held_while_something_is_launched_on_it_and_not_for_what_is_only_compiled(new_queue, builds):
    queue, first, second = new_queue("cuda"), candidate("first"), candidate("second")
    queue.add([first, second])
    builds.ends_while_waited_for = [(first,), (second, COMPILED)]
    device_run = queue._judge.__self__
    assert [queue.judge_next(), is_gated(), queue.judge_next()] == ["first", False, "second"]
    assert device_run.judged == [("first", True), ("second", False)]


def test_a_cpu_is_held_while_something_is_timed_and_not_while_it_is_built(new_queue, builds):
    queue = new_queue("cpu")
    queue.add([candidate("mine")])
    device_run, held = queue._judge.__self__, []
    builds.wait_for_one = lambda *_: (held.append(is_gated()), builds.end(builds.under_way[0]))
    assert queue.judge_next() == "mine"
    assert held == [False] and device_run.judged == [("mine", True)] and not is_gated()


def test_what_another_run_times_meanwhile_keeps_nothing_from_being_built(new_queue, builds):
    queue = new_queue("cpu")
    queue.add([candidate("mine")])
    with device_lock("GPU-queue"):
        assert queue.judge_next(within_s=0) is None
    assert [each.name for each in builds.under_way] == ["mine"]


def test_what_is_saved_again_takes_the_place_of_what_was_read_before_and_ends_its_build(new_queue, builds):
    queue = new_queue("cuda")
    before, other = candidate("mine", text="1"), candidate("other")
    queue.add([before, other])
    queue.judge_next(within_s=0)
    after = candidate("mine", text="2")
    queue.add([after])
    queue.judge_next(within_s=0)
    assert queue.left == builds.under_way == [other, after]
    assert builds.given_up == [before]


def test_the_device_run_is_opened_on_a_gpu_beside_the_builds_and_on_a_cpu_before_them(new_queue, builds):
    for kind, building in (("cuda", ["mine"]), ("cpu", [])):
        builds.under_way, seen = [], []

        def opens():
            seen.append([each.name for each in builds.under_way])
            return DeviceRun()

        queue = new_queue(kind, is_open=False, opens=opens)
        queue.add([candidate("mine")])
        queue.judge_next(within_s=0)
        assert seen == [building]
        queue.__exit__()


def test_when_the_device_run_cannot_be_opened_nothing_is_left_to_judge(new_queue):
    def refuses():
        raise HarnessError("the reference raised")

    queue = new_queue("cuda", is_open=False, opens=refuses)
    queue.add([candidate("mine"), candidate("other")])
    with pytest.raises(HarnessError):
        queue.judge_next()
    assert queue.left == [] and queue.judge_next() is None
