"""Which flags of a build are known to do no more than compile and link.

A compiler starts programs: its own parts, and what `-wrapper`, `-specs`, `-B`, `-fplugin` or `-ccbin` name. ninja hands its
commands to a shell, which starts what a `;` or a `$(…)` says. Whoever starts a program in a build may put another library
in the place of what was compiled. So flags are held against a list of those that start none.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from typing import Any

_FLAGS, _PATHS = ("extra_cflags", "extra_cuda_cflags", "extra_ldflags"), ("extra_include_paths", "sources")
_NAME = re.compile(r"[A-Za-z_]\w*")
# What a shell makes nothing of, but for quotes and what they quote.
_PLAIN = re.compile(r"""[\w\-+=.,:/@%"'\\\[\] ]*""")
# Flags that hand the rest of their word on to another part of the compiler.
_HANDS_ON = re.compile(r"-Wl,|(?:-Xcompiler|--compiler-options|-Xlinker|--linker-options)=")
_KNOWN = re.compile(
    r"-(?:[DUILlOWgm]|f(?!plugin|use-ld)|isystem|iquote).*"
    r"|-[GVcstvwxz]|-(?:ansi|include|pedantic|pipe|pthread|shared)"
    r"|-X(?:compiler|cudafe|fatbin|linker|nvlink|ptxas)(?:=.*)?|--?(?:compiler|linker|ptxas)-options(?:=.*)?"
    r"|--?(?:arch|code|debug|default-stream|define-macro|device-debug|diag[-_]suppress|dlto|expt-extended-lambda|"
    r"expt-relaxed-constexpr|extended-lambda|extra-device-vectorization|fmad|ftz|gencode|generate-code|generate-line-info|"
    r"gpu-architecture|gpu-code|include-path|library|library-path|lineinfo|lto|maxrregcount|optimize|prec-div|prec-sqrt|rdc|"
    r"relocatable-device-code|resource-usage|restrict|split-compile|std|threads|undefine-macro|use_fast_math|verbose)(?:=.*)?"
    # the linker's
    r"|--?(?:no-)?(?:as-needed|gc-sections|whole-archive)|--?(?:start|end)-group|--?(?:disable|enable)-new-dtags"
    r"|--?(?:exclude-libs|rpath|rpath-link|version-script)(?:=.*)?|-B(?:dynamic|static|symbolic)"
)


def unknown_flags(call: Mapping[str, Any], common: Iterable[str] = ()) -> list[str]:
    """What of a `call` (as `extension_call` has it), and of PyTorch's `common` flags as its caller left them, may start a
    program, each once.
    """
    arguments = call["arguments"]
    name = str(arguments.get("name"))
    unknown = [] if _NAME.fullmatch(name) else [name]
    unknown += [path for key in _PATHS for path in _texts(arguments.get(key)) if not _PLAIN.fullmatch(path)]
    for flag in [*(each for key in _FLAGS for each in _texts(arguments.get(key))), *map(str, common)]:
        if not all(map(_is_known, _words(flag))):
            unknown.append(flag)
    return list(dict.fromkeys(unknown))


def _texts(given: Any) -> list[str]:
    return [given] if isinstance(given, str) else [str(each) for each in given or []]


def _words(flag: str) -> list[str]:
    """What compilers see of a flag: words of a shell, and what they split at commas; the flag where no shell splits it."""
    if not _PLAIN.fullmatch(flag):
        return [f"@{flag}"]
    try:
        words = shlex.split(flag)
    except ValueError:
        return [f"@{flag}"]
    return [part for word in words for each in _HANDS_ON.sub("", word, 1).split(",") for part in each.split()]


def _is_known(word: str) -> bool:
    """Whether it is known to start nothing; a word without a dash is an input, or what a known flag is given."""
    return bool(_KNOWN.fullmatch(word)) if word.startswith("-") else not word.startswith("@")
