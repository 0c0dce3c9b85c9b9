"""What assembler and linker take into an extension besides what was compiled for it: files that `.incbin` copies in, objects,
archives and libraries.

No compiler tells of these, but the two say it themselves (`--MD`, and `--dependency-file` from binutils 2.35 on). GCC finds
a script of ours in the place of each, by COMPILER_PATH: no macro hides a directive from it, and code that is made at
link time passes it too. A tool that did not tell of a build, Clang's own assembler say, is named: nobody knows then.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from harness.build.dependencies import files_of_rule
from harness.build.flags import LARGEST_BYTES, TOOLKITS
from harness.build.installed_folders import installed_places
from harness.build.toolchain import find_host_compiler

_TELLS = {"as": "--MD", "ld": "--dependency-file"}
_SEARCHED = "COMPILER_PATH"
# What compilers bring to link besides what they link into every library, CUDA's runtime among it.
_RUNTIME = re.compile(
    r"[SMg]?crt\w*\.o|lib(?:gcc|gcc_eh|gcov|\w+_nonshared|stdc\+\+(?:_nonshared|fs|exp)?|pthread|dl|rt|atomic|"
    r"cudart_static|cudadevrt|culibos)\.a"
)
# A linker's script without these gives no bytes and names no files: a list of exported symbols, say.
_GIVES = re.compile(rb"[(=]")
_COMMENT = re.compile(rb"/\*.*?\*/", re.DOTALL)
_ELF, _ARCHIVES, _SHARED_OBJECT, _MOST_SCRIPT_BYTES = b"\x7fELF", (b"!<arch>", b"!<thin>"), 3, 1 << 16


@dataclass(frozen=True)
class TakenIn:
    """The `files` that one build took in from elsewhere, without what is installed and what has more than 64 MiB; what of
    all has machine code that is `foreign` to its sources; and which tools were `silent`.
    """

    files: frozenset[str]
    foreign: tuple[str, ...]
    silent: tuple[str, ...]


NOTHING_TOLD = TakenIn(frozenset(), (), ("ninja",))


class ToolWatch:
    """Has assembler and linker of this process's builds write down in `folder` what they read, for a candidate that lies in
    `own_folder`.
    """

    def __init__(self, folder: Path, own_folder: Path, nvcc: str | None) -> None:
        self._folder, compiler = folder, find_host_compiler()
        homes = [str(home) for tool in (compiler, nvcc) if tool and (home := Path(tool).resolve().parent.parent) != Path("/")]
        self._installed = installed_places(own_folder, (*TOOLKITS, *homes))
        tools = folder / "tools"
        tools.mkdir(parents=True, exist_ok=True)
        for name, option in _TELLS.items() if compiler is not None else ():
            tool = _real_tool(compiler, name)
            if tool is not None and option in _said([tool, "--help"]):
                # The last of two such options counts, and a candidate's come before.
                text = f'#!/bin/sh\nexec {shlex.quote(tool)} "$@" {option} {shlex.quote(str(folder))}/$$.{name}.d\n'
                (tools / name).write_text(text, encoding="utf-8")
                (tools / name).chmod(0o755)
        os.environ[_SEARCHED] = os.pathsep.join(filter(None, (str(tools), os.environ.get(_SEARCHED))))
        self._in_every_library = self._taken_by_nothing(compiler) if compiler is not None else frozenset()

    def _taken_by_nothing(self, compiler: str) -> frozenset[str]:
        """What `compiler` links into a library without any source, wherever a package manager has put it."""
        _said([compiler, "-shared", "-x", "assembler", os.devnull, "-o", str(self._folder / "empty.so")])
        rules = self._rules()
        return frozenset().union(*(self._told(rules[name], name, self._folder) for name in _TELLS))

    def _rules(self) -> dict[str, list[Path]]:
        return {name: list(self._folder.glob(f"*.{name}.d")) for name in _TELLS}

    def taken_in(self, place: Path, sources: Iterable[str]) -> TakenIn:
        """What was taken in since the last call by a build of `sources` that ran in `place`."""
        rules = self._rules()
        silent = tuple(name for name, written in rules.items() if not written)
        assembled, linked = (self._told(rules[name], name, place) for name in _TELLS)
        assembled -= {os.path.realpath(path) for path in sources}
        foreign = assembled | {path for path in linked if not self._is_no_code(path)}
        files = {path for path in assembled | linked if not path.startswith(self._installed)}
        small_files = frozenset(path for path in files if os.path.isfile(path) and os.path.getsize(path) <= LARGEST_BYTES)
        return TakenIn(small_files, tuple(sorted(foreign)), silent)

    def _told(self, rules: Iterable[Path], name: str, place: Path) -> set[str]:
        """The paths that tools of that name told of, but for those below `place`, and what is gone with the tool."""
        told: set[str] = set()
        for rule in rules:
            text = rule.read_text(errors="surrogateescape")
            told |= {each.replace("$$", "$") for each in files_of_rule(text)} if name == "as" else _linked(text)
            rule.unlink()
        real_paths = {os.path.realpath(place / path) for path in told if not _is_gone(place, path)}
        own = f"{os.path.realpath(place)}{os.sep}"
        return {path for path in real_paths if not path.startswith(own)}

    def _is_no_code(self, path: str) -> bool:
        """Whether what is linked is a library of its own when it is loaded, what compilers link into any, or only names."""
        try:
            with open(path, "rb") as file:
                head = file.read(_MOST_SCRIPT_BYTES)
        except OSError:
            return False
        if head.startswith(_ELF) and head[16:18] == _SHARED_OBJECT.to_bytes(2, "little"):
            return True
        is_script, is_installed = not head.startswith((_ELF, *_ARCHIVES)), path.startswith(self._installed)
        if is_script:
            return is_installed or (len(head) < _MOST_SCRIPT_BYTES and not _GIVES.search(_without_comments(head)))
        return path in self._in_every_library or (is_installed and bool(_RUNTIME.fullmatch(os.path.basename(path))))


def _without_comments(script: bytes) -> bytes:
    return script if b'"' in script else _COMMENT.sub(b" ", script)  # what is quoted begins no comment


def _linked(rule: str) -> set[str]:
    """The files of a linker's rule: it escapes nothing, and writes one a line."""
    lines = rule.partition("\n\n")[0].splitlines()[1:]
    return {line.removesuffix(" \\").removeprefix("  ") for line in lines}


def _is_gone(place: Path, path: str) -> bool:
    """Whether it is a tool's own that is gone with it: a temporary, or a name without a folder, as compilers give sources.
    Another name that leads nowhere is no such thing: it may lead somewhere for the tool, through /proc say.
    """
    is_passing = os.sep not in path or path.startswith(f"{tempfile.gettempdir()}{os.sep}")
    return is_passing and not os.path.isfile(place / path)


def _real_tool(compiler: str, name: str) -> str | None:
    """The assembler or linker that `compiler` starts."""
    return shutil.which(_said([compiler, f"-print-prog-name={name}"]).strip() or name)


def _said(command: Iterable[str]) -> str:
    try:
        ran = subprocess.run([*command], capture_output=True, env={**os.environ, "LC_ALL": "C"}, timeout=60, check=False)
        return os.fsdecode(ran.stdout)
    except (OSError, subprocess.TimeoutExpired):
        return ""
