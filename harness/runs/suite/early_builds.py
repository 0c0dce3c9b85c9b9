"""Builds of the problems that a suite comes to later, on half of the cores, while earlier ones are timed on a GPU. They
go to the cache, where each problem's own queue finds them by content. A child makes them, so that the process that
shows the suite never imports PyTorch. Two queues that want one build wait for each other at the cache's lock.
"""

from __future__ import annotations

import os
import signal
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from multiprocessing import get_context

from harness.device.identity import DeviceIdentity
from harness.model.candidate import Candidate
from harness.model.problem import Problem
from harness.model.settings import Settings
from harness.runs.suite.children import Child, in_child
from harness.sandbox.prestart import prestart

Wanted = Sequence[tuple[Problem, Sequence[Candidate]]]
_PROBLEMS_AHEAD = 2  # for each builder: enough that none waits for the next problem's file to be read


@contextmanager
def building_ahead(wanted: Wanted, device: str, settings: Settings) -> Iterator[None]:
    """Build what is `wanted`, in this order, until the end of the `with`; on a CPU, whose cores are timed, nothing."""
    if device == "cpu" or not any(candidates for _, candidates in wanted):
        yield
        return
    lifeline, parents_end = get_context("fork").Pipe(duplex=False)

    def end_with_parent() -> None:  # as Ctrl-C does: the other end is closed, or has gone with it
        with suppress(EOFError, OSError):
            lifeline.recv()
        os.kill(os.getpid(), signal.SIGTERM)

    def work() -> None:
        parents_end.close()
        identity = in_child(lambda: _gpu(device))
        if identity is not None:
            prestart()
            threading.Thread(target=end_with_parent, daemon=True).start()  # everything was forked before
            build_in_order(wanted, identity, settings)

    child = Child(work)
    lifeline.close()
    try:
        yield
    finally:
        child.interrupt()
        parents_end.close()


def build_in_order(wanted: Wanted, device: DeviceIdentity, settings: Settings) -> None:
    """Have the cache hold the builds of all `wanted` for the `device`; those of the first problems are begun first."""
    from harness.build.cache import Cache
    from harness.build.queue import builders_at_once
    from harness.judge.build_pool import queue_for, toolchain_for
    from harness.sandbox.sandbox_choice import strongest_sandbox

    builders = max(1, builders_at_once() // 2)
    toolchain, cache, sandbox = toolchain_for(device.sm, ()), Cache(), strongest_sandbox()
    under_way = deque()
    with ThreadPoolExecutor(builders, thread_name_prefix="builder") as pool:
        try:
            for problem, candidates in wanted:
                sound = [each for each in candidates if each.fault is None]
                for at_one in problem.each_size():
                    under_way.append(queue_for(at_one, sound, toolchain, settings, device, cache, sandbox, pool=pool))
                while len(under_way) > _PROBLEMS_AHEAD * builders:
                    under_way[0].wait_until_idle()
                    under_way.popleft().close()
            for queue in under_way:
                queue.wait_until_idle()
        finally:
            for queue in under_way:
                queue.close()


def _gpu(device: str) -> DeviceIdentity | None:
    """What a GPU of that name is; None for a CPU, or where there is no such device, which the suite itself will say."""
    from harness.device.choice import device_kind, open_backend

    if device_kind(device) == "cpu":
        return None
    with suppress(Exception):
        return open_backend(device).identity
    return None
