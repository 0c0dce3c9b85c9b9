"""What the flags of a call lead to: folders of headers, and files that no compiler tells of.

With -MD compilers tell which sources and headers they read. A linker tells nothing of its libraries, nor does anybody of
a file of further flags, nor an assembler of what it takes in by `.incbin`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from harness.build.installed_folders import installed_places

_COMPILERS = ("extra_cflags", "extra_cuda_cflags", "extra_sycl_cflags")
_ALL = (*_COMPILERS, "extra_ldflags")
_INCLUDES = ("-I", "-isystem", "-iquote", "--include-path")
_INCBIN = re.compile(r'\.incbin\s+\\*"([^"\\]+)')
_LIBRARY_ENDINGS = ("so", "a")
# A word of a flag that names a file may have something before it: @flags.txt, -Wl,--version-script=exported.map.
_BEFORE_A_NAME = re.compile(r"[@,=]")
# Where vendors put toolkits, whose libraries are linked.
_TOOLKITS = ("/opt",)
# These files are hashed whenever a build is looked for.
_LARGEST_BYTES = 64 << 20


def header_folders(arguments: Mapping[str, Any]) -> list[Path]:
    """The include paths that a call gives, as arguments and as flags."""
    flags = _words(arguments, _COMPILERS)
    named = [after for flag, after in zip(flags, [*flags[1:], ""]) if flag in _INCLUDES]
    joined = [flag[2:] for flag in flags if flag.startswith("-I") and flag not in _INCLUDES]
    return [Path(each) for each in [*(arguments.get("extra_include_paths") or []), *named, *joined]]


def files_named(arguments: Mapping[str, Any], texts: Iterable[str], place: Path, own_folder: Path) -> set[str]:
    """The files that the flags of a call name, and those that its `texts` have an assembler take in, where they are there.

    Names are looked for from `place`, where compilers run, and what is taken in also on the include paths. What is
    installed is left out, unless the candidate's `own_folder` lies there too, and so are files above 64 MiB.
    """
    words = _words(arguments, _ALL)
    named = [part for word in words for part in (word, *_BEFORE_A_NAME.split(word)[1:])]
    taken = [name for text in texts for name in _INCBIN.findall(text)]
    paths = [place / name for name in (*named, *taken)]
    paths += [place / folder / name for folder in header_folders(arguments) for name in taken]
    installed = installed_places(own_folder, _TOOLKITS)
    return {str(path) for path in (*paths, *_libraries(words, place)) if _is_own(path, installed)}


def _libraries(words: list[str], place: Path) -> Iterable[Path]:
    """What -l may stand for in the folders of -L."""
    folders = [word[2:] for word in words if word.startswith("-L") and len(word) > 2]
    folders += [after for word, after in zip(words, words[1:]) if word == "-L"]
    names = [word[2:] for word in words if word.startswith("-l") and len(word) > 2]
    files = [name[1:] if name.startswith(":") else f"lib{name}.{ending}" for name in names for ending in _LIBRARY_ENDINGS]
    return [place / folder / file for folder in folders for file in files]


def _words(arguments: Mapping[str, Any], lists: Iterable[str]) -> list[str]:
    """The flags of a call, which a shell would split at blanks."""
    words: list[str] = []
    for name in lists:
        for flag in arguments.get(name) or []:
            try:
                words += shlex.split(str(flag))
            except ValueError:
                words.append(str(flag))
    return words


def _is_own(path: Path, installed: tuple[str, ...]) -> bool:
    try:
        real = path.resolve()
        is_small = real.is_file() and real.stat().st_size <= _LARGEST_BYTES
        return is_small and not str(real).startswith(installed)
    except (OSError, ValueError, RuntimeError):  # no name that a file may have, or links in a circle
        return False
