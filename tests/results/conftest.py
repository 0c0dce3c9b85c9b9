"""One hand-made record, which the scenarios of this room vary."""

from __future__ import annotations

import pytest

from harness.results.record import Record

_PLAIN = {
    "run_id": "20260501T123005Z-7f3a",
    "utc": "2026-05-01T12:30:05Z",
    "problem": "tril_matmul",
    "sizes": "M=4096",
    "dtype": "float32",
    "candidate": "tiled",
    "status": "ok",
    "device_kind": "cuda",
    "device_name": "NVIDIA H200",
}


@pytest.fixture
def make_record():
    def make(**changes) -> Record:
        return Record(**(_PLAIN | changes))

    return make
