"""How many launches go into one queue: as many as memory has room for and the stopwatch has marks for."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from harness.clocks.stopwatch import MARKS
from harness.referee.room import most_launches
from harness.wire.layout import REGION_BYTES, TensorSpec


def reference_of(elements):
    spec = [TensorSpec("float32", (elements,), (1,), 0)]
    return SimpleNamespace(specs=spec, output_specs=spec)


def bench_of(memory_bytes):
    return SimpleNamespace(identity=SimpleNamespace(memory_bytes=memory_bytes))


@pytest.mark.parametrize(("launches", "least", "most"), [(5, 1, 5), (0.5, 1, 1), (0.5, 2, 2), (10_000, 1, MARKS // 3)])
def test_a_quarter_of_the_memory_holds_a_queue_with_inputs_and_outputs_and_what_they_are_compared_with(
    launches, least, most
):
    each = 4 * REGION_BYTES + 2 * REGION_BYTES
    assert most_launches(bench_of(int(4 * launches * each)), reference_of(1), least) == most


def test_a_call_with_gradients_has_marks_for_each_of_the_longest_queue():
    assert 3 * most_launches(bench_of(1 << 50), reference_of(1)) <= MARKS
