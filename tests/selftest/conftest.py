"""A corpus of a few files in a folder of its own, written from their headers."""

from __future__ import annotations

from pathlib import Path

import pytest

HEADER = '''"""{sentence}

Mechanism: {mechanism}
Expected: {expected}
Fools: {fools}
Device: {device}
{more}"""
'''


@pytest.fixture
def write_case(tmp_path):
    """`write_case("clock/name", body, fools=…)`: a file of the corpus below `tmp_path`, its header complete."""

    def write(place: str, body: str = "", more: str = "", **fields: str) -> Path:
        path = tmp_path / f"{place}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        given = {
            "sentence": "Does one thing.", "mechanism": "Something.", "expected": "incorrect/wrong_values",
            "fools": "answer", "device": "any", "more": more, **fields,
        }
        path.write_text(HEADER.format(**given) + body, encoding="utf-8")
        return path

    return write
