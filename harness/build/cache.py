"""Builds kept by content: the same source, toolchain and architecture are built once, also by parallel runs.

An entry is a folder with ``manifest.json`` and the shared objects, moved into place whole. Each is hashed again on
every use; one that has changed is thrown away and built anew. Of a candidate that reads other files there is an entry
for each state of them that was built. Failed builds are not kept. What is removed, and when, is in `cache_space`.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from harness.build import source_suffixes, stand_in_headers
from harness.build.product import Build
from harness.build.toolchain import Toolchain
from harness.model.candidate import Candidate
from harness.model.files.python_source import knows_its_name
from harness.model.verdict import Status
from harness.sandbox.leftovers import remove_tree
from harness.sandbox.locks import Lock

BUILD_VERSION = 13
ENVIRONMENT_VARIABLE = "KERNEL_REFEREE_CACHE"
# A build may also take in what was compiled before.
_SOURCES = source_suffixes.SOURCES | {".ptx", ".cubin"}
_STARTS_PROGRAMS = re.compile(r"\bsubprocess\b|\bpopen\b|\bos\s*\.\s*(?:system|spawn|exec)")
# What a source may say of the path that it was compiled by.
_OWN_PATH = re.compile(rb"\b__(?:BASE_|builtin_)?FILE(?:__)?\b|\bsource_location\b")
_DIGEST = re.compile("[0-9a-f]{64}")
_MOST_SOURCES = 5000
_POLL_S = 0.25


def default_root() -> Path:
    """$KERNEL_REFEREE_CACHE, else ~/.cache/kernel-referee."""
    return Path(os.environ.get(ENVIRONMENT_VARIABLE) or Path.home() / ".cache" / "kernel-referee")


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file in hex, of as much as its size says: what /proc has may not end. Raises OSError."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        left_bytes = os.fstat(file.fileno()).st_size
        while left_bytes > 0 and (chunk := file.read(min(left_bytes, 1 << 20))):
            digest.update(chunk)
            left_bytes -= len(chunk)
    return digest.hexdigest()


def digest_of(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


class Cache:
    """The store below `root`, which is made on first use. Raises OSError when it cannot be written."""

    def __init__(self, root: Path | None = None) -> None:
        self.root = (root or default_root()).expanduser().resolve()
        self._entries, self._locks = self.root / "entries", self.root / "locks"
        self._staging = self.root / "staging"
        for folder in (self._entries, self._locks, self._staging):
            folder.mkdir(parents=True, exist_ok=True)

    def key(self, candidate: Candidate, toolchain: Toolchain) -> str:
        """Return the name of the entry for `candidate` built by `toolchain`."""
        content = [BUILD_VERSION, stand_in_headers.is_wanted(), candidate.source, asdict(toolchain)]
        content += [candidate.files] if candidate.files else []
        content += [candidate.path.stem] if knows_its_name(candidate.source) else []
        # What is in the files that it reads is looked at in `lookup`; but one more may be found before another, or be
        # one of all that lie there.
        content += [_sources_below(candidate.path.resolve().parent)] if reads_beside(candidate) else []
        return digest_of(content)[:32]

    def lookup(self, key: str, place: Path = Path(), init: str | None = None) -> Build | None:
        """Return the build kept under `key` that is whole and unchanged, or None. `place` is the candidate's folder,
        which files may be named from; `init` stands for what `ModelNew` is constructed with, where that is known.
        """
        return next(self.all_kept(key, place, init), None)

    def all_kept(self, key: str, place: Path = Path(), init: str | None = None) -> Iterator[Build]:
        """Every build kept under a name that begins with `key`, as `lookup` has the first."""
        digests: dict[str, str | None] = {}
        for folder in sorted(self._entries.glob(f"{key}*")):
            try:
                body = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
                if init is not None and body["init"] not in (None, init):
                    continue  # built in an `__init__` that was given something else
                if body["place"] not in (None, str(place)) or not _are_as_told(body["files"], place, digests):
                    continue  # of other files than lie there now
                build = Build.from_json(body["build"], folder)
                unchanged = body["version"] == BUILD_VERSION and all(
                    sha256_of(each.path) == each.sha256 for each in build.extensions
                )
            except FileNotFoundError:
                continue  # another run is putting it there, or has removed it
            except (OSError, ValueError, KeyError, TypeError, AttributeError):
                unchanged = False
            if unchanged:
                with suppress(OSError):
                    os.utime(folder / "manifest.json")  # the clock of the least recently used
                yield build
            else:
                shutil.rmtree(folder, ignore_errors=True)

    def store(
        self, key: str, build: Build, files: Mapping[str, str] | None = None, place: Path | None = None,
        init: str | None = None,
    ) -> Build:
        """Keep `build` under `key` and return it with its extensions where they now lie.

        The shared objects are copied and hashed. `files` are further files that it depends on, with their SHA-256;
        those below `place` are found again when it moves; `init` is as in `lookup`. A build that failed is not kept.
        """
        if build.verdict is not None and build.verdict.status is not Status.COMPILED:
            return build
        with self.staging() as made:
            moved = []
            for number, extension in enumerate(build.extensions):
                if extension.path.is_file():
                    path = made / f"{number}-{extension.path.name}"
                    shutil.copyfile(extension.path, path)
                    path.chmod(0o555)
                    moved.append(replace(extension, path=path, sha256=sha256_of(path)))
            build = replace(build, extensions=tuple(moved))
            named = {_name_below(place, path): digest for path, digest in (files or {}).items()}
            # From another folder the same source may find other files outside it, or by the path it was compiled by.
            bound = place is not None and (
                build.is_bound or any(map(_is_of_a_place, named)) or any(_has_own_path(place / name) for name in named)
            )
            where, of_init = str(place) if bound else None, init if build.is_of_init else None
            body = {"version": BUILD_VERSION, "key": key, "place": where, "init": of_init, "files": named}
            (made / "manifest.json").write_text(json.dumps({**body, "build": build.to_json()}), encoding="utf-8")
            has_others = where is not None or of_init is not None or named
            name = f"{key}-{digest_of([where, of_init, named])[:16]}" if has_others else key
            if not all(map(_DIGEST.fullmatch, named.values())):
                name = f"{key}-{secrets.token_hex(8)}"  # it is never found again, and in nobody's way
            folder = self._entries / name
            shutil.rmtree(folder, ignore_errors=True)
            with suppress(OSError):  # another run put the same entry there in this moment
                os.replace(made, folder)
            kept = tuple(replace(each, path=folder / each.path.name) for each in build.extensions)
            return replace(build, extensions=kept)

    @contextmanager
    def lock(self, key: str, timeout_s: float, is_given_up: Callable[[], bool] = lambda: False) -> Iterator[None]:
        """Hold the entry against other runs; after `timeout_s`, or once it `is_given_up`, go on: both may build it."""
        lock, deadline = Lock(self._locks / f"{key}.lock"), time.monotonic() + timeout_s
        while not lock.take(min(_POLL_S, timeout_s)) and time.monotonic() < deadline and not is_given_up():
            pass
        try:
            yield
        finally:
            lock.release()

    @contextmanager
    def staging(self) -> Iterator[Path]:
        """Give a new private folder on the cache's own disk, and delete it afterwards."""
        folder = Path(tempfile.mkdtemp(prefix="build-", dir=self._staging))
        try:
            yield folder
        finally:
            remove_tree(folder)


def sources_untold(candidate: Candidate) -> list[Path]:
    """Sources below the candidate's folder that a build may have read and nobody says so: compilers leave out headers
    that they found where they look for a system's, and what an assembler includes; another program says nothing of it.
    """
    if not reads_beside(candidate):
        return []
    folder, everything = candidate.path.resolve().parent, _STARTS_PROGRAMS.search(candidate.source)
    paths = (folder / name for name in _sources_below(folder) if " -> " not in name)
    return [path for path in paths if everything or path.suffix not in source_suffixes.UNITS]


def digests_of(paths: Iterable[Path], began_at: float) -> dict[str, str]:
    """The SHA-256 of each file that a build read which began at `began_at`, a time of the clock's."""
    return {str(path): _digest(path, began_at) for path in paths}


def _digest(path: Path, began_at: float) -> str:
    """The SHA-256 of a file that a build read, or none that any file has where it came there since the build began."""
    try:
        status = path.stat()
        return sha256_of(path) if max(status.st_mtime, status.st_ctime) < began_at else "saved meanwhile"
    except OSError:
        return "removed meanwhile"


def reads_beside(candidate: Candidate) -> bool:
    """Whether the source names its own folder, calls `load`, or imports a module that lies beside it."""
    if re.search(r"__file__|\bload\s*\(", candidate.source):
        return True
    # Blank lines are not white space that may come before: a file of nothing else would be gone over from each of them.
    imported = re.findall(r"^[ \t\f]*(?:from|import)[ \t\f]+(\w+)", candidate.source, re.MULTILINE)
    brought = {name for name, _ in candidate.files or ()}
    beside = (f"{name}.py" for name in imported)
    return any(name not in brought and (candidate.path.parent / name).is_file() for name in beside)


def _sources_below(folder: Path) -> list[str]:
    """The names of all sources below `folder`, and of links with what they lead to; hidden folders are left out."""
    sources = []
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith((".", "__")))
        links = (Path(place, name) for name in (*folders, *sorted(names)) if os.path.islink(os.path.join(place, name)))
        sources += [f"{path.relative_to(folder)} -> {os.readlink(path)}" for path in links]
        for path in (Path(place, name) for name in sorted(names)):
            if path.suffix in _SOURCES and path.is_file() and len(sources) < _MOST_SOURCES:
                sources.append(str(path.relative_to(folder)))
    return sources


def _are_as_told(files: Mapping[str, str], place: Path, digests: dict[str, str | None]) -> bool:
    """Whether all `files` have the content that they are told by; `digests` keeps what was read, None for none."""
    for name, digest in files.items():
        if name not in digests:
            digests[name] = None
            with suppress(OSError):
                digests[name] = sha256_of(place / name)
        if digests[name] != digest:
            return False
    return True


def _is_of_a_place(name: str) -> bool:
    """Whether a file may be found where it is because the candidate lies where it does: not what is installed."""
    return Path(name).is_absolute() and not Path(name).is_relative_to(Path(sys.prefix).resolve())


def _has_own_path(path: Path) -> bool:
    """Whether a source may have put its own path into what was built of it."""
    if path.suffix == ".py" or path.is_relative_to(Path(sys.prefix).resolve()):
        return False
    try:
        return _OWN_PATH.search(path.read_bytes()) is not None
    except OSError:
        return True


def _name_below(place: Path | None, path: str) -> str:
    inside = place is not None and Path(path).is_relative_to(place)
    return str(Path(path).relative_to(place)) if inside else path
