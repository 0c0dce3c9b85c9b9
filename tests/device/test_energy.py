"""Power from a counter of energy that jumps now and then."""

from __future__ import annotations

import itertools
import time

import pytest

from harness.device import energy
from harness.device.energy import PowerMeter, watts_of


def test_power_is_what_was_counted_between_the_first_and_the_last_jump():
    assert watts_of([(0.3, 1000), (0.4, 41_000), (1.3, 401_000)]) == pytest.approx(400)


@pytest.mark.parametrize("jumps", [[], [(0.3, 5)], [(0.3, 5), (0.5, 500)]])
def test_too_few_jumps_or_too_short_a_stretch_say_nothing(jumps):
    assert watts_of(jumps) is None


def test_a_counter_is_watched_while_the_meter_is_entered(monkeypatch):
    monkeypatch.setattr(energy, "_SETTLES_S", 0.0)
    began = time.monotonic()
    # 200 W, moved forward every 20 ms
    meter = PowerMeter(lambda: int((time.monotonic() - began) / 0.02) * 4000)
    assert meter.is_readable
    with meter:
        time.sleep(0.6)
    assert meter.watts() == pytest.approx(200, rel=0.15)


def test_a_counter_that_cannot_be_read_gives_no_power():
    meter = PowerMeter(lambda: None)
    assert not meter.is_readable
    with meter:
        pass
    assert meter.watts() is None


def test_a_counter_that_is_lost_on_the_way_gives_what_was_seen():
    readings = itertools.chain([1, 2], itertools.repeat(None))
    with PowerMeter(lambda: next(readings)) as meter:
        time.sleep(0.05)
    assert meter.watts() is None
