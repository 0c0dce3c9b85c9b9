"""What in a source may be machine code, and what is text."""

from __future__ import annotations

import base64
import random

import pytest

from harness.model.files.carried_code import source_carries_code, text_carries_code
from harness.model.paths import REPOSITORY

CODE = random.Random(1).randbytes(3000)
LINES = base64.encodebytes(CODE).decode()
WRITTEN = sorted([*(REPOSITORY / "candidates").glob("*/*.py"), *(REPOSITORY / "tests" / "adversarial").glob("*/*.py")])


@pytest.mark.parametrize("source", [
    f"CODE = {CODE!r}",
    f"CODE = {base64.b64encode(CODE).decode()!r}",
    f"CODE = '''{LINES}'''",
    f"CODE = {CODE.hex()!r}",
    f"CODE = {list(CODE)!r}",
    f"CODE = {[int.from_bytes(CODE[at:at + 8], 'little') for at in range(0, 3000, 8)]!r}",
    f"CODE = {hex(int.from_bytes(CODE, 'little'))}",
    f"CODE = {' + '.join(map(repr, LINES.split()))}",
    f"def f():\n    return {dict(enumerate(LINES.split()))!r}",
    "not Python at all",
], ids=["bytes", "base64", "lines", "hex", "numbers", "words", "one number", "added up", "in a dictionary", "no Python"])
def test_bytes_in_any_form_are_seen(source):
    assert source_carries_code(source)


WORDS = [int.from_bytes(b"\x48\x89\xe5\0" + CODE[at:at + 1] + b"\0\0\0", "little") for at in range(600)]


@pytest.mark.parametrize("text", [
    ", ".join(map(str, WORDS)),
    ",\n".join(f"{word:#x}ull" for word in WORDS),
    ", ".join(f"0b{word % 2 ** 16:016b}" for word in (each >> 32 for each in WORDS)),
    ", ".join(f"{word:,}".replace(",", "'") for word in WORDS),
    "/**/,".join(map(str, WORDS)),
    ", // one\n".join(map(str, WORDS)),
    "".join(f"    .quad {word:#x}\n" for word in WORDS),
    "".join(f'"\\x{(word >> 32) % 256:02x}\\0"\n' for word in WORDS),
], ids=["decimal", "hex", "binary", "grouped", "with comments", "with ends of lines", "assembler", "escapes"])
def test_a_long_table_of_c_or_of_an_assembler_is_seen_though_it_shrinks_like_text(text):
    assert source_carries_code(f"CPP = r'''{text}'''")
    assert source_carries_code(f"CPP = '/* */'\nTABLE = {WORDS}"), "and one of Python's"
    assert not source_carries_code(f"CPP = r'''{text[:len(text) // 3]}'''")
    assert text_carries_code(text) and not text_carries_code(text[:len(text) // 3])


def test_a_codebook_of_few_bytes_is_none():
    picked = random.Random(3)
    words = [int.from_bytes(bytes(picked.choices((0x08, 0x19, 0x2b), k=8)), "little") for _ in range(2048)]
    assert not text_carries_code("static const uint64_t grid[] = {" + ", ".join(map(hex, words)) + "};")


@pytest.mark.parametrize("text", [LINES, CODE.hex(), ", ".join(['12' * 2500] * 600)], ids=["base64", "hex", "numbers that are too long"])
def test_other_languages_texts_are_looked_at_as_they_are(text):
    assert text_carries_code(f'const char* code = "{text}";')


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: path.stem)
def test_of_this_repositorys_candidates_two_cheats_carry_code_and_no_other(path):
    carries = path.stem.startswith("cubin_") or path.stem == "syntax_error"
    assert source_carries_code(path.read_text(encoding="utf-8")) == carries


@pytest.mark.parametrize("text", [
    f"CONFIGS = {[(64, 128, 32, 4, number % 7) for number in range(300)]}",
    "DRAWING = " + repr("\n".join(" ".join(map(str, range(32))) for _ in range(32))).replace("\\n", " \\\n"),
], ids=["configurations", "a drawing"])
def test_a_list_of_tuples_and_a_drawing_of_numbers_are_none(text):
    assert not source_carries_code(text)


def test_a_table_of_a_hundred_numbers_is_none():
    assert not source_carries_code(f"TABLE = {[random.Random(2).random() for _ in range(100)]!r}\nSIZES = {list(range(500))!r}")


def test_chinese_prose_is_text_and_bytes_in_its_letters_are_not():
    letters = [chr(0x4E00 + each) for each in random.Random(5).choices(range(3000), k=2000)]
    prose = "".join(letter + "，" * (at % 20 == 19) for at, letter in enumerate(letters))
    assert not text_carries_code(f"// {prose}") and not source_carries_code(f"TEXT = {prose!r}")
    assert text_carries_code(f"// {''.join(letters)}")
