"""``python -m harness.selftest.naive_server FD``: a process that has imported torch, and forks a child for each case. A
case then costs about a second, and what it breaks is its own child, which is killed with all that it started. The child
runs `naive_loop`; what its answer is worth is left to `matrix`.
"""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from harness.protocol.frames import Channel
from harness.sandbox import mounts, processes
from harness.sandbox.leftovers import remove_tree

_LONGEST_ANSWER_BYTES = 64 * 1024
_POLL_S, _END_S = 0.02, 5.0
_MEMORY_SHARE = 0.5
_PRIVATE = ("HOME", "TMPDIR", "TEMP", "TMP", "XDG_CACHE_HOME", "TORCH_EXTENSIONS_DIR")


def main() -> None:
    channel = Channel(socket.socket(fileno=int(sys.argv[1])))
    # Once for all: torch without CUDA, and what its extension module, which must not be imported here, waits for.
    import setuptools.command.build_ext  # noqa: F401

    from harness.selftest.naive_loop import judge

    mounts.adopt_orphans()
    while True:
        channel.send(run_case(channel.receive(), channel, judge))


def run_case(
    request: dict[str, Any], channel: Channel, judge: Callable[[dict[str, Any]], dict[str, Any]]
) -> dict[str, Any]:
    """One case in a child of its own: {"answer": what `judge` said or None, "end": how the child ended or ""}."""
    folder = tempfile.mkdtemp(prefix="case-")
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        channel.close()
        os.close(reading)
        os.setsid()
        _answer(request, folder, writing, judge)
        sys.exit(0)  # as such a loop ends: after the threads of the case, and what it registered for the end
    os.close(writing)
    reply, status = _listen(child, reading, float(request["limit_s"]))
    os.close(reading)
    _end_everything(child)
    remove_tree(folder)
    answer = _parsed(reply)
    return {"answer": answer, "end": _ending(status, answered=answer is not None)}


def _answer(
    request: dict[str, Any], folder: str, writing: int, judge: Callable[[dict[str, Any]], dict[str, Any]]
) -> None:
    """In the child: write down what `judge` says, or what it raises."""
    os.environ.update(dict.fromkeys(_PRIVATE, folder))
    tempfile.tempdir = None
    if request["device"] == "cpu":
        # Not with CUDA, which reserves far more than it uses.
        limit = int(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") * _MEMORY_SHARE)
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    try:
        answer = judge(request)
    except Exception as error:
        answer = {"raised": type(error).__name__, "said": next(iter(str(error).splitlines()), "")[:200]}
    os.write(writing, json.dumps(answer).encode())
    os.close(writing)


def _listen(child: int, reading: int, limit_s: float) -> tuple[bytes, int | None]:
    """What the child wrote, and its wait status; None when it had not ended after `limit_s` seconds."""
    os.set_blocking(reading, False)
    reply, status, deadline = b"", None, time.monotonic() + limit_s
    while status is None and time.monotonic() < deadline:
        ended, wait_status = os.waitpid(child, os.WNOHANG)
        status = wait_status if ended else None
        if status is None and not select.select([reading], [], [], _POLL_S)[0]:
            continue
        try:
            while len(reply) < _LONGEST_ANSWER_BYTES and (chunk := os.read(reading, 4096)):
                reply += chunk
        except BlockingIOError:
            continue
        time.sleep(_POLL_S)  # the answer is there, or is none; what remains to be seen is the end
    return reply, status


def _end_everything(child: int) -> None:
    """Kill what the case has left: its group, and every process that has come to this one for want of a parent."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)
    deadline = time.monotonic() + _END_S
    while (left := processes.descendants(os.getpid())) and time.monotonic() < deadline:
        for pid in left:
            processes.kill(pid)
        time.sleep(0.001)
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _parsed(reply: bytes) -> dict[str, Any] | None:
    try:
        answer = json.loads(reply)
    except (ValueError, RecursionError):
        return None
    return answer if isinstance(answer, dict) else None


def _ending(status: int | None, *, answered: bool) -> str:
    """How the child ended where that is news: "" only for one that answered and then ended in order."""
    if status is None:
        return "hung"
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        return "" if answered and code == 0 else f"exited with status {code}"
    return f"killed by {signal.Signals(-code).name}" if -code in signal.valid_signals() else f"killed by signal {-code}"


if __name__ == "__main__":
    main()
