"""What assembler and linker take into an extension besides what was compiled for it: files that `.incbin` copies in, objects,
archives and libraries.

No compiler tells of these, but the two say it themselves (`--MD`, and `--dependency-file` from binutils 2.35 on). GCC finds
a script of ours in the place of each, by COMPILER_PATH: no macro hides a directive from it, and code that is made at
link time passes it too. Other compilers may have their own assembler; nobody says then what was taken in.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from harness.build.dependencies import files_of_rule
from harness.build.flags import LARGEST_BYTES, TOOLKITS
from harness.build.installed_folders import installed_places
from harness.build.toolchain import find_host_compiler

_TELLS = {"as": "--MD", "ld": "--dependency-file"}
_SEARCHED = "COMPILER_PATH"
# What compilers link into every library, and CUDA's runtime.
_RUNTIME = re.compile(
    r"[SMg]?crt\w*\.o|lib(?:gcc|gcc_eh|gcov|\w+_nonshared|stdc\+\+_nonshared|pthread|dl|rt|atomic|cudart_static|cudadevrt|culibos)\.a"
)
_ELF, _ARCHIVES, _SHARED_OBJECT = b"\x7fELF", (b"!<arch>", b"!<thin>"), 3


@dataclass(frozen=True)
class TakenIn:
    """The `files` that one build took in from elsewhere, without what is installed and what has more than 64 MiB; and what of
    all has machine code that is `foreign` to its sources.
    """

    files: frozenset[str] = frozenset()
    foreign: tuple[str, ...] = ()


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

    def taken_in(self, place: Path, read: Collection[str]) -> TakenIn:
        """What was taken in since the last call by a build that ran in `place`, of whose files compilers `read` some."""
        assembled, linked = (self._told(name, place) for name in _TELLS)
        assembled -= {os.path.realpath(path) for path in read}
        foreign = assembled | {path for path in linked if not self._is_no_code(path)}
        files = {path for path in assembled | linked if not path.startswith(self._installed)}
        small_files = frozenset(path for path in files if os.path.isfile(path) and os.path.getsize(path) <= LARGEST_BYTES)
        return TakenIn(small_files, tuple(sorted(foreign)))

    def _told(self, name: str, place: Path) -> set[str]:
        """The paths that tools of that name told of, but for those below `place`, and what is gone with the tool."""
        told: set[str] = set()
        for rule in self._folder.glob(f"*.{name}.d"):
            text = rule.read_text(errors="surrogateescape")
            told |= {each.replace("$$", "$") for each in files_of_rule(text)} if name == "as" else _linked(text)
            rule.unlink()
        real_paths = {os.path.realpath(place / path) for path in told if not _is_gone(place, path)}
        own = f"{os.path.realpath(place)}{os.sep}"
        return {path for path in real_paths if not path.startswith(own)}

    def _is_no_code(self, path: str) -> bool:
        """Whether what is linked is a library of its own when it is loaded, or what compilers link into any."""
        try:
            with open(path, "rb") as file:
                head = file.read(18)
        except OSError:
            return False
        if head.startswith(_ELF) and head[16:] == _SHARED_OBJECT.to_bytes(2, "little"):
            return True
        is_script = not head.startswith((_ELF, *_ARCHIVES))
        return path.startswith(self._installed) and (is_script or bool(_RUNTIME.fullmatch(os.path.basename(path))))


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
