"""Which segments are looked at: each kind early, at a place that nobody can foretell, and some later ones."""

from __future__ import annotations

from harness.timing.probes.schedule import Probe, ProbeSchedule


def test_each_thing_is_looked_at_in_the_first_four_rounds_and_by_chance_besides():
    places, later, last, by_chance = {what: set() for what in Probe}, set(), set(), 0
    for _ in range(300):
        drawn = ProbeSchedule()
        first = [drawn.before(segment) for segment in range(8)]
        assert set(first) >= set(Probe)
        for segment, what in enumerate(first):
            if what:
                places[what].add(segment)
        again = [drawn.before(segment) for segment in range(8)]
        by_chance += sum(what is not None for what in first + again) - 2 * len(Probe)
        later |= {drawn.before(segment) for segment in range(8, 24)}
        last.add(drawn.last())
    assert all(seen == set(range(8)) for seen in places.values())
    assert later == {None, *Probe} and last == set(Probe)
    usual = 300 * 2 * (8 - len(Probe)) / 9  # of 300 workers' segments that are not among the first, one in nine
    assert 0.7 * usual < by_chance < 1.3 * usual


def test_what_cannot_be_looked_at_never_is():
    for _ in range(100):
        drawn = ProbeSchedule([Probe.FLUSH, Probe.EARLY_READ])
        assert {drawn.before(segment) for segment in range(24)} >= {None, Probe.FLUSH, Probe.EARLY_READ}
        assert not {drawn.last(), *map(drawn.before, range(24))} & {Probe.LATE_INPUT, Probe.INPUT_VALUE}
