"""What the flags of a build lead to, and which of them may start a program.

With -MD compilers tell which sources and headers they read, but not of a file of further flags: that is looked up here.

A compiler starts programs: its own parts, and what `-wrapper`, `-specs`, `-B`, `-fplugin` or `-ccbin` name. ninja hands
its commands to a shell, which starts what a `;` or a `$(…)` says. Whoever starts a program in a build may put another
library in the place of what was compiled. So flags are held against a list of those that start none.
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
# A word of a flag that names a file may have something before it: @flags.txt, -Wl,--version-script=exported.map.
_BEFORE_A_NAME = re.compile(r"[@,=]")
# Where vendors put toolkits, whose libraries are linked.
TOOLKITS = ("/opt",)
# These files are hashed whenever a build is looked for.
LARGEST_BYTES = 64 << 20
_FLAGS, _PATHS = ("extra_cflags", "extra_cuda_cflags", "extra_ldflags"), ("extra_include_paths", "sources")
_NAME = re.compile(r"[A-Za-z_]\w*")
# What a shell makes nothing of, but for quotes and what they quote; and the one place where brackets are no pattern of it.
_PLAIN = re.compile(r"""[\w\-+=.,:/@%"'\\ ]*""")
_CODE_LIST = re.compile(r"\bcode=\[[\w,]+\]")
# Flags that hand the rest of their word on to another part of the compiler.
_HANDS_ON = re.compile(
    r"-Wl,|-X(?:compiler|cudafe|fatbin|linker|nvlink|ptxas)="
    r"|--?(?:compiler|cudafe|fatbin|linker|nvlink|ptxas)-options="
)
_KNOWN = re.compile(
    r"-(?:[DUILO]|g|m(?!llvm|ri)|l(?!ib$|ink$|dir|ibdevice)|W(?![apl]$)|isystem|iquote).*"
    # Without those that load code into the compiler, or read or write a file of any name: and single dashes begin long options
    # of nvcc's and of the linker's too.
    r"|-f(?!plugin|pass-plugin|use-ld|dump|modules?\b|module-|offload|opt-info|profile|auto-profile|save-optimization|callgraph|"
    r"branch-prob|deps|directives|pch|preprocessed|input-charset|exec-charset|device-time|atbin|ormat|ilter)[A-Za-z][\w+-]*"
    r"|-f(?:abi-version|align-\w+|cf-protection|constexpr-[\w-]+|(?:debug|file|macro)-prefix-map|diagnostics-color|"
    r"excess-precision|fp-contract|inline-limit|lto|mad|max-errors|openmp|simd-cost-model|stack-reuse|template-[\w-]+|tls-model|"
    r"tz|vect-cost-model|visibility)=.*"
    r"|-[GVcstvwxz]|-(?:ansi|include|pedantic|pipe|pthread|shared|static-libgcc|static-libstdc\+\+)"
    r"|-X(?:compiler|cudafe|fatbin|linker|nvlink|ptxas)|--?(?:compiler|cudafe|fatbin|linker|nvlink|ptxas)-options"
    r"|--?(?:arch|code|debug|default-stream|define-macro|device-debug|diag[-_]suppress|dlto|expt-extended-lambda|"
    r"expt-relaxed-constexpr|extended-lambda|extra-device-vectorization|fmad|ftz|gencode|generate-code|generate-line-info|"
    r"gpu-architecture|gpu-code|include-path|library|library-path|lineinfo|lto|maxrregcount|optimize|prec-div|prec-sqrt|rdc|"
    r"relocatable-device-code|resource-usage|restrict|split-compile|std|threads|undefine-macro|use_fast_math|verbose)(?:=.*)?"
    # ptxas's, fatbinary's and cudafe's
    r"|--?(?:allow-expensive-optimizations|def-load-cache|def-store-cache|dlcm|dscm|opt-level)=\w+|--?compress(?:-all|-mode=\w+)?"
    r"|--?warn-(?:on-)?(?:double-usage|local-memory-usage|lmem-usage|spills)|--?display[-_]error[-_]number"
    # the linker's
    r"|--?(?:no-)?(?:as-needed|gc-sections|whole-archive)|--?(?:start|end)-group|--?(?:disable|enable)-new-dtags"
    r"|--?(?:exclude-libs|rpath|rpath-link|soname|version-script)(?:=.*)?|-Bsymbolic(?:-functions)?"
)
# What a source is said to be after -x, that is none of C++ or CUDA.
_OTHER_LANGUAGES = ("-cpp-output", "assembler", "assembler-with-cpp")
# Compilers take these for the beginning of where their tools lie, wherever they are not handed on.
_TO_LINKER_ALONE = re.compile(r"-B(?:dynamic|static)")


def header_folders(arguments: Mapping[str, Any]) -> list[Path]:
    """The include paths that a call gives, as arguments and as flags."""
    flags = _words(arguments, _COMPILERS)
    named = [after for flag, after in zip(flags, [*flags[1:], ""]) if flag in _INCLUDES]
    joined = [flag[2:] for flag in flags if flag.startswith("-I") and flag not in _INCLUDES]
    return [Path(each) for each in [*(arguments.get("extra_include_paths") or []), *named, *joined]]


def files_named(arguments: Mapping[str, Any], place: Path, own_folder: Path) -> set[str]:
    """The files there are that the flags of a call name, looked for from `place`, where compilers run.

    What is installed is left out, unless the candidate's `own_folder` lies there too, and so are files above 64 MiB.
    """
    words = _words(arguments, _ALL)
    named = [part for word in words for part in (word, *_BEFORE_A_NAME.split(word)[1:])]
    installed = installed_places(own_folder, TOOLKITS)
    return {str(path) for path in (place / name for name in named) if _is_own(path, installed)}


def texts_of(arguments: Mapping[str, Any]) -> list[str]:
    """The flags of a call."""
    return [flag for name in _ALL for flag in _texts(arguments.get(name))]


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
        is_small = real.is_file() and real.stat().st_size <= LARGEST_BYTES
        return is_small and not str(real).startswith(installed)
    except (OSError, ValueError, RuntimeError):  # no name that a file may have, or links in a circle
        return False


def unknown_flags(call: Mapping[str, Any], common: Iterable[str] = ()) -> list[str]:
    """What of a `call` (see `extension_call`), and of PyTorch's `common` flags, may start a program, each once."""
    arguments = call["arguments"]
    name = str(arguments.get("name"))
    unknown = [] if _NAME.fullmatch(name) else [name]
    unknown += ["with_sycl"] if arguments.get("with_sycl") or arguments.get("extra_sycl_cflags") else []
    unknown += [path for key in _PATHS for path in _texts(arguments.get(key)) if not _PLAIN.fullmatch(path)]
    flags = [*(each for key in _FLAGS for each in _texts(arguments.get(key))), *map(str, common)]
    return list(dict.fromkeys([*unknown, *(flag for flag in flags if not _is_known(flag))]))


def _texts(given: Any) -> list[str]:
    """What a call was given for a list of texts: one, several or nothing. PyTorch says itself what else it does not take."""
    if isinstance(given, str):
        return [given]
    return [str(each) for each in given] if isinstance(given, Iterable) else []


def _is_known(flag: str) -> bool:
    """Whether it is known to start nothing: each word that a shell makes of it."""
    try:
        words = shlex.split(flag) if _PLAIN.fullmatch(_CODE_LIST.sub("", flag)) else None
    except ValueError:
        words = None
    return words is not None and all(map(_is_known_word, words))


def _is_known_word(word: str) -> bool:
    """What compilers see of a word is split at commas; a part without a dash is an input, or what a known flag is given."""
    handed_on = _HANDS_ON.match(word)
    before = handed_on[0] if handed_on is not None else ""
    parts = [part for each in word.removeprefix(before).split(",") for part in each.split()]
    return all(
        bool(_KNOWN.fullmatch(part) or (before == "-Wl," and _TO_LINKER_ALONE.fullmatch(part)))
        if part.startswith("-") else not (part.startswith("@") or part.endswith(_OTHER_LANGUAGES))
        for part in parts
    )
