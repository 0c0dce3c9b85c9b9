"""Which segments are looked at: each kind early, at a place that nobody can foretell, and some later ones."""

from __future__ import annotations

from harness.referee.drawn_looks import DrawnLooks, Look


def test_each_thing_is_looked_at_in_the_first_four_rounds_and_by_chance_besides():
    places, later, last, by_chance = {what: set() for what in Look}, set(), set(), 0
    for _ in range(300):
        drawn = DrawnLooks()
        first = [drawn.before(segment) for segment in range(8)]
        assert set(first) >= set(Look)
        for segment, what in enumerate(first):
            if what:
                places[what].add(segment)
        again = [drawn.before(segment) for segment in range(8)]
        by_chance += sum(what is not None for what in first + again) - 6
        later |= {drawn.before(segment) for segment in range(8, 24)}
        last.add(drawn.last())
    assert all(seen == set(range(8)) for seen in places.values())
    assert later == {None, *Look} and last == set(Look)
    assert 170 < by_chance < 330  # of 300 players' 10 segments that are not among the first, one in twelve
