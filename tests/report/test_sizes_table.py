"""Several sizes together: who has a mean, what it is, and what is said of the others."""

from __future__ import annotations

import math

import pytest

from harness.report.leaderboard import render
from harness.report.sizes_table import sizes_json, sizes_text, together
from harness.results.record import Record


def row(name: str, sizes: str, speedup: float | None, **changes) -> Record:
    plain = {"run_id": "r", "utc": "2026-05-01T12:30:05Z", "problem": "p", "dtype": "float32", "status": "ok"}
    timed = {} if speedup is None else {
        "speedup": speedup, "speedup_lo": speedup / 1.01, "speedup_hi": speedup * 1.01, "time_us": 10 / speedup,
    }
    return Record(candidate=name, sizes=sizes, **(plain | timed | changes))


WRONG = {"status": "incorrect", "reason_code": "wrong_values", "reason": "wrong"}
RECORDS = [
    row("slow", "M=4096", 0.5), row("fast", "M=4096", 8.0), row("broken", "M=4096", 9.0),
    row("slow", "M=256", 0.5), row("fast", "M=256", 2.0), row("broken", "M=256", None, **WRONG),
    row("late", "M=256", 3.0),
    row("eager", "M=4096", 1.0, role="baseline"), row("eager", "M=256", 1.0, role="baseline"),
]


def test_the_geometric_mean_is_over_the_sizes_with_their_intervals_in_quadrature():
    [found] = together(RECORDS)
    assert found.sizes == ("M=4096", "M=256")
    assert [each.name for each in found.means][:3] == ["fast", "eager", "slow"]
    fast = found.means[0].mean
    assert fast.estimate == pytest.approx(4.0)
    assert math.log(fast.hi / 4.0) == pytest.approx(math.log(1.01) * math.sqrt(2) / 2)


def test_what_is_not_ok_at_every_size_has_no_mean_and_says_where():
    missing = {each.name: each.missing for each in together(RECORDS)[0].means if each.mean is None}
    assert missing == {"broken": "incorrect at M=256", "late": "not judged at M=4096"}
    bodies = {each["candidate"]: each for each in sizes_json(RECORDS)[0]["means"]}
    assert bodies["broken"]["speedup"] is None and bodies["broken"]["missing"] == "incorrect at M=256"
    assert bodies["fast"]["speedup"] == pytest.approx(4.0)


def test_the_table_stands_below_those_of_the_sizes():
    text = render(RECORDS)
    assert text.index("p · M=4096") < text.index("p · M=256") < text.index("p · 2 sizes together")
    [block] = sizes_text(RECORDS)
    line = next(line for line in block.splitlines() if line.startswith("fast"))
    assert line.split() == ["fast", "4.000×", "[3.971,", "4.029]", "8.000×", "2.000×"]
    assert "broken: incorrect at M=256" in block


def test_a_run_at_one_size_has_no_such_table():
    alone = [each for each in RECORDS if each.sizes == "M=256"]
    assert together(alone) == [] and sizes_json(alone) == [] and "together" not in render(alone)


def test_over_a_file_the_legend_names_it_and_it_has_no_row_itself():
    over = {"baseline": "expert", "baseline_hash": "e" * 16}
    rows = [row("fast", sizes, 2.0, **over) for sizes in ("M=4096", "M=256")]
    rows += [row("expert", sizes, None, role="baseline", source_hash="e" * 16, **over) for sizes in ("M=4096", "M=256")]
    [block] = sizes_text(rows)
    assert "speedups over expert" in block and "\nexpert" not in block
    assert [each["candidate"] for each in sizes_json(rows)[0]["means"]] == ["fast"]
    assert sizes_json(rows)[0]["baseline"] == "expert"
