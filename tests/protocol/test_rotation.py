"""The four places in a GPU's rotation of launches, taken equally often whatever a call launches."""

from __future__ import annotations

from collections import Counter

import pytest

from harness.protocol import rotation
from harness.protocol.rotation import PLACES, Rotation, steps_before, whole_rotations

PERIOD = PLACES * PLACES


@pytest.mark.parametrize("kernels", range(1, 12))
@pytest.mark.parametrize("start", range(PLACES))
def test_sixteen_launches_take_each_place_four_times(kernels, start):
    place, taken = start, Counter()
    for index in range(1, 2 * PERIOD + 1):
        place += steps_before(index)
        taken[place % PLACES] += 1
        place += kernels
    assert set(taken.values()) == {2 * PERIOD / PLACES}


@pytest.mark.parametrize(("wanted", "made"), [(1, 1), (3, 3), (4, 4), (5, 4), (15, 16), (16, 16)])
def test_launches_are_made_in_whole_rotations_where_there_are_enough(wanted, made):
    assert whole_rotations(wanted) == made


def test_the_lead_in_steps_aside_by_chance_and_the_others_by_plan(monkeypatch):
    made = []
    class Kernel:
        def __init__(self, cubin, name, blocks, threads, types):
            self.name, self.types = name, types

        def launch(self, stream, *values):
            made.append((self.name, self.types, values))

    monkeypatch.setattr(rotation.cuda_driver, "Kernel", Kernel)
    monkeypatch.setattr(rotation, "_randbelow", lambda below: below - 1)
    turned = Rotation(b"")
    turned.before(0, 0)
    assert len(made) == PLACES - 1
    for index in range(1, PERIOD + 1):
        turned.before(0, index)
    assert len(made) == PLACES - 1 + 3
    assert made[0] == ("step_aside", (), ())
