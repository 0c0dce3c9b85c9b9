"""How the suite runs: what needs a GPU is skipped, visibly, where there is none; what times is alone on the machine.

The whole suite, on a machine without a GPU, runs in several processes (pytest-xdist), a file of tests in one of them.
Tests marked `alone` measure time: while one runs, none of another process does.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

MOST_PROCESSES = 4
GPU = Path("/dev/nvidia0")
_TURNS = pytest.StashKey[Path]()


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Several processes for the whole suite; one for a choice of tests, which is over sooner so, and beside a GPU.

    A process that is one of several comes by here as well, and must never start processes of its own.
    """
    if hasattr(config, "workerinput") or "PYTEST_XDIST_WORKER" in os.environ:
        return
    whole = config.args_source is pytest.Config.ArgsSource.TESTPATHS and not config.option.keyword
    cores = len(os.sched_getaffinity(0))
    unsaid = getattr(config.option, "numprocesses", 0) is None and not config.option.usepdb
    if unsaid and whole and cores > 1 and not GPU.exists():
        config.option.numprocesses = min(cores, MOST_PROCESSES)
        config.option.dist = "loadfile"
        # In the order of the files: the longest come early, and the short ones at the end even the processes out.
        config.option.loadscopereorder = False


def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config, "workerinput"):
        config.stash[_TURNS] = Path(config.workerinput["turns"])


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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    needing_gpu = [item for item in items if item.get_closest_marker("gpu")]
    if not needing_gpu:
        return
    import torch

    if torch.cuda.is_available():
        return
    skipped = pytest.mark.skip(reason="needs an NVIDIA GPU that PyTorch can use; there is none here")
    for item in needing_gpu:
        item.add_marker(skipped)
