"""The leaderboard, compared whole: stored records in, text out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from shipped import shipped

from harness.report.leaderboard import render
from harness.results.ranking import rank
from harness.results.reader import read_records
from harness.results.record import Record

HERE = Path(__file__).resolve().parents[1]
H200 = HERE / "results/samples/h200_may_1.csv"
CPU = HERE / "results/samples/cpu_may_3.csv"


def golden(name: str) -> str:
    return (HERE / "report/golden" / name).read_text(encoding="utf-8")


def ok(name: str, **changes) -> Record:
    plain = {"run_id": "r", "utc": "2026-05-01T12:30:05Z", "problem": "p", "sizes": "", "dtype": "float32"}
    measured = {"status": "ok", "kind": "custom", "precision_class": "fp32", "time_us": 2.0}
    return Record(candidate=name, **(plain | measured | changes))


def test_the_whole_leaderboard_of_a_gpu():
    text = render(read_records(H200), records_path="results/tril_matmul/nvidia-h200/20260501T123005Z.csv")
    assert text + "\n" == golden("leaderboard_h200.txt")
    table = text.splitlines()[2:14]
    assert max(map(len, table)) <= 140


def test_the_whole_leaderboard_of_a_narrow_terminal():
    text = render(read_records(H200), width=100)
    assert text + "\n" == golden("leaderboard_100_columns.txt")
    prose = [line for line in text.splitlines() if not line.startswith(("Next:", "        "))]
    assert max(map(len, prose)) <= 100


def test_the_whole_leaderboard_of_a_cpu():
    assert render(read_records(CPU), width=140) + "\n" == golden("leaderboard_cpu.txt")


def test_rendering_does_not_depend_on_the_order_of_the_rows():
    records = read_records(H200)
    assert render(records[::-1]) == render(records) == render(rank(records[::-1], ["custom"]))


def test_colours_change_nothing_but_colours():
    import re

    records = read_records(H200)
    painted = render(records, color=True, width=120)
    assert "\x1b[32mFASTER" in painted
    assert re.sub(r"\x1b\[\d+m", "", painted) == render(records, width=120)


def test_the_time_and_speedup_of_a_wrong_output_are_never_shown():
    fast = {"time_us": 1.2345, "speedup": 987.0, "tflops": 555.0, "percent_of_sol": 99.0}
    wrong = ok("fast", status="incorrect", reason_code="wrong_values", reason="wrong", **fast)
    text = render([wrong])
    assert not any(number in text for number in ("1.23", "987", "555", "99.0"))


def test_columns_with_nothing_measured_are_not_drawn():
    header = render([ok("only")]).splitlines()[2]
    assert header.split() == ["#", "candidate", "status", "time", "(µs)", "kind"]


def test_a_problem_bound_by_memory_shows_bytes_and_not_flops():
    header = render([ok("copy", bound_by="memory", gbytes_s=4280.0, tflops=0.1)]).splitlines()[2]
    assert "GB/s" in header and "TFLOP/s" not in header


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"kind": "library"}, "its time is a library's (kind library), which this problem does not rank"),
        (
            {"kind": "mixed"},
            "part of its time is a library's (kind mixed), which this problem does not rank",
        ),
        ({"kind": "unknown"}, "whose kernels ran could not be traced"),
        ({"kind": None}, "whose kernels ran could not be traced"),
        ({"time_us": None}, "no time was measured"),
        ({"precision_class": "tf32"}, "its results are tf32, the ranking is fp32"),
    ],
)
def test_ok_without_a_rank_says_why(changes, why):
    records = rank([ok("first"), ok("eager", role="baseline"), ok("other", **changes)], ["custom"])
    assert f"  other: ok, without a rank: {why}" in render(records).splitlines()


def test_a_note_on_the_problem_is_told_once_below_the_table_and_no_row_has_a_rank():
    records = [ok("writes_zeros", problem_note="same_output"), ok("computes", problem_note="same_output"),
               ok("eager", role="baseline", problem_note="same_output")]
    text = " ".join(render(rank(records, ["custom"])).split())
    assert text.count("note on p: its output was the same for all draws of the inputs") == 1
    assert "without a rank" not in text and all(record.rank is None for record in rank(records, ["custom"]))


def test_an_interrupted_run_says_that_its_ranks_were_not_given():
    assert "only: ok, without a rank: the run ended before its ranks were given" in render([ok("only")])


def test_a_baseline_that_failed_has_its_line():
    failed = {
        "status": "crashed",
        "reason_code": "exited",
        "reason": "Inductor found no compiler",
        "time_us": None,
    }
    lines = render([ok("torch.compile", role="baseline", **failed)]).splitlines()
    assert "  torch.compile: crashed: Inductor found no compiler" in lines


def test_ranks_whose_intervals_overlap_are_said_to_be_close():
    near = {"speedup": 1.0, "speedup_lo": 0.9, "speedup_hi": 1.1}
    records = rank([ok("a", **near), ok("b", **near | {"time_us": 2.1})], ["custom"])
    assert "  a and b: ranks 1 and 2 are close, their intervals overlap" in render(records).splitlines()


def test_warnings_stand_below_the_table():
    text = render(rank([ok("a", warnings="power cap reached\nlaunch not hidden")], ["custom"]))
    assert "  a: note: power cap reached\n  a: note: launch not hidden" in text


def test_a_note_that_rows_share_stands_there_once():
    def notes(*names):
        lines = render([ok(name, warnings="no counter of energy") for name in names]).splitlines()
        return [line for line in lines if "note" in line]

    assert notes("a", "b") == ["  a, b: note: no counter of energy"]
    assert notes("a", "b", "c", "d") == ["  4 of 4 rows: note: no counter of energy"]


def not_run(name, status, reason, **more):
    code = {"compiled": "no_gpu", "skipped": "no_triton", "checked": "interpreted"}[status]
    return ok(name, status=status, reason_code=code, reason=reason, time_us=None, speedup=None, **more)


def remarks_on(*records):
    return [line for line in render(rank([ok("best"), *records], ["custom"])).splitlines() if ": " in line[:60]]


def test_rows_that_are_only_compiled_share_a_line_but_those_that_spill():
    rows = [
        not_run(name, "compiled", f"for sm_90a, {number} registers, 0 spills; there is no GPU here to run it", arch="sm_90a", spills=0)
        for number, name in enumerate("abcd", 30)
    ]
    spilling = not_run("e", "compiled", "for sm_90a, 255 registers, 64 bytes of spills; there is no GPU", arch="sm_90a", spills=64)
    lines = "\n".join(remarks_on(*rows, spilling))
    assert "  4 rows: compiled for sm_90a without spills; there is no GPU here to run them" in lines
    assert "show a)" in lines and "  e: compiled: for sm_90a, 255 registers" in lines
    assert "31 registers" not in lines


def test_rows_that_did_not_run_for_one_reason_share_a_line_with_their_names():
    why = "Triton is not installed; bring it with: pip install triton"
    lines = remarks_on(not_run("a", "skipped", why), not_run("b", "skipped", "no nvcc"), not_run("c", "skipped", why))
    assert f"  a, c: skipped: {why}" in lines and "  b: skipped: no nvcc" in lines
    assert sum(why in line for line in lines) == 1


def test_a_note_of_a_row_that_shares_its_line_still_stands_there():
    why = "Triton is not installed"
    text = render([not_run("a", "skipped", why), not_run("b", "skipped", why, warnings="its file is long")])
    assert "  a, b: skipped: Triton is not installed" in text and "  b: note: its file is long" in text


def test_what_the_first_command_prints_on_a_busy_cpu_is_at_most_forty_lines():
    own = {path.stem: path.read_text() for path in shipped("candidates/tril_matmul/*.py")}
    names = {"checked": [name for name in own if name.startswith("triton")], "timed": ["openmp_cpu", "cublas_blocks"]}
    names["compiled"] = sorted(set(own) - {*names["checked"], *names["timed"]})
    for_sm = "for sm_90a, 40 registers, 0 spills; there is no GPU here to run it"
    right = "right at M=1, M=31 and M=257, in Triton's interpreter on the CPU; there is no GPU here to time it"
    doubt = "by the judge's clock a call may take longer (column unvouched_us): its low end counts that, as a rank does"
    noisy = (
        "its clock says 12544.4 µs a call, but before a timed window was opened 2578.9 µs more passed than the 6905.1 µs of the "
        "control: work was done before its time, or something else disturbs this machine; run again when it is quiet"
    )
    unsure = {"status": "unsure", "reason_code": "noisy", "reason": noisy, "warnings": doubt}
    rows = [
        own_row_of_eager(5635.2, warnings=doubt),
        ok("torch.compile", role="baseline", **{**unsure, "kind": None}),
        ok("cublas_blocks", **{**unsure, "kind": "library"}),
        timed("openmp_cpu", 727.2, 4114.0, (5.658, 0.923, 34.68), warnings=doubt),
        *(not_run(name, "compiled", for_sm, arch="sm_90a", spills=0) for name in names["compiled"]),
        *(not_run(name, "checked", right) for name in names["checked"]),
    ]
    text = render(rank(rows, ["custom"]), width=140, records_path="results/tril_matmul/cpu-amd-epyc/20261125T162900Z.csv")
    of_all = f"4 of {len(own) + 2} rows: note: by the judge's clock"
    compiled, checked = (f"{len(names[each])} rows: {each}" for each in ("compiled", "checked"))
    for said in ("openmp_cpu: 7.749× eager by the times", of_all, compiled, checked):
        assert said in text, said
    assert len(text.splitlines()) <= 40


def test_wrong_rows_have_a_line_each():
    wrong = {"status": "incorrect", "reason_code": "wrong_values", "reason": "element [0] is 1", "time_us": None}
    text = render([ok("a", **wrong), ok("b", **wrong)])
    assert "  a: incorrect: element [0] is 1\n  b: incorrect: element [0] is 1" in text


def test_an_interval_over_several_processes_says_over_how_many():
    measured = {"players": 5, "confidence": 0.99, "speedup": 1.0, "speedup_lo": 0.9, "speedup_hi": 1.1}
    assert "interval over 5 processes" in render([ok("a", **measured)])
    baseline = ok("eager", role="baseline", **measured)
    assert "interval over 5 processes" in render([baseline, ok("a", status="unsure", reason_code="noisy", reason="b")])


def test_what_is_compared_next_is_the_folder_that_the_run_wrote_to():
    text = render(rank([ok("a")], ["custom"]), records_path="/elsewhere/p/gpu/20260101T000000Z.csv")
    assert text.splitlines()[-1].startswith("Next: python run.py compare /elsewhere/p/ ")


def test_each_size_has_its_own_table():
    text = render(rank([ok("a", sizes="M=1"), ok("a", sizes="M=2")], ["custom"]))
    assert text.count("candidate") == 2 and "p · M=1 · float32" in text and "p · M=2 · float32" in text


def test_the_last_line_says_what_to_type_next():
    def last(records, **options):
        return render(rank(records, ["custom"]), **options).splitlines()[-1]

    wrong = {"status": "incorrect", "reason_code": "wrong_values", "reason": "wrong"}
    noisy = {"status": "unsure", "reason_code": "noisy", "reason": "noisy"}
    skipped = {"status": "skipped", "reason_code": "no_nvcc", "reason": "no nvcc", "time_us": None}
    assert last([ok("a")]).startswith("Next: python run.py compare results/p/")
    checked = {"status": "checked", "reason_code": "interpreted", "reason": "right at M=31", "time_us": None}
    assert last([ok("a"), ok("b", **skipped)]).startswith("Next: python run.py doctor")
    assert last([ok("a"), ok("b", **checked)]).startswith("Next: python run.py doctor")
    assert last([ok("a", **wrong)]) == "Next: python run.py show p/a   says which elements are wrong"
    unlike = {**wrong, "reason_code": "wrong_dtype"}
    assert last([ok("a", **unlike)], command="python run.py p").startswith("Next: python run.py p --only a   runs")
    kept_elsewhere = "python run.py problems/p.yaml --out mine"
    assert last([ok("a", **wrong)], command=kept_elsewhere).startswith(f"Next: {kept_elsewhere} --only a   runs")
    crashed = {"status": "crashed", "reason_code": "signal", "reason": "killed", "time_us": None}
    assert last([ok("a", **crashed)]).startswith("Next: python run.py problems/p.yaml --only a   runs that one alone")
    alone = "python run.py problems/p.yaml --only a"
    assert last([ok("a", **crashed)], command=alone) == f"Next: {alone}   once it is mended"
    assert last([ok("a", **noisy)]).endswith("--only a --config rigorous   measures it for longer")
    asked = "python run.py 15.py --config quick --only 'a*' --device cpu"
    assert last([ok("a", **noisy)], command=asked).startswith("Next: python run.py 15.py --device cpu --only a --config")
    assert last([ok("a", **crashed)], command="python run.py 15.py").startswith(
        "Next: python run.py 15.py --only a"
    )
    assert "candidates/p/" in last([ok("eager", role="baseline")])


def test_no_records_is_a_sentence():
    assert render([]) == "No results: the run ended before its first record."


def test_a_long_or_broken_name_does_not_break_the_table():
    name = "a_very_long_name_of_a_candidate_that_someone_generated_v17"
    records = rank([replace(ok(name), candidate=name), ok("two\nlines")], ["custom"])
    lines = render(records).splitlines()
    assert any("…" in line and "v17" in line for line in lines) and any("two lines" in line for line in lines)


def test_the_controls_of_several_gpus_are_told_apart_and_their_candidates_stand_in_one_ranking():
    uuids = ("GPU-b4a13011-4e86", "GPU-397af8c8-0dc7")
    rows = [ok("eager", role="baseline", kind=None, uuid=uuid, time_us=3.0 + place) for place, uuid in enumerate(uuids)]
    rows += [ok("a", uuid=uuids[0], time_us=2.0), ok("b", uuid=uuids[1], time_us=1.0)]
    text = render(rank(rows, ["custom"]))
    assert "eager on b4a1" in text and "eager on 397a" in text
    assert text.index("1  b ") < text.index("2  a ")
    assert "2 GPUs, each row's speedup over eager on its own" in text
    assert " on " not in render(rank(rows[::2], ["custom"])).split("Next:")[0]


@pytest.mark.parametrize(
    ("players", "said"), [(None, "99 % interval\n"), (1, "99 % interval from one process\n"),
                          (5, "99 % interval over 5 processes\n")],
)
def test_the_legend_says_how_many_processes_the_intervals_are_over(players, said):
    text = render([ok("a", speedup=1.1, speedup_lo=1.0, speedup_hi=1.2, confidence=0.99, players=players)])
    assert said in text


def test_what_to_compare_with_is_where_the_results_went():
    assert "Next: python run.py compare results/p/ " in render([ok("a")])
    assert "Next: python run.py compare /tmp/mine/p/ " in render([ok("a")], records_path="/tmp/mine/p/cpu/1.csv")


def timed(name: str, time_us: float, eager_us: float, speedup: tuple[float, float, float], **changes) -> Record:
    """A row that took so long, eager beside it so long, with that speedup over eager and its ends."""
    estimate, lo, hi = speedup
    figures = {"baseline": "eager", "speedup": estimate, "speedup_lo": lo, "speedup_hi": hi, "call": "UNSURE"}
    return ok(name, time_us=time_us, baseline_us=eager_us, **(figures | changes))


def own_row_of_eager(time_us: float, **changes) -> Record:
    return timed("eager", time_us, time_us, (1.0, 0.9, 1.1), role="baseline", kind=None, **changes)


@pytest.mark.parametrize(
    ("time_us", "beside_us", "speedup", "call", "said"), [
        (4633.2, 4512.0, (0.974, 0.955, 0.993), "SLOWER",
         "a: 1.216× eager by the times: eager took 4.51 ms beside it and 5.64 ms in its own row;"),
        (727.2, 4114.0, (5.658, 0.923, 34.68), "UNSURE", "a: 7.749× eager by the times: eager took 4.11 ms"),
        (2367.0, 5380.0, (1.511, 0.355, 6.427), "UNSURE", "a: 2.381× eager by the times: its calls scatter within its rounds;"),
        (5640.0, 5700.0, (1.004, 1.002, 1.006), "FASTER", "a: 0.999× eager by the times:"),
        (5634.0, 5700.0, (1.004, 0.995, 1.012), "SAME", None),
        (1100.0, 5500.0, (5.0, 4.0, 6.0), "FASTER", None),
        (900_000.0, 9000.0, (0.01, 0.0099, 0.0101), "SLOWER", None),
    ],
)
def test_a_time_that_contradicts_its_speedup_has_a_line_that_says_why(time_us, beside_us, speedup, call, said):
    table = [own_row_of_eager(5635.2), timed("a", time_us, beside_us, speedup, call=call)]
    line = " ".join(render(table).split())
    assert ("eager by the times" in line) is (said is not None)
    assert said is None or said in line


def test_of_several_such_rows_the_farthest_is_named_and_the_others_are_counted():
    rows = [timed(name, 10.0, eager_us, (1.0, 0.95, 1.05)) for name, eager_us in (("a", 10.0), ("b", 9.0), ("c", 10.1))]
    rows.append(timed("d", 5.0, 10.0, (1.0, 0.95, 1.05)))
    line = " ".join(render([own_row_of_eager(13.0), *rows]).split())
    assert line.count("by the times") == 1 and "d (and 3 more): 2.600× eager by the times" in line


@pytest.mark.parametrize(("own_us", "beside_us"), [(-1.0, 30.0), (10.0, -30.0), (0.0, 30.0), (10.0, 0.0)])
def test_times_that_are_none_are_held_against_nobody(own_us, beside_us):
    assert "by the times" not in render([own_row_of_eager(own_us), timed("a", 30.0, beside_us, (1.0, 0.9, 1.1))])


def test_rows_of_another_device_are_not_held_against_this_one_s_eager():
    other = timed("a", 10.0, 30.0, (3.0, 2.9, 3.1), uuid="GPU-2")
    assert "by the times" not in render([own_row_of_eager(10.0, uuid="GPU-1"), other])


def over_expert(name: str, speedup: float | None, over_eager: float, **changes) -> Record:
    ends = {} if speedup is None else {"speedup": speedup, "speedup_lo": speedup, "speedup_hi": speedup, "call": "FASTER"}
    figures = {"baseline": "expert", "baseline_hash": "e" * 16, "eager_speedup": over_eager, **ends}
    return ok(name, confidence=0.99, **(figures | changes))


def test_the_header_names_the_file_that_speedups_are_over_and_those_over_eager_stand_apart():
    text = render([
        over_expert("expert", None, 2.0, role="baseline", source_hash="e" * 16), over_expert("a", 1.5, 3.0, time_us=1.0),
    ])
    lines = text.splitlines()
    header = next(line for line in lines if line.startswith("#"))
    assert header.index("speedup over expert") < header.index("over eager")
    assert next(line for line in lines if " a " in line).split()[4:7] == ["[1.500,", "1.500]", "FASTER"]
    assert next(line for line in lines if line.startswith("   expert ")).split()[:4] == ["expert", "baseline", "2.000", "2.000×"]
    assert "of a quotient of two speedups over eager" in " ".join(text.split())


def test_speedups_over_two_baselines_in_one_table_each_say_over_what():
    text = render([over_expert("a", 1.5, 3.0), ok("b", baseline="eager", speedup=3.0, speedup_lo=2.9, speedup_hi=3.1)])
    assert "1.500× [1.500, 1.500] over expert FASTER" in text and "3.000× [2.900, 3.100] over eager" in text
    assert "speedup over" not in text


def test_a_time_that_contradicts_its_speedup_over_eager_is_seen_over_a_file_too():
    eager = over_expert("eager", 0.5, 1.0, role="baseline", time_us=17_400.0, eager_us=17_400.0)
    row = over_expert("a", 1.5, 3.9, time_us=2290.0, eager_us=9_000.0, eager_speedup_lo=3.5, eager_speedup_hi=4.2)
    assert "eager took 9.00 ms beside it and 17.4 ms in its own row" in " ".join(render([eager, row]).split())
