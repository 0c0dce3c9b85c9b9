"""What sources ask the preprocessor, where the answer may hang on headers that a stand-in leaves out.

A question after a macro is answered without a word where its header is missing: it would be another program.
"""

from __future__ import annotations

import functools
import re
import sysconfig
from collections.abc import Iterable, Sequence
from pathlib import Path

# Macros of PyTorch's headers that the stand-in lacks begin so (of 2105 that GCC lists for the one and not for the other,
# those that are neither the system's nor guards of PyTorch's own files).
_THEIRS = re.compile(
    r"\b_?(?:TORCH_|AT_|C10_|CAFFE2?_|D?CHECK|D?V?LOG|PYBIND11_|RECORD_|REGISTER_|FORALL_|MAKE_TORCH_|BUILD_FEATURE_"
    r"|HAS_(?:IMPL_ABSTRACT|PT2)|STRONG_HAS_|SKA_|SOFT_ASSERT|DEFINE_TO|EXPECTED_MAX_LEVEL|FORWARD_HAS_|DYNAMIC_TYPE_BIT)"
)
_QUESTION = re.compile(r"^[ \t]*#[ \t]*(?:el)?if(.*)", re.MULTILINE)
_DEFINITION = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)(.*)", re.MULTILINE)
_CONTINUED = re.compile(r"\\[ \t]*\r?\n")
_WORD = re.compile(r"\b[A-Za-z_]\w*")  # and no suffix of a number
# Answered by a compiler, by its flags or by CUDA's headers, whatever else is included.
_ANSWERED = re.compile(
    r"__\w+|def|ndef|defined|NDEBUG|CUDA_VERSION|CUDART_VERSION|USE_ROCM|_WIN32|_MSC_VER|and|or|not|true|false"
)


def ask_of_pytorchs(texts: Iterable[str]) -> bool:
    """Whether a condition in one of `texts` hangs on a macro that PyTorch's headers may define, by its name or by that of
    a macro that stands for it.
    """
    joined = _CONTINUED.sub(" ", "\n".join(texts))
    aliases = {name for name, body in _DEFINITION.findall(joined) if _THEIRS.search(body)}
    return any(
        _THEIRS.search(asked) or not aliases.isdisjoint(_WORD.findall(asked)) for asked in _QUESTION.findall(joined)
    )


def may_ask_of_pythons(texts: Sequence[str]) -> bool:
    """Whether a condition in one of `texts` may hang on a macro of Python.h, or of a system's header that comes with it.

    What the texts define themselves is theirs, unless Python defines it too.
    """
    joined = _CONTINUED.sub(" ", "\n".join(texts))
    asked = {word for line in _QUESTION.findall(joined) for word in _WORD.findall(line) if not _ANSWERED.fullmatch(word)}
    if not asked:
        return False
    bodies = dict(_DEFINITION.findall(joined))
    aliased = {word for name in asked & bodies.keys() for word in _WORD.findall(bodies[name])}
    return not asked <= bodies.keys() or not _pythons().isdisjoint(asked | aliased)


@functools.cache
def _pythons() -> frozenset[str]:
    """The macros that Python's own headers define."""
    headers = Path(sysconfig.get_paths()["include"]).rglob("*.h")
    texts = (path.read_text(encoding="utf-8", errors="replace") for path in headers)
    return frozenset(name for text in texts for name, _ in _DEFINITION.findall(text))
