"""`run.py compare` and `scores` as typed: what is printed where, what a build server finds, and the exit codes."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from harness.cli import main
from harness.model.paths import REPOSITORY
from harness.results.reader import read_records
from harness.results.writer import csv_text

SAMPLES = Path(__file__).resolve().parents[2] / "results/samples"


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """`runs(name=changes)`: the CSV of 1 May as `old`, and copies of it a week later in which `changes` were made."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)

    def make(**copies) -> list[str]:
        records = read_records(SAMPLES / "h200_may_1.csv")
        Path("old.csv").write_text(csv_text(records))
        for name, change in copies.items():
            changed = [replace(each, utc="2026-05-08T09:00:00Z", **change(each)) for each in records]
            Path(f"{name}.csv").write_text(csv_text(changed))
        return ["old.csv", *(f"{name}.csv" for name in copies)]

    return make


def slower(factor):
    def change(record):
        if record.candidate != "triton_ieee":
            return {}
        return {name: getattr(record, name) * factor for name in ("speedup", "speedup_lo", "speedup_hi")}

    return change


def crashed(record):
    is_it = record.candidate == "triton_ieee"
    return {"status": "crashed", "reason_code": "signal", "reason": "SIGSEGV", "rank": None} if is_it else {}


@pytest.mark.parametrize(
    ("change", "gates", "code"),
    [
        (slower(0.95), [], 0), (slower(0.95), ["slower:1%"], 3), (slower(0.95), ["slower:10%"], 0),
        (slower(0.992), ["slower:1%"], 0), (slower(1.1), ["slower", "incorrect"], 0), (crashed, ["incorrect"], 3),
        (crashed, ["slower:1%"], 0),
    ],
    ids=["no gate", "slower", "less than allowed", "not by its whole interval", "faster", "lost", "lost is not slower"],
)
def test_the_exit_code_is_three_when_a_gate_is_tripped(runs, capsys, change, gates, code):
    words = [word for gate in gates for word in ("--fail-on", gate)]
    assert main(["compare", *runs(new=change), *words]) == code
    told = capsys.readouterr()
    assert "B against A, both on NVIDIA H200" in told.out
    assert ("triton_ieee in B" in told.err) is (code == 3)


def test_the_slower_row_says_how_much_with_its_interval_and_why(runs, capsys):
    main(["compare", *runs(new=slower(0.95))])
    [line] = [line for line in capsys.readouterr().out.splitlines() if line.startswith("triton_ieee")]
    assert "−5.00 % [−5.11, −4.89]" in line and "SLOWER" in line and "all below −0.2 %" in line


def test_every_unsure_candidate_has_a_command_that_the_command_line_knows(runs, capsys):
    from harness.cli import flags

    main(["compare", *runs(new=slower(1.002)), "--json"])
    rows = [row for row in json.loads(capsys.readouterr().out)["changes"] if row["verdict"] == "UNSURE"]
    unsure = [row for row in rows if row["role"] == "candidate"]
    assert unsure
    for row in unsure:
        again, then = row["next"].split(" && ")
        options = flags.understood(again.split()[2:])
        assert (options.only, options.config) == ([row["candidate"]], "rigorous")
        assert flags.understood(then.split()[2:]).paths[0] == Path("old.csv")


def test_different_methods_are_refused_with_code_two_and_shown_when_forced(runs, capsys):
    names = runs(new=lambda record: {"l2_policy": "warm"} if record.l2_policy else {})
    assert main(["compare", *names]) == 2
    told = capsys.readouterr()
    assert "l2_policy is 'written and cleaned' in A, 'warm' in B" in told.out and "--force" in told.err
    assert main(["compare", *names, "--force"]) == 0
    assert "B against A" in capsys.readouterr().out


def test_two_cards_of_one_model_are_told_apart_by_their_uuids(runs, capsys):
    paths = runs(new=lambda record: {"uuid": "GPU-0badcafe-1111"})
    assert main(["compare", *paths]) == 0
    first, second = capsys.readouterr().out.splitlines()[:2]
    assert first.startswith("A  NVIDIA H200 (GPU-") and second.startswith("B  NVIDIA H200 (GPU-0badcafe)")
    assert main(["compare", *runs(same=lambda record: {})]) == 0
    assert "(GPU-" not in capsys.readouterr().out.splitlines()[0]


def test_two_versions_of_the_harness_are_compared_and_said_first(runs, capsys):
    assert main(["compare", *runs(new=lambda record: {"harness_version": "0.9.0"})]) == 0
    out = capsys.readouterr().out
    assert out.index("harness_version: A: 0.1.0; B: 0.9.0") < out.index("B against A")


def test_csv_and_json_say_the_same_and_markdown_is_a_table(runs, capsys):
    names = runs(new=slower(0.95))
    main(["compare", *names, "--format", "csv"])
    rows = {row["candidate"]: row for row in csv.DictReader(io.StringIO(capsys.readouterr().out))}
    main(["compare", *names, "--json"])
    found = json.loads(capsys.readouterr().out)
    of_json = {row["candidate"]: row for row in found["changes"]}
    assert found["comparison_version"] == 1 and [run["name"] for run in found["runs"]] == ["A", "B"]
    for name, row in of_json.items():
        assert rows[name]["verdict"] == (row["verdict"] or "")
    assert float(rows["triton_ieee"]["change"]) == of_json["triton_ieee"]["change"] == pytest.approx(0.95)
    main(["compare", *names, "--format", "markdown"])
    assert "| triton\\_ieee |" in capsys.readouterr().out


def test_a_step_summary_is_added_to_and_junit_is_written(runs, tmp_path, monkeypatch, capsys):
    summary, junit = tmp_path / "summary.md", tmp_path / "junit.xml"
    summary.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    assert main(["compare", *runs(new=slower(0.95)), "--fail-on", "slower:1%", "--junit", str(junit)]) == 3
    text = summary.read_text()
    assert text.startswith("before\n# Comparison") and "--fail-on slower" in text
    [suite] = ElementTree.parse(junit).getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("7", "1")
    [failed] = [case.get("name") for case in suite if case.find("failure") is not None]
    assert failed == "triton_ieee"


def test_a_reason_that_a_candidate_wrote_cannot_break_out_of_markdown_or_xml(runs, tmp_path, capsys):
    def nasty(record):
        return crashed(record) | ({"reason": "<script>|`]]>\n# heading"} if record.candidate == "triton_ieee" else {})

    names, junit = runs(new=nasty), tmp_path / "junit.xml"
    main(["compare", *names, "--format", "markdown", "--junit", str(junit), "--fail-on", "incorrect"])
    out = capsys.readouterr().out
    assert "<script>" not in out.replace("\\<script\\>", "") and "\n# heading" not in out
    ElementTree.parse(junit)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "the file is empty"),
        ("name,mean\nx,1\n", "not a file of results: it has no column schema_version"),
        (None, "no such file"),
    ],
)
def test_files_that_are_none_of_ours_are_one_sentence_and_code_two(runs, capsys, content, said):
    names = runs()
    if content is not None:
        Path("other.csv").write_text(content)
    for verb in ("compare", "scores"):
        assert main([verb, *names, "other.csv"]) == 2
        told = capsys.readouterr()
        assert said in told.err and told.out == "" and "Traceback" not in told.err


def test_a_file_without_a_column_that_it_can_do_without_is_read(runs, capsys):
    names = runs()
    rows = list(csv.DictReader(io.StringIO(Path("old.csv").read_text())))
    kept = [name for name in rows[0] if name not in ("speedup_lo", "uuid", "canary_gbps")]
    stream = io.StringIO()
    writer = csv.DictWriter(stream, kept, extrasaction="ignore")
    writer.writeheader()
    writer.writerows(rows)
    Path("less.csv").write_text(stream.getvalue())
    assert main(["compare", *names, "less.csv"]) == 0
    assert "less.csv does not say which GPU it is from" in capsys.readouterr().out


def test_a_gate_without_two_runs_of_one_gpu_is_no_pass(runs, capsys):
    assert main(["compare", *runs(new=lambda record: {"uuid": "GPU-2"}), "--fail-on", "slower"]) == 2
    told = capsys.readouterr()
    assert "nothing to judge" in told.err and "geometric mean speedup" in told.out


def test_a_summary_that_cannot_be_written_is_our_failure_in_words(runs, capsys):
    assert main(["compare", *runs(new=slower(1.0)), "--junit", "nowhere/x.xml"]) == 1
    assert "--junit: cannot write nowhere/x.xml" in capsys.readouterr().err


@pytest.mark.processes
def test_a_reader_that_goes_away_takes_neither_the_gate_nor_its_files_with_it(runs, tmp_path):
    words = ["compare", *runs(new=slower(0.9)), "--fail-on", "slower:1%", "--junit", "gate.xml"]
    command = [sys.executable, str(REPOSITORY / "run.py"), *words]
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        command, cwd=tmp_path, stdout=writing, stderr=subprocess.PIPE, text=True, timeout=60, check=False
    )
    os.close(writing)
    assert done.returncode == 3
    assert done.stderr.startswith("--fail-on slower") and "rror" not in done.stderr
    assert ElementTree.parse(tmp_path / "gate.xml").getroot().tag == "testsuites"


def test_scores_are_printed_and_given_as_json(runs, capsys):
    [name] = runs()
    assert main(["scores", name]) == 0
    assert "fast_1.5" in capsys.readouterr().out
    assert main(["scores", name, "--json"]) == 0
    [scores] = json.loads(capsys.readouterr().out)["scores"]
    assert scores["best_of_each_problem"]["fast_p"]["2"] == 1.0


def other_card(factor=2.0, **more):
    """Changes that make a row one of another card, whose times are `factor` times as long."""
    def change(record):
        time_us = record.time_us and record.time_us * factor
        return {"uuid": "GPU-other", "device_name": "NVIDIA H100", "time_us": time_us, "power_limit_w": 350.0, **more}

    return change


def test_absolute_figures_of_two_cards_stand_beside_their_clocks_limits_and_ratios(runs, capsys):
    assert main(["compare", *runs(new=other_card()), "--show", "sol,time"]) == 0
    lines = capsys.readouterr().out.splitlines()
    row = next(line for line in lines if line.startswith("triton_ieee ")).split()
    titles = next(line for line in lines if "SM MHz" in line)
    assert titles.split("SM MHz")[0].strip() == "% SOL  time (ms)"
    assert row == ["triton_ieee", "47.4", "0.7213", "1,980", "47.4", "1.4426", "1,980", "1.000×", "2.000×"]
    assert next(line for line in lines if line.startswith("eager ")).endswith("2.000×")
    assert "  A: SM clock 1,980 MHz, power limit 700 W" in lines
    assert "  B: SM clock 1,980 MHz, power limit 350 W" in lines
    assert "speedup" not in "\n".join(lines)


def test_a_figure_that_was_not_measured_is_empty_and_one_line_says_how_to_get_it(runs, capsys):
    assert main(["compare", *runs(new=other_card()), "--show", "energy"]) == 0
    text = capsys.readouterr().out
    assert text.count("--energy") == 2 and "problems/tril_matmul.yaml --energy" in " ".join(text.split())
    assert "J)" in text and next(line for line in text.splitlines() if line.startswith("triton_ieee ")).split() == [
        "triton_ieee", "1,980", "1,980"
    ]


def test_energy_that_was_measured_on_both_cards_has_a_ratio(runs, capsys):
    old, new = runs(new=other_card(joules=0.05))
    measured = [replace(each, joules=0.1) for each in read_records(Path(old))]
    Path(old).write_text(csv_text(measured))
    assert main(["compare", old, new, "--show", "energy"]) == 0
    out = capsys.readouterr().out
    row = next(line for line in out.splitlines() if line.startswith("triton_ieee ")).split()
    assert "energy (mJ)" in out and row == ["triton_ieee", "100.00", "1,980", "50.00", "1,980", "0.500×"]
    assert "--energy" not in out


def test_two_sources_under_one_name_have_figures_and_no_ratio(runs, capsys):
    def edited(record):
        is_it = record.candidate == "triton_ieee"
        return {**other_card()(record), **({"source_hash": "0" * 16} if is_it else {})}

    assert main(["compare", *runs(new=edited), "--show", "time", "--by", "name"]) == 0
    out = capsys.readouterr().out
    assert next(line for line in out.splitlines() if line.startswith("triton_ieee ")).split()[1:] == [
        "0.7213", "1,980", "1.4426", "1,980"
    ]
    assert "  triton_ieee: no ratio where two devices ran different sources" in out.splitlines()


def test_eager_of_another_torch_has_no_ratio(runs, capsys):
    assert main(["compare", *runs(new=other_card(torch="9.9")), "--show", "time"]) == 0
    out = capsys.readouterr().out
    assert not next(line for line in out.splitlines() if line.startswith("eager ")).endswith("×")
    assert next(line for line in out.splitlines() if line.startswith("triton_ieee ")).endswith("×")


def test_json_and_csv_carry_the_same_figures(runs, capsys):
    named = [*runs(new=other_card()), "--show", "time,energy"]
    assert main(["compare", *named, "--json"]) == 0
    [device] = json.loads(capsys.readouterr().out)["devices"]
    found = next(each for each in device["figures"] if each["candidate"] == "triton_ieee")
    assert device["show"] == ["time", "energy"] and found["ratios"] == {"B/A": {"time": 2.0, "energy": None}}
    assert found["runs"]["B"] == {
        "time_us": 1442.6, "joules": None, "sm_mhz": 1980.0, "mem_mhz": None, "power_limit_w": 350.0
    }
    assert main(["compare", *named, "--format", "csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    row = next(each for each in rows if each["candidate"] == "triton_ieee" and each["run"] == "B")
    assert (row["time_us"], row["joules"], row["power_limit_w"]) == ("1442.6", "", "350.0")
    assert main(["compare", *named, "--format", "markdown"]) == 0
    assert "B/A time" in capsys.readouterr().out


@pytest.mark.parametrize("names", ["speed", "time,speed", "", "time,"])
def test_a_wrong_name_in_show_gets_one_sentence_with_the_closed_list(runs, capsys, names):
    assert main(["compare", *runs(new=other_card()), "--show", names]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and said.endswith("is none of time, tflops, sol and energy\n")


def test_show_of_one_device_says_that_there_are_no_two(runs, capsys):
    assert main(["compare", *runs(new=slower(1.0)), "--show", "time"]) == 2
    assert "no problem here was run on two" in capsys.readouterr().err


def over_expert(source_hash="e" * 16):
    """Changes that make a row one over a file named expert: its speedups are halved, those over eager stand beside."""
    def change(record):
        found = {"baseline": "expert", "baseline_hash": source_hash}
        for end in ("", "_lo", "_hi"):
            over_eager = getattr(record, f"speedup{end}")
            found |= {f"eager_speedup{end}": over_eager, f"speedup{end}": over_eager and over_eager / 2}
        return found

    return change


@pytest.mark.parametrize("forced", [[], ["--force"]])
def test_speedups_over_a_file_and_over_eager_are_never_set_against_each_other(runs, capsys, forced):
    assert main(["compare", *runs(new=over_expert()), *forced]) == 2
    out = capsys.readouterr().out
    assert "baseline is 'eager' in A, 'expert' in B" in out and "not compared, even with --force" in " ".join(out.split())
    assert "FASTER" not in out and "SLOWER" not in out


def test_speedups_over_two_files_of_one_name_are_not_set_against_each_other(runs, capsys):
    old, new = runs(new=over_expert("a" * 16))
    Path(old).write_text(csv_text([replace(each, **over_expert()(each)) for each in read_records(Path(old))]))
    assert main(["compare", old, new]) == 2
    assert f"baseline_hash is '{'e' * 16}' in A, '{'a' * 16}' in B" in capsys.readouterr().out


def test_speedups_over_one_file_are_compared_with_eager_s_row_among_them(runs, capsys):
    old, new = runs(new=over_expert())
    Path(old).write_text(csv_text([replace(each, **over_expert()(each)) for each in read_records(Path(old))]))
    assert main(["compare", old, new]) == 0
    out = capsys.readouterr().out.splitlines()
    assert any(line.startswith("eager (baseline)") for line in out)
    assert "SAME" in next(line for line in out if line.startswith("triton_ieee "))


def test_devices_over_two_baselines_are_kept_apart(runs, capsys):
    def change(record):
        return {**other_card()(record), **over_expert()(record)}

    assert main(["compare", *runs(new=change)]) == 2
    out = capsys.readouterr().out
    assert "geometric mean" not in out and "A and B: baseline is 'eager' in A, 'expert' in B" in out


def test_scores_over_a_file_have_a_table_of_their_own(runs, capsys):
    assert main(["scores", *runs(new=over_expert())]) == 0
    over_eager, over_file = capsys.readouterr().out.split("\n\nKernelBench scores")
    assert "speedup over eager greater than p" in over_eager and "expert" not in over_eager
    assert "· over expert" in over_file and "speedup over expert greater than p" in over_file
    assert "3.799" not in over_file
