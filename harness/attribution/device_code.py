"""The kernels in the device code of a shared object, as cuobjdump lists them, or without it strings that may be names.

The file is the candidate's: how many symbols it has, how long they are and how long the tool takes over them is
bounded, and where a bound is met the file names nothing rather than a part of it.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import threading
from collections.abc import Collection, Iterator
from pathlib import Path

from harness.sandbox.leftovers import content_of

_TOOL_TIMEOUT_S, _MOST_LISTED_BYTES = 60.0, 64 << 20
_FUNCTIONS, _ENTRIES = ("STT_FUNC", "FUNC"), ("STO_ENTRY", "ENTRY")
_LETTERS, _LONGEST_STRING, _MOST_BYTES = re.compile(rb"[A-Za-z0-9_$.]+"), 2000, 64 << 20


def device_symbols(path: Path, timeout_s: float = _TOOL_TIMEOUT_S, most: int = 50_000) -> set[str] | None:
    """The kernels of a shared object, mangled; none beyond `most` or `timeout_s` (a minute); None without cuobjdump."""
    tool = find_cuobjdump()
    if tool is None:
        return None
    command = [tool, "--dump-elf-symbols", str(path)]
    try:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    except OSError:
        return None
    with process:
        too_long = threading.Event()
        alarm = threading.Timer(min(timeout_s, _TOOL_TIMEOUT_S), lambda: (too_long.set(), process.kill()))
        alarm.start()
        listed = process.stdout.read(_MOST_LISTED_BYTES + 1)
        if len(listed) > _MOST_LISTED_BYTES:  # 300 KB of a forged table are 600 MB of names
            too_long.set()
            process.kill()
        code = process.wait()
        alarm.cancel()
    if too_long.is_set():
        return set()
    if code != 0:
        return None
    symbols = set(_entries(listed.decode(errors="replace")))
    return symbols if len(symbols) <= most else set()


def find_cuobjdump() -> str | None:
    """The tool on the PATH, of the toolkit, or of Triton's package, which carries one."""
    places = [os.environ.get("PATH", os.defpath), "/usr/local/cuda/bin"]
    for name in ("CUDA_HOME", "CUDA_PATH"):
        if os.environ.get(name):
            places.insert(1, str(Path(os.environ[name], "bin")))
    spec = importlib.util.find_spec("triton")
    if spec is not None and spec.origin is not None:
        places.append(str(Path(spec.origin).parent / "backends" / "nvidia" / "bin"))
    return shutil.which("cuobjdump", path=os.pathsep.join(places))


def strings_of(path: Path, wanted: Collection[str]) -> Iterator[str]:
    """The strings of the file that could be symbols and hold one of the words `wanted`."""
    content = content_of(path, _MOST_BYTES)
    for match in _LETTERS.finditer(content):
        text = match[0].lstrip(b"0123456789$.")
        if 2 < len(text) <= _LONGEST_STRING and content[match.end() : match.end() + 1] == b"\0":
            string = text.decode()
            if any(word in string for word in wanted):
                yield string


def _entries(listed: str) -> Iterator[str]:
    """`STT_FUNC STB_GLOBAL STO_ENTRY name` up to CUDA 13.1, `FUNC GLOBAL DEFAULT ENTRY name` since."""
    for line in listed.split("\n"):
        words = line.split()
        if len(words) > 2 and words[0] in _FUNCTIONS and any(word in _ENTRIES for word in words[1:-1]):
            yield words[-1]
