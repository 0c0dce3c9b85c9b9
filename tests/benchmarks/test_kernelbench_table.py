"""The page on KernelBench: totals, what is not as it should be, a row for each problem."""

from __future__ import annotations

import pytest

from harness.model.errors import InputError


@pytest.fixture(scope="module")
def table(benchmark_named):
    return benchmark_named("kernelbench_table")


def line(problem, candidate, status, max_u=None, allowed_u=None, **more):
    worst = None if max_u is None else {
        "family": "as given", "max_u": max_u, "allowed_max_u": allowed_u, "rms_u": 1.0, "allowed_rms_u": None, "eager_max_u": 0.5,
    }
    return {
        "problem": problem, "name": f"{problem.partition('/')[2]}_A_problem_", "candidate": candidate, "status": status,
        "utc": "2026-01-01T00:00:00", "seconds": 1.5, "memory_gb": None, "is_shrunk": False, "worst": worst,
        "device_name": "a GPU", "torch": "2.11", "harness_version": "0.1", "harness_hash": "abc", "config": "quick", **more,
    }


LINES = [
    line("2/10", "honest", "ok", 3.0, 40.0, memory_step="one_launch", peak_bytes=30e9, speedup=1.0),
    line("2/10", "eager", "ok", device_peak_bytes=31e9),
    line("2/10", "zeros", "ok", 0.0, 8.0, speedup=9.5, problem_note="same_output"),
    line("2/9", "honest", "out_of_memory", reason="it needs 90 GB for its outputs"),
    line("2/9", "zeros", "out_of_memory"),
    line("1/2", "honest", "ok", 3.0, 40.0), line("1/2", "zeros", "incorrect", 1.7e7, 40.0),
    line("1/2", "bf16", "imprecise", 30000.0, 40.0), line("1/2", "tf32", "unsure", 7.0, 40.0),
]


def cells(text, start):
    (row,) = [each for each in text.splitlines() if each.startswith(f"| {start} ")]
    return [each.strip() for each in row.strip("|").split("|")]


def test_each_problem_has_a_row_in_the_order_of_levels_and_numbers(table):
    text = table.each_problem(table.rows_of(LINES, None))
    assert [row.split()[1] for row in text.splitlines()[2:]] == ["1/2", "2/9", "2/10"]
    assert cells(text, "1/2") == [
        "1/2", "A problem", "ok 3/40", "incorrect 1.7e+07/40", "imprecise 30000/40", "unsure 7/40", "", "", "6.0",
    ]
    assert cells(text, "2/10") == ["2/10", "A problem", "ok 3/40", "ok 0/8", "", "", "one_launch", "31.0", "4.5"]


def test_figures_that_do_not_explain_the_status_are_left_out(table):
    """They are those of checks that passed before a timed launch did not."""
    rows = table.rows_of([line("1/94", "honest", "ok", 1.0, 8.0), line("1/94", "tf32", "imprecise", 5.8, 12.0)], None)
    assert cells(table.each_problem(rows), "1/94")[2:6] == ["ok 1/8", "", "", "imprecise"]


def test_totals_are_by_level_and_candidate_and_judged_is_what_had_its_values_compared(table):
    text = table.totals(table.rows_of(LINES, None))
    assert cells(text, "1")[:5] == ["1", "1", "1", "1 ok", "1 incorrect"]
    assert cells(text, "2")[:5] == ["2", "2", "1", "1 out_of_memory, 1 ok", "1 out_of_memory, 1 ok"]
    assert cells(text, "all")[1:3] == ["3", "2"]
    assert cells(text, "all")[-1] == "4.5 (14)"


def test_what_ended_otherwise_than_it_should_is_told_with_its_figures_under_its_head(table):
    more = [
        line("2/66", "honest", "refused", reason="Model is random"), line("2/66", "zeros", "refused"),
        line("3/1", "tf32", "ok", 28.0, 33.0), line("3/1", "zeros", "ok", 1.0, 8.0), line("3/1", "honest", "ok", 1.0, 8.0),
    ]
    assert table.exceptions(table.rows_of([*LINES, *more], None)) == {
        "Not as it should be": [
            "**1/2** A problem, TF32 inside: `unsure` with 7 u of 40 u allowed, eager 0.5 u.",
            "**2/9** A problem, honest copy: `out_of_memory`. it needs 90 GB for its outputs",
            "**3/1** A problem, zeros: `ok` with 1 u of 8 u allowed, eager 0.5 u.",
        ],
        table._REFUSED: ["**2/66** A problem, honest copy: `refused`. Model is random"],
        table._TOLD: ["**2/10** A problem, zeros: `ok`, 9.50× with 0 u of 8 u allowed, eager 0.5 u. same_output"],
        table._EXACT: ["**3/1** A problem, TF32 inside: `ok` with 28 u of 33 u allowed, eager 0.5 u."],
    }


def test_a_list_without_entries_has_no_head(table):
    text = table.page([line("1/2", "honest", "ok", 3.0, 40.0), line("1/2", "zeros", "incorrect", 1.7e7, 40.0)])
    assert "###" not in text


def test_capped_memory_has_totals_of_its_own_and_the_rows_are_of_all_memory(table):
    text = table.page([*LINES, line("1/2", "honest", "ok", memory_gb=24.0), line("1/2", "honest", "ok", memory_gb=48.0)])
    heads = [each for each in text.splitlines() if each.startswith("## ")]
    assert heads == [
        "## With all memory of the device", "## With 48 GB of memory", "## With 24 GB of memory",
        "## Each problem, with all memory of the device",
    ]
    assert "Problems at each memory step: one_launch: 1." in text
    for origin in (
        "- Devices: a GPU", "- PyTorch: 2.11", "- This software: 0.1, by the hash of its source abc",
        "- Settings: `--config quick`", "- Judged: 2026-01-01",
    ):
        assert origin in text.splitlines()


def test_of_capped_memory_it_says_how_many_have_room_and_names_the_others(table):
    """What peaked below the cap and took no step has room in it; a step shows that the plan asks for more."""
    whole = [
        line("1/1", "honest", "ok", 3.0, 40.0, memory_step="full", peak_bytes=5e9),
        line("1/2", "honest", "ok", 3.0, 40.0, memory_step="full", peak_bytes=25e9),
        line("1/3", "honest", "ok", 3.0, 40.0, memory_step="fewer_launches", peak_bytes=5e9),
        line("1/4", "honest", "ok", 3.0, 40.0, memory_step="slices", peak_bytes=80e9),
        line("1/5", "honest", "refused"),
    ]
    capped = [line("1/2", "honest", "ok", 3.0, 40.0, memory_gb=24.0), line("1/4", "honest", "out_of_memory", memory_gb=24.0)]
    text = table.page([*whole, *capped])
    assert "2 of 5 problems have room:\n\n- 1 of the 2 that were tried with so much\n- 1 that took less" in text
    assert any(each.startswith("| 1/4") and "80.0" in each and "out_of_memory" in each for each in text.splitlines())


def test_what_had_room_in_less_has_room_in_more(table):
    capped = [
        line("2/9", "honest", "ok", 3.0, 40.0, memory_gb=48), line("2/9", "honest", "out_of_memory", memory_gb=24),
        line("1/2", "honest", "ok", 3.0, 40.0, memory_gb=24),
    ]
    text = table.page([*LINES, line("2/9", "honest", "ok", 3.0, 40.0), *capped])
    with_48 = text[text.index("## With 48 GB"): text.index("## With 24 GB")]
    assert (
        "2 of 3 problems have room:\n\n- 1 of the 1 that were tried with so much\n- 1 that had room in less\n- 0 that"
    ) in with_48


def test_how_many_devices_judged_at_once_is_said_of_the_day_with_most(table):
    lines = [
        line(f"1/{number}", "honest", "ok", 1.0, 8.0, device=f"cuda:{device}", utc=f"2026-01-0{day}T00:00:00")
        for number, device, day in ((1, 0, 1), (2, 1, 1), (3, 2, 2))
    ]
    assert "Up to 2 devices of one machine judged at once" in table.page(lines)
    assert "judged at once" not in table.page(lines[2:])


def test_another_device_has_totals_of_its_own_and_no_row(table):
    other = [line("1/2", "honest", "unsure", 9.0, 40.0, device_name="a larger GPU", reason="it is not quiet")]
    text = table.page([*LINES, *other])
    section = text[text.index("## a larger GPU, with all memory of the device"): text.index("## Each problem")]
    assert "1 unsure" in section and "**1/2** A problem, honest copy: `unsure`" in section
    assert cells(text[text.index("## Each problem"):], "1/2")[2] == "ok 3/40"


def test_honest_kernels_among_the_lines_have_the_last_section(table):
    text = table.page([*LINES, line("softmax", "online", "imprecise", 50.0, 45.0, reason="too far"), line("softmax", "eager", "ok")])
    section = text[text.index("## Honest kernels"):]
    rows = [[cell.strip() for cell in each.split("|")[1:-1]] for each in section.splitlines() if each.startswith("| softmax")]
    assert rows == [["softmax", "online", "imprecise", "50", "45", "1", "", "0.5", "", "1.5"]]
    assert "softmax online: too far" in section
    assert "softmax" not in text[:text.index("## Honest kernels")]


def test_honest_kernels_of_two_devices_have_a_table_each(table):
    kernels = [
        line("softmax", "online", status, 5.0, 45.0, device_name=device, reason="it is not quiet")
        for status, device in (("unsure", "one"), ("ok", "two"))
    ]
    text = table.page([*LINES, *kernels])
    first, second = text[text.index("### one"): text.index("### two")], text[text.index("### two"):]
    assert "unsure" in first and "unsure" not in second and "online" in second


def test_lines_of_whole_and_of_shrunk_problems_make_no_one_table(table):
    with pytest.raises(InputError, match="Make a table of each by itself"):
        table.page([*LINES, line("1/3", "honest", "ok", is_shrunk=True)])
    with pytest.raises(InputError, match="there is no line"):
        table.page([])
