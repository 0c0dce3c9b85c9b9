"""Whether a text carries what may be machine code, in its constants or as a table.

A kernel is told to be the candidate's by its text, and so is machine code under its name that somebody else compiled. That
has to come from somewhere: long text in constants that no language has counts against it, and a long table of whole numbers.
This is a second line: whoever spells code out as prose gets by.
"""

from __future__ import annotations

import ast
import re
import zlib
from collections.abc import Iterator

# A comment that nobody closes goes on to the end; a search for its end from each place would take for ever.
C_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)|//[^\n]*", re.DOTALL)
# Of code and prose a window of so many bytes shrinks to 0.60 of itself at most (the constants of PyTorch's, Triton's and
# KernelBench's own files and of this repository's candidates, 1,200 of them), of base64 to 0.72 at least.
_WINDOW_BYTES, _STEP_BYTES, _MOST_TEXT = 2048, 512, 0.65
_MOST_BYTES = 16 << 20
# Digits in hex shrink like text. Chinese shrinks as little as bytes do (to 0.71), and has a stop or a blank before long.
_LETTERS = r"\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"  # Japanese, Chinese, Korean
_IDEOGRAPHS = re.compile(rf"[{_LETTERS}\u3000-\u303f\uff00-\uffef]")
_UNBROKEN = re.compile(rf"[0-9A-Za-z+/=_-]{{1024}}|[{_LETTERS}]{{200}}")
# Whole numbers as Python, C, an assembler and escapes have them, and what stands between those of one table: no brackets, as
# between tuples, and more than blanks, as in a drawing. Of 14,600 files of PyTorch, NumPy, CUDA and KernelBench three had as
# many in a row, brackets left out: two tables and a test.
_NUMBER = re.compile(
    r"(?<![\w.])(?:0[xX][0-9a-fA-F']+|0[bB][01']+|\d[\d']*)[uUlL]*(?![\w.])|\\x[0-9a-fA-F]{1,2}|\\[0-7]{1,3}"
)
_BETWEEN = re.compile(r"""(?:|\s*[,;"'\\][\s,;"'\\]*(?:\.\w+\s+)?|\s*\.\w+\s+)[-+~]?""")
_LONG_TABLE = 512
# A codebook of a quantization is made of few bytes (three in llama.cpp's, eight in its widest); 512 bytes of code of 50 and more.
_MOST_BYTES_OF_A_CODEBOOK = 16
_MOST_DIGITS = 1000  # Python reads no more than 4,300


def source_carries_code(source: str) -> bool:
    """Whether Python `source` holds what may be machine code; so does what is no Python, or more than 16 MB of it."""
    try:
        constants = "\n".join(_constants(ast.parse(source)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return True
    return _has_long_table(source) or _is_like_no_text(constants)


def text_carries_code(text: str) -> bool:
    """Whether a `text` in another language, C++ say, holds what may be machine code; so does one of more than 16 MB."""
    return _has_long_table(text) or _is_like_no_text(text)


def _is_like_no_text(content: str) -> bool:
    if len(content) > _MOST_BYTES or _UNBROKEN.search(content):
        return True
    text = _IDEOGRAPHS.sub(" ", content).encode("utf-8", "surrogatepass")
    windows = (text[at : at + _WINDOW_BYTES] for at in range(0, len(text) - _WINDOW_BYTES + 1, _STEP_BYTES))
    most = _MOST_TEXT * _WINDOW_BYTES
    return any(len(zlib.compress(each, 1)) > most and len(zlib.compress(each, 9)) > most for each in windows)


def _has_long_table(text: str) -> bool:
    """Whether 512 whole numbers follow one another, in an array of C's say: machine code shrinks like text too."""
    in_a_row: list[str] = []
    text, end = C_COMMENT.sub(" ", text), 0
    for number in _NUMBER.finditer(text):
        if not _BETWEEN.fullmatch(text, end, number.start()):
            if _is_table(in_a_row):
                return True
            in_a_row = []
        in_a_row.append(number[0])
        end = number.end()
    return _is_table(in_a_row)


def _is_table(numbers: list[str]) -> bool:
    """Whether they are as many as code needs, and not put together of few bytes."""
    if len(numbers) < _LONG_TABLE:
        return False
    seen: set[int] = set()
    for number in numbers:
        value = _value(number)
        seen.update(value.to_bytes((value.bit_length() + 7) // 8, "big"))
        if len(seen) > _MOST_BYTES_OF_A_CODEBOOK:
            return True
    return False


def _value(number: str) -> int:
    digits = number.lstrip("\\").rstrip("uUlL").replace("'", "")
    if digits[:1] in "xX":
        return int(digits[1:], 16)
    if number.startswith("\\"):
        return int(digits, 8)
    base = {"x": 16, "b": 2}.get(digits[1:2].lower())
    return int(digits[:_MOST_DIGITS]) if base is None else int(digits[2:], base)


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
