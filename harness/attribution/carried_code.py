"""Whether a source carries what may be machine code: long text, in its constants, that no language has.

A kernel that was compiled while the candidate ran is told to be its own by its text alone, and so is machine code under its
name that somebody else compiled. That has to come from somewhere, and most candidates are one file. This is a second line:
whoever spells code out as prose, or has it in a file beside, gets by.
"""

from __future__ import annotations

import ast
import re
import zlib
from collections.abc import Iterator

# Of code and prose a window of so many bytes shrinks to 0.60 of itself at most (the constants of PyTorch's, Triton's and
# KernelBench's own files and of this repository's candidates, 1,200 of them), of base64 to 0.72 at least.
_WINDOW_BYTES, _STEP_BYTES, _MOST_TEXT = 2048, 512, 0.65
_MOST_BYTES = 16 << 20
# Digits in hex shrink like text.
_UNBROKEN = re.compile(r"[0-9A-Za-z+/=_-]{1024}")


def carries_code(source: str) -> bool:
    """Whether the constants of `source` hold what may be machine code; so does what is no Python, or more than 16 MB of it."""
    try:
        content = "\n".join(_constants(ast.parse(source)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return True
    text = content.encode("utf-8", "surrogatepass")
    if len(text) > _MOST_BYTES or _UNBROKEN.search(content):
        return True
    windows = (text[at : at + _WINDOW_BYTES] for at in range(0, len(text) - _WINDOW_BYTES + 1, _STEP_BYTES))
    return any(len(zlib.compress(each, 9)) > _MOST_TEXT * _WINDOW_BYTES for each in windows)


def _constants(tree: ast.AST) -> Iterator[str]:
    """The texts of a source, and its whole numbers as the bytes that they stand for."""
    numbers = bytearray()
    for node in ast.walk(tree):
        value = node.value if isinstance(node, ast.Constant) else None
        if isinstance(value, bytes):
            yield value.decode("latin-1")
        elif isinstance(value, str):
            yield value
        elif isinstance(value, int) and not isinstance(value, bool):
            numbers += value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big")  # a sign is no part of a constant
        elif isinstance(value, float):
            yield repr(value)
    yield numbers.decode("latin-1")
