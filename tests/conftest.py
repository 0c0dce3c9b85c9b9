"""How the suite runs: what needs a GPU is skipped, visibly, where there is none; what times has its cores to itself.

The whole suite, on a machine without a GPU, runs in several processes (pytest-xdist), each on cores of its own with all
that it starts, and a file of tests in one of them. Where there are fewer cores than processes, tests marked `alone`
take turns: they measure time, and while one runs, none of another process does.

Tests that compile nothing, time nothing and start no process are marked `quick` here, by what others are marked. Files of
such tests alone come first. A quick test that starts a process fails, so that the marks of the others are kept right.
"""

from __future__ import annotations

import fcntl
import os
import re
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

MOST_PROCESSES = 4
GPU = Path("/dev/nvidia0")
# The longest come early, and the short ones at the end even the processes out.
FIRST = ("verdicts", "build", "e2e")
_TOGETHER = re.compile(r"\[([\w-]+@\w+)")
# Runs with torch.compile: whichever is first has it find out what its compiler can do, 9 s on one core, and compile the
# problems that they share.
_COMPILING = ("e2e/test_kernelbench.py", "e2e/test_suite.py")
_TURNS = pytest.StashKey[Path]()
_NOT_QUICK = ("slow", "alone", "gpu", "browser", "processes")
# What starts a process, and what asks a server for a fork of one.
_STARTS = {"subprocess.Popen", "os.posix_spawn", "os.fork", "os.forkpty", "os.system", "socket.sendmsg"}
# Questions that take a tenth of a second at most, and are asked once in a process by whichever test is first: what a
# compiler is, which commit this is, which libraries there are, and (the last) the trial of the sandbox.
_ASKING = re.compile(r"'(--version|--list-gpu-code|-dumpversion|rev-parse|--porcelain|ls-files|true)'|/ldconfig'|/proc/1/cwd/\.\./neighbour")


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Several processes for the whole suite; one for a choice of tests, which is over sooner so, and beside a GPU.

    A process that is one of several comes by here as well, and must never start processes of its own.
    """
    if hasattr(config, "workerinput") or "PYTEST_XDIST_WORKER" in os.environ:
        return
    # A process that dies ends the run: another in its place waits at the end for ever (pytest-xdist 3.8, loadfile).
    config.option.maxworkerrestart = "0"
    whole = config.args_source is pytest.Config.ArgsSource.TESTPATHS and not config.option.keyword
    cores = len(os.sched_getaffinity(0))
    unsaid = getattr(config.option, "numprocesses", 0) is None and not config.option.usepdb
    if unsaid and whole and cores > 1 and not GPU.exists():
        config.option.numprocesses = min(cores, MOST_PROCESSES)
        config.option.dist = "loadfile"
        config.option.loadscopereorder = False  # in the order of the files


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log):
    """With --dist loadfile, tests whose parameters begin with the same WORD@DEVICE are kept together as well, the files
    that `_COMPILING` names, and those of the cluster, which share its nodes.

    What the first share takes minutes, and the files that they are in would be too much for one process.
    """
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            found = _TOGETHER.search(nodeid)
            if found:
                return found[1]
            scope = super()._split_scope(nodeid)
            if "/runs/cluster/" in scope:
                return "cluster"
            return "torch.compile" if scope.endswith(_COMPILING) else scope

    return Scheduling(config, log)


def share_of(cores: Sequence[int], number: int, count: int) -> set[int]:
    """The cores of process `number` of `count`; empty where there are not enough for each to have its own."""
    first, end = (place * len(cores) // count for place in (number, number + 1))
    return set(cores[first:end]) if len(cores) >= count else set()


def pytest_configure(config: pytest.Config) -> None:
    """In one process of several: take cores of its own, before anything counts them, or else turns."""
    told = getattr(config, "workerinput", None)
    if told is None:
        return
    count = told["workercount"]
    # One that takes the place of another has the next number.
    own = share_of(sorted(os.sched_getaffinity(0)), int(told["workerid"].removeprefix("gw")) % count, count)
    if own:
        os.sched_setaffinity(0, own)
    else:
        config.stash[_TURNS] = Path(told["turns"])


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node) -> None:
    """Tell a process where the lock files are that all of them share."""
    node.workerinput["turns"] = str(node.config._tmp_path_factory.getbasetemp())


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Outermost, so that waiting counts for no time limit of a test."""
    folder = item.config.stash.get(_TURNS, None)
    if folder is None:
        return (yield)
    with _turn(folder, alone=item.get_closest_marker("alone") is not None):
        return (yield)


@contextmanager
def _turn(folder: Path, *, alone: bool) -> Iterator[None]:
    """Beside other tests, or alone. Who waits to be alone holds the door, and so is not overtaken for ever."""
    with (folder / "door.lock").open("w") as door, (folder / "machine.lock").open("w") as machine:
        fcntl.flock(door, fcntl.LOCK_EX)
        fcntl.flock(machine, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        fcntl.flock(door, fcntl.LOCK_UN)
        yield


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    slower = set()
    for item in items:
        if any(item.get_closest_marker(name) for name in _NOT_QUICK):
            slower.add(item.path)
        else:
            item.add_marker("quick")
    several = hasattr(config, "workerinput")
    items.sort(key=lambda item: (item.path in slower, _place(item) if several else 0))
    needing_gpu = [item for item in items if item.get_closest_marker("gpu")]
    if not needing_gpu:
        return
    import torch

    if torch.cuda.is_available():
        return
    skipped = pytest.mark.skip(reason="needs an NVIDIA GPU that PyTorch can use; there is none here")
    for item in needing_gpu:
        item.add_marker(skipped)


class _Started:
    """Whether a process was started since it was asked last."""

    def __init__(self) -> None:
        self._what: str | None = None
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple) -> None:
        if event not in _STARTS or threading.current_thread() is not threading.main_thread():
            return
        program = str(arguments[1:2])
        if not _ASKING.search(program):
            self._what = f"{event} {program}"[:200]

    def take(self) -> str | None:
        what, self._what = self._what, None
        return what


_STARTED = _Started()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    _STARTED.take()
    result = yield
    _refuse_processes(item)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    result = yield
    _refuse_processes(item)
    return result


def _refuse_processes(item: pytest.Item) -> None:
    started = _STARTED.take()
    if started is not None and item.get_closest_marker("quick"):
        pytest.fail(f"it starts a process and is not marked so (@pytest.mark.processes): {started}", pytrace=False)


def _place(item: pytest.Item) -> int:
    """How late it comes: the folders of `FIRST`, then all others in their order."""
    folders = item.nodeid.partition("::")[0].split("/")
    return next((place for place, name in enumerate(FIRST) if name in folders), len(FIRST))


@pytest.fixture
def one_thread() -> Iterator[None]:
    """PyTorch with a single thread: several that wait for each other on a shared machine take longer than arithmetic."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def compile_calls(monkeypatch):
    """What a worker puts in the place of PyTorch's compile calls, undone afterwards."""
    import torch.utils.cpp_extension as cpp_extension

    for name in ("load_inline", "load"):
        monkeypatch.setattr(cpp_extension, name, getattr(cpp_extension, name))
    return cpp_extension


@pytest.fixture
def fake_clock(monkeypatch):
    """The clock of everything in the test: it stands still until somebody sleeps or a script says what took how long."""
    from fake_device import FakeClock

    made = FakeClock()
    made.install(monkeypatch)
    return made


@pytest.fixture
def fake_run(tmp_path, fake_clock, monkeypatch):
    """`fake_run(kind=…, scripts=…, …)`: a device run over a fake device, a `fake_worker.FakeRun`."""
    from fake_worker import FakeRun

    monkeypatch.setattr("harness.protocol.layout.REGION_BYTES", 4096)  # nothing here is handed to another process
    return lambda **how: FakeRun(tmp_path, clock=fake_clock, **how)
