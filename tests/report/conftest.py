"""One hand-made record, which the scenarios of this room vary."""

from __future__ import annotations

import pytest

from harness.results.record import Record


@pytest.fixture
def make_record():
    def make(**changes) -> Record:
        plain = {"run_id": "r", "utc": "2026-05-01T12:30:05Z", "problem": "tril_matmul", "sizes": "M=4096"}
        return Record(**(plain | {"dtype": "float32", "candidate": "tiled", "status": "ok"} | changes))

    return make
