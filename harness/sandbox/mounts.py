"""Making the file system read-only around a child, where `visible_files` says what it sees; Linux, through ctypes.

It also gives up the powers to undo that. `init_process` calls it inside the child's own mount namespace, before any
untrusted code runs, and without site-packages.
"""

from __future__ import annotations

import ctypes
import os
import stat
from collections.abc import Sequence
from contextlib import suppress

_MS_RDONLY, _MS_REMOUNT, _MS_BIND, _MS_REC = 1, 32, 4096, 16384
_MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_PRIVATE = 2, 4, 8, 1 << 18
# statvfs flag → mount flag: inside a user namespace the kernel refuses a remount that drops one of these.
_KEPT_FLAGS = {2: 2, 4: 4, 8: 8, 1024: 1 << 10, 2048: 1 << 11, 4096: 1 << 21}
_LEFT_ALONE = frozenset({"proc", "devtmpfs", "devpts", "mqueue"})
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_CAPBSET_DROP = 1, 4, 24
_PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 36, 38, 47, 4
_CAPABILITY_VERSION_3 = 0x20080522
SCRATCH_BYTES = 1 << 30  # for each child's /dev/shm and /tmp; without a size either may take half of the machine's memory
SCRATCH = "/tmp"
COVER, EMPTY, SHOW, WRITE = "cover", "empty", "show", "write"  # what a step of a child's view does with a place
_O_PATH = getattr(os, "O_PATH", 0o10000000)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _mount(source: str | None, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
    encoded = [None if text is None else os.fsencode(text) for text in (source, target, kind, options)]
    if _libc().mount(encoded[0], encoded[1], encoded[2], ctypes.c_ulong(flags), encoded[3]):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), target)


def _prctl(option: int, value: int = 0) -> bool:
    return _libc().prctl(option, ctypes.c_ulong(value), 0, 0, 0) == 0


def mount_points() -> list[tuple[str, str]]:
    """Return (path, file system type) of every mount of this namespace, in order of mounting."""
    points = []
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
        for line in file:
            left, _, right = line.partition(" - ")
            path = left.split()[4].encode("utf-8", "surrogateescape").decode("unicode_escape")
            points.append((path.encode("latin-1").decode("utf-8", "surrogateescape"), right.split()[0]))
    return points


def _remount(path: str, flags: int) -> None:
    present = os.statvfs(path).f_flag
    kept = sum(mount_flag for stat_flag, mount_flag in _KEPT_FLAGS.items() if present & stat_flag)
    _mount(None, path, None, _MS_REMOUNT | _MS_BIND | flags | kept)


def raw_devices() -> list[str]:
    """Return the disks and the raw memory in /dev, which root may open whatever is mounted read-only."""
    paths = []
    for entry in os.scandir("/dev"):
        with suppress(OSError):
            disk = stat.S_ISBLK(entry.stat(follow_symlinks=False).st_mode)
            if disk or entry.name in ("mem", "kmem", "port"):
                paths.append(entry.path)
    return paths


def make_read_only(repository: str, view: Sequence[tuple[str, str]], *, own_shared_memory: bool) -> None:
    """Remount everything read-only but /proc and /dev/shm, and take the steps of `view`; raw disks become /dev/null.

    A folder to `COVER` becomes an empty one in memory; one to `EMPTY` too, of 1 GiB, which may be written to. What is to
    `SHOW` is seen at its place as before, read-only, and what is to `WRITE` is written to. Raises OSError where a step
    cannot be taken or the repository stays writable; other mounts that cannot be changed are left alone. With
    `own_shared_memory` /dev/shm is an empty one of its own, of 1 GiB at most, and what is left there goes with it.
    """
    held = {path: os.open(path, _O_PATH) for kind, path in view if kind in (SHOW, WRITE)}
    _mount(repository, repository, None, _MS_BIND | _MS_REC)
    for path, kind in mount_points():
        if kind in _LEFT_ALONE or path == "/proc" or path.startswith(("/proc/", "/dev/")):
            continue
        try:
            _remount(path, _MS_RDONLY)
        except OSError:
            if path == repository or path.startswith(repository.rstrip("/") + "/"):
                raise
    os.chdir("/")  # the folder that a process is in stays open to it whatever covers it
    for kind, path in view:
        if kind in (COVER, EMPTY):
            os.makedirs(path, exist_ok=True)  # in an empty one, where it is to be read-only
            mode = 1777 if kind == EMPTY else 755
            _mount("tmpfs", path, "tmpfs", _MS_NOSUID | _MS_NODEV, f"mode={mode},size={SCRATCH_BYTES}")
            continue
        _make_place(path, held[path])
        _mount(f"/proc/self/fd/{held[path]}", path, None, _MS_BIND | _MS_REC)
        # The bind may have taken over the read-only flag of the mount it was made from, or not.
        _remount(path, 0 if kind == WRITE else _MS_RDONLY)
        os.close(held[path])
    for kind, path in view:
        if kind == COVER:
            _remount(path, _MS_RDONLY)
    for device in raw_devices():
        _mount("/dev/null", device, None, _MS_BIND)
    own_mounts = {path for path, _ in mount_points()}
    if "/dev" in own_mounts and ("/dev/shm" in own_mounts or not os.path.isdir("/dev/shm")):
        with suppress(OSError):
            _remount("/dev", _MS_RDONLY)  # root could leave files there; devices are written to as before
    if own_shared_memory and os.path.isdir("/dev/shm"):
        with suppress(OSError):  # a kernel that grants no such mount: then it is the machine's
            _mount("tmpfs", "/dev/shm", "tmpfs", _MS_NOSUID | _MS_NODEV, f"mode=1777,size={SCRATCH_BYTES}")


def _make_place(path: str, fd: int) -> None:
    """Have something at `path` that what `fd` stands for can be mounted on."""
    if os.path.lexists(path):
        return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if stat.S_ISDIR(os.fstat(fd).st_mode):
        os.mkdir(path)
    else:
        open(path, "x").close()


def protect_kernel_settings() -> None:
    """Make everything in /proc read-only that is no process's: who is root outside owns the machine's settings there,
    and needs no power to change them. Raises OSError where the settings stay writable.
    """
    for entry in os.scandir("/proc"):
        if entry.name.isdigit() or entry.is_symlink():
            continue
        try:
            if entry.is_dir() or entry.stat().st_mode & 0o222:
                _mount(entry.path, entry.path, None, _MS_BIND | _MS_REC)
                _remount(entry.path, _MS_RDONLY)
        except OSError:
            if entry.name == "sys":
                raise


def give_up_powers() -> None:
    """Empty the capability bounding set and forbid new privileges, for this process's children from their exec on."""
    for capability in range(64):
        if not _prctl(_PR_CAPBSET_DROP, capability):
            break
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)


def forbid_user_namespaces() -> None:
    """Let nobody in this user namespace make another, where this process may say so: in one of its own a process has
    every power again over what it makes there, and one child could keep all that a machine has.
    """
    with suppress(OSError), open("/proc/sys/user/max_user_namespaces", "w", encoding="ascii") as file:
        file.write("0")  # bubblewrap leaves its child no power to


def drop_capabilities() -> None:
    """Give up every capability now: for a program that is forked, where no exec would take them. Raises OSError."""
    _prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL)
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    if _libc().capset(header, (ctypes.c_uint32 * 6)()):
        code = ctypes.get_errno()
        raise OSError(code, f"capset: {os.strerror(code)}")
    _prctl(_PR_SET_DUMPABLE, 1)  # as exec would: it may read what /proc says of itself


def keep_mounts_private() -> None:
    """Let no mount made in this namespace show in another."""
    _mount("none", "/", None, _MS_REC | _MS_PRIVATE)


def mount_proc() -> None:
    """Mount /proc anew, so that it shows this PID namespace only."""
    _mount("proc", "/proc", "proc", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC)


def adopt_orphans() -> None:
    """Make this process the parent of each descendant whose own parent dies, and closed to the eyes of its children."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    _prctl(_PR_SET_DUMPABLE, 0)


def die_with_parent() -> None:
    """Have the kernel send SIGKILL to this process when the thread that forked it ends."""
    _prctl(_PR_SET_PDEATHSIG, 9)
