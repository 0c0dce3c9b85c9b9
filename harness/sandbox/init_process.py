"""The first process behind the sandbox: it shuts the door, starts the untrusted program, and ends with all it started.

Run by path with ``python -I -S init_process.py PLAN`` (PLAN is JSON made by `spawn`). It stays as the program's parent:
it adopts orphans, reports how the program died on a pipe, and kills everything when the program or the harness is gone
(the lifeline, a pipe whose far end only the harness holds, is then closed).
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable

sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from harness.sandbox import mounts, processes  # noqa: E402


def _set_resource_limits(plan: dict) -> None:
    import resource

    wanted = {"RLIMIT_CORE": 0, "RLIMIT_FSIZE": plan["file_bytes"], "RLIMIT_AS": plan["address_bytes"]}
    # Outside a user namespace this limit counts every process of the user's, not only the child's.
    if "user" in plan["namespaces"]:
        wanted["RLIMIT_NPROC"] = plan["processes"]
    for name, value in wanted.items():
        if not hasattr(resource, name):
            continue
        hard = resource.getrlimit(getattr(resource, name))[1]
        if value is None:  # the harness may have one of its own just now, which is not the child's
            capped = hard
        else:
            capped = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(getattr(resource, name), (capped, capped))


def _start(plan: dict) -> int:
    """Fork and exec the program. Returns its pid."""
    pid = os.fork()
    if pid:
        return pid
    try:
        if sys.platform == "linux":
            mounts.die_with_parent()
        for fd in (plan["status_fd"], plan["lifeline_fd"]):
            os.close(fd)
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        os.chdir(plan["repository"])
        os.execv(plan["command"][0], plan["command"])
    except OSError as error:
        os.write(2, f"cannot start {plan['command'][0]}: {error}\n".encode())
    finally:
        os._exit(127)
    return 0


def _let_go_of_files(plan: dict) -> None:
    """Close what only the program is to hold, so that its end can be seen from outside."""
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    for fd in [null, *plan["program_fds"]]:
        os.close(fd)


def _end_all(namespaced: bool) -> None:
    """Kill every descendant and wait until each is gone."""
    while True:
        if namespaced:
            try:
                os.kill(-1, signal.SIGKILL)
            except ProcessLookupError:
                return
        else:
            for pid in processes.descendants(os.getpid()):
                processes.kill(pid)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.001)


def _watch(main_pid: int, plan: dict) -> int | None:
    """Reap until the program ends; its wait status, or None when the harness went first."""
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_write, False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    while True:
        try:
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == main_pid:
                    return status
                if pid == 0:
                    break
        except ChildProcessError:
            return None
        ready, _, _ = select.select([plan["lifeline_fd"], wake_read], [], [])
        if plan["lifeline_fd"] in ready:
            return None
        os.read(wake_read, 4096)


def _set_signals(action: signal.Handlers) -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, action)


def main(plan: dict, start: Callable[[dict], int] = _start) -> int:
    """Carry out the plan; `start(plan)` starts the program and returns its pid. Returns the exit status for this
    process: 0, or 1 when the sandbox could not be built.
    """
    status_fd = plan["status_fd"]
    _set_signals(signal.SIG_IGN)
    try:
        if plan["mounts"]:
            mounts.make_read_only(plan["repository"], plan["view"], own_shared_memory=plan["own_shared_memory"])
        _set_resource_limits(plan)
        if "user" in plan["namespaces"]:
            mounts.forbid_user_namespaces()
        if plan["mounts"]:
            mounts.protect_kernel_settings()
        if sys.platform == "linux":
            mounts.adopt_orphans()
            mounts.give_up_powers()
    except (OSError, ValueError) as error:
        os.write(status_fd, json.dumps({"refused": str(error)}).encode())
        return 1
    _set_signals(signal.SIG_DFL)
    main_pid = start(plan)
    _set_signals(signal.SIG_IGN)
    _let_go_of_files(plan)
    status = _watch(main_pid, plan)
    _end_all(namespaced="pid" in plan["namespaces"] and os.getpid() == 1)
    if status is not None:
        os.write(status_fd, json.dumps({"status": status}).encode())
    return 0


if __name__ == "__main__":
    os._exit(main(json.loads(sys.argv[1])))
