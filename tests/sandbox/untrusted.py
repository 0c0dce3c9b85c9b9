"""Programs that misbehave, run behind the sandbox by the tests: ``python -m untrusted FD DEED ARGUMENTS``.

Copied by the tests into a repository of their own; `FD` is the channel.
"""

import contextlib
import ctypes
import fcntl
import json
import os
import signal
import socket
import stat
import struct
import subprocess
import sys
import time


def answer(fd, frame):
    body = json.dumps(frame).encode()
    sock = socket.socket(fileno=int(fd))
    sock.sendall(struct.pack(">I", len(body)) + body)
    return sock


def flood(fd):
    block = b"x" * (1 << 20)
    os.write(1, b"first words\n")
    for _ in range(1024):
        os.write(1, block)
    os.write(2, b"\nlast words\n")


def ignores_sigterm(fd):
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    sock = answer(fd, {"ready": True})
    while sock:
        time.sleep(1)


def tells_what_it_was_given(fd, *modules):
    """Answers with its open descriptors, its capabilities as /proc shows them, and which of `modules` it has."""
    with open("/proc/self/status") as file:
        status = dict(line.strip().partition(":\t")[::2] for line in file)
    listing = os.listdir("/proc/self/fd")
    answer(fd, {
        "descriptors": sorted(int(name) for name in listing if os.path.exists(f"/proc/self/fd/{name}")),
        "powers": {name: status[name] for name in ("CapEff", "CapPrm", "CapInh", "CapBnd", "CapAmb", "NoNewPrivs")},
        "modules": [name for name in modules if name in sys.modules],
        "main": sys.modules["__main__"].__name__, "words": sys.argv, "temp": __import__("tempfile").gettempdir(),
    })


def changes_the_machine(fd, *places):
    """Answers which of `places` it could open to write to (nothing is written), and whether it could make a file in /dev."""
    def opens(path, flags):
        try:
            os.close(os.open(path, flags))
            return True
        except OSError:
            return False

    made = opens("/dev/left-by-a-test", os.O_WRONLY | os.O_CREAT)
    if made:
        os.unlink("/dev/left-by-a-test")
    answer(fd, {"opened": [place for place in places if opens(place, os.O_WRONLY)], "made": made})


def makes_namespaces(fd, wanted):
    """Answers how many user namespaces it could make and hold open, at most `wanted`."""
    held = []
    for _ in range(int(wanted)):
        told, tells = os.pipe()
        pid = os.fork()
        if pid == 0:
            refused = ctypes.CDLL(None).unshare(0x10000000)
            os.write(tells, b"n" if refused else b"y")
            time.sleep(10)
        if os.read(told, 1) == b"y":
            held.append(os.open(f"/proc/{pid}/ns/user", os.O_RDONLY))
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(told)
        os.close(tells)
    answer(fd, {"held": len(held)})


def _daemon(path):
    """Double fork and setsid; the daemon touches `path` for as long as it lives."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for descriptor in range(3, 256):
                try:
                    os.close(descriptor)
                except OSError:
                    pass
            while True:
                with open(path, "w") as file:
                    file.write(str(time.time()))
                time.sleep(0.01)
        os._exit(0)
    os.wait()
    while not os.path.exists(path):
        time.sleep(0.01)


def daemon_and_stay(fd, path):
    _daemon(path)
    sock = answer(fd, {"ready": True})
    while sock:
        time.sleep(1)


def daemon_and_leave(fd, path):
    _daemon(path)


def exits_zero(fd):
    os._exit(0)


def exits_seven(fd):
    os._exit(7)


def segfaults(fd):
    ctypes.string_at(0)


def aborts(fd):
    os.abort()


def looks_around(fd, repository, private, writable, repository_file, pid_outside):
    def writes(path):
        try:
            with open(path, "a") as file:
                file.write("was here")
            return True
        except OSError:
            return False

    def reaches_network():
        try:
            socket.create_connection(("127.0.0.1", int(os.environ["TEST_PORT"])), timeout=1).close()
            return True
        except OSError:
            return False

    def signals(pid):
        try:
            os.kill(int(pid), 0)
            return True
        except OSError:
            return False

    def reads_disk():
        disks = [entry.path for entry in os.scandir("/dev") if stat.S_ISBLK(os.stat(entry.path).st_mode)]
        return bool(disks)

    remounted = subprocess.run(
        ["mount", "-o", "remount,bind,rw", repository], capture_output=True, check=False
    ).returncode == 0
    answer(fd, {
        "new_in_repository": writes(os.path.join(repository, "new")),
        "changed_in_repository": writes(repository_file),
        "beside_repository": writes(os.path.join(os.path.dirname(repository), "beside")),
        "private": writes(os.path.join(private, "new")), "writable": writes(os.path.join(writable, "new")),
        "interpreter": writes(os.path.join(sys.prefix, "new")), "remounted": remounted,
        "network": reaches_network(), "pids": [int(name) for name in os.listdir("/proc") if name.isdigit()],
        "signals_outside": signals(pid_outside), "environment": dict(os.environ), "folder": os.getcwd(),
        "stdin": sys.stdin.read(), "disks": reads_disk(), "parent_files": os.access("/proc/1/fd/0", os.R_OK),
    })


def locks_files(fd, *paths):
    """Which of the files it could lock, however they open, and on which take a lease, which keeps writers waiting."""
    signal.signal(signal.SIGIO, signal.SIG_IGN)
    locked, leased, kept = set(), set(), []
    for path in paths:
        with contextlib.suppress(OSError):
            os.chmod(path, 0o666)
        for flags in (os.O_WRONLY, os.O_RDWR, os.O_RDONLY):
            try:
                descriptor = os.open(path, flags)
            except OSError:
                continue
            with contextlib.suppress(OSError):
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                locked.add(path)
            if flags != os.O_RDONLY:
                os.close(descriptor)  # who writes keeps itself from a lease
                continue
            kept.append(descriptor)
            with contextlib.suppress(OSError):
                fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
                leased.add(path)
    answer(fd, {"locked": sorted(locked), "leased": sorted(leased)})
    time.sleep(60)


def takes_memory(fd, size):
    try:
        answer(fd, {"taken": len(bytearray(int(size)))})
    except MemoryError:
        answer(fd, {"error": "MemoryError"})


def writes_long_file(fd, path):
    with open(path, "wb") as file:
        try:
            for _ in range(64):
                file.write(b"x" * 65536)
                file.flush()
        except OSError as error:
            answer(fd, {"error": error.errno})


def uses_scratch(fd, name, *paths):
    """Writes a file and a folder into /tmp, and answers what it found there before, how large it may get, and of `paths`
    which it sees and which it could write below.
    """
    def writes(path):
        try:
            with open(os.path.join(path, "was-here") if os.path.isdir(path) else path, "a") as file:
                file.write("was here")
            return True
        except OSError:
            return False

    found = sorted(os.listdir("/tmp"))
    made = False
    with contextlib.suppress(OSError):
        os.makedirs(os.path.join("/tmp", name), exist_ok=True)
        made = writes(os.path.join("/tmp", name))
    space = os.statvfs("/tmp")
    answer(fd, {
        "found": found, "made": made, "bytes": space.f_blocks * space.f_frsize,
        "seen": [path for path in paths if os.path.exists(path)], "written": [path for path in paths if writes(path)],
        "own": writes(os.environ["TMPDIR"]), "unmounted": subprocess.run(
            ["umount", "/tmp"], capture_output=True, check=False).returncode == 0,
    })


def reads(fd, *paths):
    """Answers which of `paths` it can read, as they are and by way of its own and the first process's root and folder."""
    ways = ("{0}", "/proc/1/root{0}", "/proc/self/root{0}", "/proc/1/cwd/../../../../../../..{0}", "/proc/self/cwd/../../../..{0}")

    def opens(path):
        try:
            os.listdir(path) if os.path.isdir(path) else open(path, "rb").close()
            return True
        except OSError:
            return False

    answer(fd, {"read": [path for path in paths if any(opens(way.format(path)) for way in ways)]})


def touches_forever(fd, path):
    while True:
        with open(path, "w") as file:
            file.write(str(time.time()))
        time.sleep(0.01)


if __name__ == "__main__":
    globals()[sys.argv[2]](sys.argv[1], *sys.argv[3:])
