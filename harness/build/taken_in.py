"""What assembler and linker take into an extension besides what was compiled for it: files that `.incbin` copies in, objects,
archives and libraries.

No compiler tells of these, but the two say it themselves (`--MD`, and `--dependency-file` from binutils 2.35 on). GCC starts
them through a script of ours (`-wrapper`), wherever it has found them: no macro hides a directive from it. Whether a
compiler does is tried beforehand. A tool that did not tell of a build, Clang's own assembler say, is named: nobody knows
then. What is assembled at link time would not pass the script, so there is no link-time optimization. Whether an extension is
what its sources say follows from that, and from what compilers read.
"""

from __future__ import annotations

import functools
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from harness.build.dependencies import files_of_rule
from harness.build.flags import LARGEST_BYTES, TOOLKITS
from harness.build.installed_folders import installed_places
from harness.build.toolchain import cuda_home, find_host_compiler
from harness.model.files.carried_code import text_carries_code

# A zero, and how a source that is said to be preprocessed asks for a header that was compiled before.
_NO_SOURCES = (b"\0", b"pch_preprocess")
_HEAD_BYTES = 4096  # in which every object, library and archive has a zero
# The last of two such options counts, and a candidate's come before. A linker that a flag names may know no such option.
_SCRIPT = """#!/bin/sh
case ${{1##*/}} in
as | *-as) exec "$@" --MD {folder}/$$.as.d ;;
collect2) case " $* " in *" -fuse-ld="*) ;; *) exec "$@" --dependency-file={folder}/$$.ld.d ;; esac ;;
esac
exec "$@"
"""
# Of commands in a pipe GCC starts the first alone so. PyTorch asks for a list of what was read without the system's headers,
# which a directory, a pragma or a line's mark makes any header one of.
_COMPILER = """#!/bin/sh
rule=; before=
for each do
  shift
  case $each in
  -pipe) ;;
  -MMD) set -- "$@" -MD ;;
  *) set -- "$@" "$each" ;;
  esac
  [ "$before" = -MF ] && rule=$each
  before=$each
done
{compiler} -wrapper {script} -include {first} "$@" -fno-lto
code=$?
[ ! -f "$rule" ] || cp "$rule" {folder}/$$.cc.d
exit $code
"""
# No header that was compiled before, and is on no list, is taken after a declaration.
_FIRST = "#ifndef __ASSEMBLER__\nstruct no_header_was_compiled_before;\n#endif\n"
# Names that a rule of make's has as they are: a reader takes others for the end of one, or for several.
_PLAIN_NAMES = re.compile(r"(?:[\w/.+,=@%~()\[\]{}$-]|\\? )*")
# What GCC and nvcc call a file that is gone with them.
_TEMPORARY = re.compile(r"cc\w{6}\.\w+|tmpxft_[\w.-]+")
# What compilers bring to link besides what they link into every library, CUDA's runtime among it.
_RUNTIME = re.compile(
    r"[SMg]?crt\w*\.o|lib(?:gcc|gcc_eh|gcov|\w+_nonshared|stdc\+\+(?:_nonshared|fs|exp)?|pthread|dl|rt|atomic|gomp|"
    r"quadmath|m|m-[\d.]+|mvec|cudart_static|cudadevrt|culibos)\.a"
)
# A linker's script that only lists names, those to be exported say.
_COMMENT = rb"/\*(?:[^*]|\*(?!/))*\*/"
_LIST_OF_NAMES = re.compile(rb"""
    (?: %(blank)s [\w.]* %(blank)s
        \{ (?: [\w\s.:;*?$@^-] | "[^"\n]*" | %(comment)s | extern %(blank)s "[^"\n]*" %(blank)s
               \{ (?: [\w\s.;*?$] | "[^"\n]*" | %(comment)s )* \} )* \}
        [\w.\s]* ;
    )+ %(blank)s
""" % {b"comment": _COMMENT, b"blank": rb"(?:\s|%s)*" % _COMMENT}, re.VERBOSE)
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
        homes = {Path(tool).resolve().parent.parent for tool in (compiler, nvcc) if tool} - {Path("/")}
        toolkits = [cuda_home(nvcc)] if nvcc is not None else []
        self._installed = installed_places(own_folder, (*TOOLKITS, *toolkits, *map(str, homes)))
        folder.mkdir(parents=True, exist_ok=True)
        self._script = _program(folder / "tell", _SCRIPT.format(folder=shlex.quote(str(folder))))
        self._first = _program(folder / "first.h", _FIRST)
        self._environment: dict[str, str] = {}
        self._in_every_library: frozenset[str] = frozenset()
        if compiler is not None:
            # Without a source, what is linked is the compiler's own, wherever a package manager has put it.
            self._environment |= self._told_of({"CXX": compiler}, ["-shared"])
            self._in_every_library = frozenset(self._told("ld", folder))
        if nvcc is not None:
            self._environment |= self._told_of(_host_of_nvcc(), ["-c"])

    def _told_of(self, compilers: Mapping[str, str], flags: Sequence[str]) -> dict[str, str]:
        """By the variable that names each of these compilers, a program that starts it so that its tools tell; without those
        that do not.
        """
        told = {}
        for name, compiler in compilers.items():
            place = self._folder / name / os.path.basename(os.path.realpath(compiler))  # PyTorch goes by its name
            named = {"compiler": compiler, "script": self._script, "first": self._first, "folder": str(self._folder)}
            text = _COMPILER.format(**{each: shlex.quote(path) for each, path in named.items()})
            self._forget()
            _ran([_program(place, text), *flags, "-x", "assembler", os.devnull, "-o", str(self._folder / "nothing")])
            if self._rules("as") and (self._rules("ld") or "-c" in flags):
                told[name] = str(place)
        return told

    @contextmanager
    def watching(self) -> Iterator[None]:
        """While what is compiled is to be told of."""
        before = {name: os.environ.get(name) for name in self._environment}
        self._forget()
        os.environ.update(self._environment)
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value

    def _rules(self, name: str) -> list[Path]:
        return list(self._folder.glob(f"*.{name}.d"))

    def _forget(self) -> None:
        """What was told so far."""
        for rule in self._folder.glob("*.d"):
            rule.unlink()

    def taken_in(self, place: Path, sources: Collection[str]) -> TakenIn:
        """What the last build took in, of `sources`, in `place`."""
        # Of each object, and of nothing that is not linked as one, a source among the linker's flags say.
        is_of_each = 0 < len(list(place.glob("*.o"))) == len(self._rules("as"))
        plain = {name: all(map(_has_plain_names, self._rules(name))) for name in ("cc", "as")}
        told = {"g++": plain["cc"], "as": plain["as"] and is_of_each, "ld": bool(self._rules("ld"))}
        silent = tuple(name for name, has_told in told.items() if not has_told)
        assembled, linked = self._told("as", place, sources), self._told("ld", place)
        foreign = assembled | {path for path in linked if not self._is_no_code(path)}
        files = {path for path in assembled | linked if not path.startswith(self._installed)}
        small_files = frozenset(path for path in files if os.path.isfile(path) and os.path.getsize(path) <= LARGEST_BYTES)
        return TakenIn(small_files, tuple(sorted(foreign)), silent)

    def _told(self, name: str, place: Path, sources: Collection[str] = ()) -> set[str]:
        """The paths that tools of that name told of, but for `sources`, those below `place`, and what is gone with the tool."""
        told: set[str] = set()
        for rule in self._rules(name):
            text = rule.read_text(errors="surrogateescape")
            told |= {each.replace("$$", "$") for each in files_of_rule(text)} if name == "as" else _linked(text)
        real_paths = {os.path.realpath(place / path) for path in told.difference(sources) if not _is_gone(place, path)}
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
        if (len(head) < _MOST_SCRIPT_BYTES and _LIST_OF_NAMES.fullmatch(head)) or path in self._in_every_library:
            return True
        is_text = not head.startswith((_ELF, *_ARCHIVES)) and b"\0" not in head  # an installed library's own script
        return path.startswith(self._installed) and (is_text or bool(_RUNTIME.fullmatch(os.path.basename(path))))


def _linked(rule: str) -> set[str]:
    """The files of a linker's rule: it escapes nothing, and writes one a line."""
    lines = rule.partition("\n\n")[0].splitlines()[1:]
    return {line.removesuffix(" \\").removeprefix("  ") for line in lines}


def _has_plain_names(rule: Path) -> bool:
    text = rule.read_text(errors="surrogateescape").replace("\\\n", " ").rstrip("\n")
    return bool(_PLAIN_NAMES.fullmatch(text.partition(":")[2]))


def _is_gone(place: Path, path: str) -> bool:
    """Whether it is a tool's own that is gone with it: a temporary, or a name without a folder, as compilers give sources.
    Another name that leads nowhere is no such thing: it may lead somewhere for the tool, through /proc say.
    """
    is_temporary = path.startswith(f"{tempfile.gettempdir()}{os.sep}") and _TEMPORARY.fullmatch(os.path.basename(path))
    is_passing = os.sep not in path or bool(is_temporary)
    return is_passing and not os.path.isfile(place / path)


def _host_of_nvcc() -> dict[str, str]:
    """The compiler that nvcc starts, by the variable that names it or its folder: PyTorch hands on $CC, and nvcc heeds its own."""
    for name in ("CC", "NVCC_CCBIN"):
        if named := os.environ.get(name):
            found = shutil.which(os.path.join(named, "gcc") if os.path.isdir(named) else named)
            return {name: found} if found is not None else {}
    found = shutil.which("gcc")
    return {"NVCC_CCBIN": found} if found is not None else {}


def _program(path: Path, text: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
    return str(path)


def _ran(command: Sequence[str]) -> None:
    with suppress(OSError, subprocess.TimeoutExpired):
        subprocess.run(command, capture_output=True, timeout=60, check=False)


def why_unproven(taken: TakenIn, read: Collection[str], own: Iterable[str], flags: str, unsettled: Path | None) -> str:
    """Why nobody knows whether an extension is what its sources say; empty where it is so.

    `taken` is what assembler and linker took in, `read` what compilers read, and `own` what of that came with no toolchain: the
    candidate's headers, and what PyTorch wrote of its call. Those and the `flags` are looked at for machine code, whatever text
    the candidate's own file had. What lies below `unsettled` its process may write again before anybody looks. A library among
    what compilers read was embedded, whoever installed it.
    """
    if taken.silent:
        return f"{taken.silent[0]} did not tell all that its build took in (GCC's tools do, with binutils from 2.35 on)"
    if taken.foreign:
        return f"it has machine code that was not compiled from its sources: {taken.foreign[0][-200:]}"
    rewritten = sorted(below(unsettled, {*read, *taken.files})) if unsettled is not None else []
    if rewritten:
        return f"it was compiled from what the candidate wrote while it was imported: {_short(rewritten[0])}"
    embedded = [path for path in sorted(read) if _is_binary(path)]
    if embedded:
        return f"it has what a compiler read of a file that is no text: {_short(embedded[0])}"
    carrying = [path for path in sorted(own) if _carries_code(path)] or ["a flag"] * text_carries_code(flags)
    return f"its sources may carry machine code as bytes or as numbers: {_short(carrying[0])}" if carrying else ""


def below(folder: Path, paths: Iterable[str]) -> set[str]:
    """Those of `paths` that lead through `folder`, under any of its names, or where nobody can follow them."""
    beginning = f"{os.path.realpath(folder)}{os.sep}"

    @functools.cache  # most lie in a few folders
    def leads_through(place: str) -> bool:
        """A link below `folder` may lead elsewhere by now; what led to it has not changed."""
        real = f"{os.path.realpath(place)}{os.sep}"
        if real.startswith((beginning, "/proc/")):
            return True
        above = os.path.dirname(place)
        return above != place and leads_through(above)

    return {path for path in paths if leads_through(os.path.dirname(path)) or leads_through(path)}


def _is_binary(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return b"\0" in file.read(_HEAD_BYTES)
    except OSError:
        return False  # that of the candidate's own counts as code


def _carries_code(path: str) -> bool:
    """Whether a text does, or it is none: a header compiled before, a name for something else."""
    try:
        text = Path(path).read_bytes() if os.path.isfile(path) else b"\0"
    except OSError:
        return True
    return any(mark in text for mark in _NO_SOURCES) or text_carries_code(text.decode("utf-8", errors="replace"))


def _short(path: str) -> str:
    return os.path.basename(path)[:100]
