"""A process that has imported torch once and forks all children: ``python -m harness.sandbox.fork_server FD``.

It is trusted and runs nothing of a candidate's: what a forked child does, it does after the sandbox stands around it.
It learns plans alone, nothing that a child must not know. `fork_client` is the other end.
"""

from __future__ import annotations

import ctypes
import fcntl
import gc
import importlib
import json
import os
import runpy
import signal
import socket
import struct
import sys
import traceback
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, NoReturn

from harness.sandbox import init_process, mounts
from harness.sandbox.descriptors import allow_descriptors

MOST_DESCRIPTORS = 32
_CLONE_FLAGS = {"user": 0x10000000, "pid": 0x20000000, "mount": 0x00020000, "ipc": 0x08000000, "net": 0x40000000}


def main() -> NoReturn:
    """Serve until the other end is closed."""
    control = socket.socket(fileno=int(sys.argv[1]))
    # What is imported stays, and a collector would look through all of it again and again: 0.3 s meanwhile, and in a
    # child 0.2 s each time, with a copy of every page.
    gc.disable()
    for name in sys.argv[2:]:
        importlib.import_module(name)
    gc.freeze()
    gc.enable()
    _reply(control, {"ready": len(os.listdir("/proc/self/task"))})
    while True:
        request, descriptors = _receive(control)
        if "wait" in request:
            _reply(control, {"status": os.waitpid(request["wait"], 0)[1]})
            continue
        pid = os.fork()
        if pid == 0:
            control.close()
            _become(request, descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        _reply(control, {"pid": pid})


def _receive(control: socket.socket) -> tuple[dict[str, Any], list[int]]:
    header, descriptors, _, _ = socket.recv_fds(control, 4, MOST_DESCRIPTORS)
    if len(header) < 4:
        os._exit(0)
    (length,) = struct.unpack(">I", header)
    body = b""
    while len(body) < length:
        chunk = control.recv(length - len(body))
        if not chunk:
            os._exit(0)
        body += chunk
    return json.loads(body), descriptors


def _reply(control: socket.socket, answer: dict[str, Any]) -> None:
    body = json.dumps(answer).encode()
    control.sendall(struct.pack(">I", len(body)) + body)


def _become(request: dict[str, Any], descriptors: list[int]) -> NoReturn:
    """In the fork: take on the request's descriptors, group, environment and namespaces, and carry out its plan.

    The first descriptor is the child's standard output; the others get the numbers that the request gives them.
    """
    code = 1
    try:
        os.setsid()
        _take_descriptors(descriptors, request["numbers"])
        if request["group"]:
            with open(os.path.join(request["group"], "cgroup.procs"), "w", encoding="ascii") as file:
                file.write("0")
        _take_environment(request["environment"])
        code = _behind_namespaces(request["plan"])
    except BaseException:  # noqa: B036  nothing may return into the server's own loop
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _take_descriptors(descriptors: list[int], numbers: list[int]) -> None:
    # They wait above all numbers that are wanted or in use: who starts many children at once has high ones.
    held = [int(each) for each in os.listdir("/proc/self/fd")]
    above = 1 + max([2, *numbers, *held])
    allow_descriptors(above + len(descriptors) + 1)
    waiting = [fcntl.fcntl(each, fcntl.F_DUPFD, above) for each in descriptors]
    null = fcntl.fcntl(os.open(os.devnull, os.O_RDONLY), fcntl.F_DUPFD, above)
    wanted = {0: null, 1: waiting[0], 2: waiting[0], **dict(zip(numbers, waiting[1:]))}
    _close(number for number in map(int, os.listdir("/proc/self/fd")) if number < above)
    for number, held in wanted.items():
        os.dup2(held, number)
    for held in {null, *waiting}:
        os.close(held)


def _close(descriptors: Iterable[int]) -> None:
    for descriptor in descriptors:
        with suppress(OSError):  # the listing's own
            os.close(descriptor)


def _take_environment(environment: dict[str, str]) -> None:
    os.environ.clear()
    os.environ.update(environment)
    if "tempfile" in sys.modules:
        sys.modules["tempfile"].tempdir = None  # it remembers the folder of the first who asked


def _behind_namespaces(plan: dict[str, Any]) -> int:
    """Leave the machine's namespaces as the tool unshare would, and run `init_process` there; the status to exit with."""
    spaces = plan["namespaces"]
    uid, gid = os.geteuid(), os.getegid()
    flags = sum(_CLONE_FLAGS[space] for space in spaces)
    if ctypes.CDLL(None, use_errno=True).unshare(ctypes.c_int(flags)):
        code = ctypes.get_errno()
        raise OSError(code, f"unshare: {os.strerror(code)}")
    if "user" in spaces:  # root inside, the same user outside
        for name, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")):
            with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
                file.write(text)
    if "mount" in spaces:
        mounts.keep_mounts_private()
    if "pid" not in spaces:
        return init_process.main(plan, _start)
    held = [int(each) for each in os.listdir("/proc/self/fd")]
    first = os.fork()
    if first == 0:
        mounts.die_with_parent()
        mounts.mount_proc()
        os._exit(init_process.main(plan, _start))
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    _close(held)  # only the child is to hold what it was given, so that its end can be seen from outside
    _, status = os.waitpid(first, 0)
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _start(plan: dict[str, Any]) -> int:
    """As `init_process` starts a program, but by running its module in a fork of this process. Returns its pid."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        mounts.die_with_parent()
        mounts.drop_capabilities()
        for descriptor in (plan["status_fd"], plan["lifeline_fd"]):
            os.close(descriptor)
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_IGN)  # as Python does when it starts
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.chdir(plan["repository"])
        sys.path.insert(0, plan["repository"])
        sys.argv = [plan["module"], *plan["arguments"]]
        runpy.run_module(plan["module"], run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as exit_:
        code = exit_.code if isinstance(exit_.code, int) else int(exit_.code is not None)
        if isinstance(exit_.code, str):
            print(exit_.code, file=sys.stderr)
    except BaseException:  # noqa: B036
        traceback.print_exc()
    finally:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(code & 0xFF)


if __name__ == "__main__":
    main()
