"""What the README and the guide show works: the candidate, the problem file, the table, the commands."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from harness.cli import main
from harness.cli.flags import VERBS
from harness.model.candidate import read_candidate
from harness.model.problem import load_problem
from harness.model.scaffold import new_problem
from harness.report.leaderboard import render
from harness.results.reader import read_records

REPOSITORY = Path(__file__).resolve().parents[1]
README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
GUIDE = (REPOSITORY / "docs" / "guide.md").read_text(encoding="utf-8")


def blocks(language: str, page: str = README) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)


def example_candidate(folder: Path) -> Path:
    (source,) = blocks("python")
    path = folder / "one_thread_each.py"
    path.write_text(source, encoding="utf-8")
    return path


def commands() -> list[list[str]]:
    """The arguments of every `python run.py …` and `kernel-referee …` that the README and the guide show."""
    lines = [line for block in blocks("sh") + blocks("sh", GUIDE) for line in block.splitlines()]
    shown = [re.search(r"(?:^|\s|/)(?:python run\.py|kernel-referee) (.*)", line) for line in lines]
    return [shlex.split(each.group(1), comments=True) for each in shown if each]


def test_the_example_candidate_is_one_that_the_harness_takes(tmp_path):
    candidate = read_candidate(example_candidate(tmp_path))
    assert candidate.fault is None
    assert candidate.language == "cuda"


def test_the_problem_file_loads_beside_its_reference(tmp_path):
    (source,) = blocks("yaml", GUIDE)
    reference = REPOSITORY / "problems" / "tril_matmul.py"
    (tmp_path / reference.name).write_text(reference.read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "tril_matmul.yaml").write_text(source, encoding="utf-8")
    problem = load_problem(tmp_path / "tril_matmul.yaml")
    shipped = load_problem(REPOSITORY / "problems" / "tril_matmul.yaml")
    assert (problem.sizes, problem.cpu_sizes, problem.accuracy) == (shipped.sizes, shipped.cpu_sizes, shipped.accuracy)


def test_every_command_is_one_that_the_command_line_knows(tmp_path, monkeypatch):
    from harness.cli import flags

    monkeypatch.chdir(tmp_path)
    new_problem("row_softmax", tmp_path / "problems")  # as one of them does
    assert len(commands()) >= 8
    for arguments in commands():
        if "--help" not in arguments:
            flags.understood(arguments)
    assert {arguments[0] for arguments in commands()} >= set(VERBS) - {"run"}


def test_each_documented_exit_code_is_named_by_the_help_text(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    shown = capsys.readouterr().out
    agents = (REPOSITORY / "AGENTS.md").read_text(encoding="utf-8")
    codes = re.findall(r"^\| (\d+) \|", agents, re.MULTILINE)
    assert codes
    for code in codes:
        assert re.search(rf"\b{code}  ", shown), code


def test_the_figures_of_the_corpus_and_of_the_controls_are_those_of_their_pages():
    design = REPOSITORY / "docs" / "design"
    limits = " ".join((design / "limits.md").read_text(encoding="utf-8").split())
    corpus = (design / "adversarial.md").read_text(encoding="utf-8")
    matrix = corpus[corpus.index("<!-- matrix:cuda -->"):]
    counted = [
        re.search(pattern, matrix).groups() for pattern in (
            r"- (\d+) cheats: (\d+) caught", r"- (\d+) faults: (\d+) right", r"- (\d+) honest controls: (\d+) passed",
        )
    ]
    said = re.search(r"all (\d+) were caught.*?All (\d+) faults.*?(\d+) of (\d+) honest", limits).groups()
    assert [*counted[0], *counted[1], *counted[2]] == [said[0], said[0], said[1], said[1], said[3], said[2]]
    timing = (design / "timing.md").read_text(encoding="utf-8")
    (controls,) = re.findall(r"^\| n \|(.*)\|$", timing, re.MULTILINE)
    made = sum(int(each) for each in re.findall(r"of (\d+)", controls))
    assert f"Of {made} more" in limits


def test_its_table_is_what_the_program_prints_of_the_results_that_it_links():
    (link,) = re.findall(r"\((results/[^)]*\.csv)\)", README)
    records = read_records(REPOSITORY / link)
    shown = blocks("text")[0].rstrip("\n")
    kept = [each for each in records if re.search(rf"^ *\d*  {re.escape(each.candidate)} ", shown, re.MULTILINE)]
    assert render(kept, width=100).startswith(f"{shown}\n\n")
    assert records[0].device_name in shown
    assert f"{len(kept)} of the {len(records)} rows" in README


def test_it_is_short_enough_to_be_read():
    assert len(README.splitlines()) <= 200


def test_the_continuous_run_calls_the_test_command_of_the_readme():
    (command,) = [line for block in blocks("sh") for line in block.splitlines() if "'.[test]'" in line]
    script = (REPOSITORY / ".ci" / "run").read_text(encoding="utf-8")
    for step in command.split(" && "):
        words = step.split(" ", 1)[1].replace("-m venv .venv", "-m venv").replace("install", "install --quiet")
        assert words in script, words


@pytest.mark.gpu
@pytest.mark.slow
def test_the_example_candidate_is_ok_and_ranked_on_a_gpu(tmp_path):
    path = example_candidate(tmp_path)
    command = [
        sys.executable, "run.py", "problems/tril_matmul.yaml", "--candidates", str(path.parent), "--config", "quick",
        "--out", str(tmp_path / "results"), "--json",
    ]
    ran = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=500, check=False)
    assert ran.returncode == 0, ran.stderr
    (record,) = [each for each in json.loads(ran.stdout)["records"] if each["candidate"] == path.stem]
    assert (record["status"], record["rank"], record["kind"]) == ("ok", 1, "custom"), record["reason"]
