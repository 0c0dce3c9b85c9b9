"""`serve` and `reproduce` as a program and a person use them, against the command line's own verdicts."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ADVERSARIAL = Path(__file__).resolve().parents[1] / "adversarial"
REPOSITORY = Path(__file__).resolve().parents[2]
CASES = ("honest/torch_masked", "answer/positive_only", "form/wrong_shape", "form/syntax_error")

# Both are held to the same verdicts, and what is honest is only doubted beside another load.
pytestmark = pytest.mark.alone


@pytest.fixture(scope="module")
def bench(new_bench):
    return new_bench("serving")


@pytest.fixture(scope="module")
def judged(bench):
    """What the command line said of the cases."""
    paths = [ADVERSARIAL / f"{case}.py" for case in CASES]
    ended = bench.end(bench.judge(bench.folder / "tril_small.yaml", bench.candidates(paths), "cpu"))
    assert ended.code == 0, ended.err
    return ended


@pytest.fixture(scope="module")
def served(bench):
    """Answers to the same cases as jobs, with a bad job among them; the reference prints while it is loaded."""
    noisy = bench.folder / "noisy.py"
    noisy.write_text("print('the reference prints')\n" + (bench.folder / "tril_small.py").read_text())
    text = (bench.folder / "tril_small.yaml").read_text().replace("tril_small.py", "noisy.py")
    (bench.folder / "noisy.yaml").write_text(text)
    problem = str(bench.folder / "noisy.yaml")
    jobs = [{"id": case, "problem": problem, "source": (ADVERSARIAL / f"{case}.py").read_text()} for case in CASES]
    lines = [json.dumps(job) for job in jobs]
    lines.insert(2, '{"id": "bad"')
    done = subprocess.run(
        [sys.executable, "run.py", "serve", "--device", "cpu", "--config", str(bench.folder / "tiny.yaml")],
        input="\n".join(lines) + "\n", cwd=REPOSITORY, env=bench.environment, capture_output=True, text=True,
        timeout=600, check=False,
    )
    return done


def test_the_server_gives_the_command_line_s_verdicts_and_nothing_else_on_stdout(judged, served):
    assert served.returncode == 0, served.stderr
    answers = [json.loads(line) for line in served.stdout.splitlines()]
    assert len(answers) == len(CASES) + 1
    assert answers[2]["error"]["kind"] == "input"
    assert "the reference prints" in served.stderr
    for answer in answers:
        if "error" not in answer:
            name = answer["id"].split("/")[1]
            found = [(each["status"], each["reason_code"]) for each in (answer["record"], judged.rows[name])]
            # What a busy machine does to a clock is no matter of the door that the candidate came through.
            assert found[0] == found[1] or name == "torch_masked", answer["record"]["reason"]
    by_id = {answer["id"]: answer for answer in answers}
    passed, made = by_id["honest/torch_masked"]["metadata"]["correctness_trials"].strip("()").split(" / ")
    assert passed == made
    assert by_id["answer/positive_only"]["evidence"]["mistakes"]["wrong"] > 0
    assert by_id["form/syntax_error"]["compiled"] is False
    assert len({answer["record"]["run_id"] for answer in answers if "record" in answer}) == len(CASES)


def test_a_failed_launch_is_made_again_on_the_same_inputs(bench, judged):
    import torch

    out = bench.folder / "again.pt"
    ended = bench.run("reproduce", judged.csv_path, "positive_only", "--out", out, "--json")
    assert ended.code == 0, ended.err
    body = json.loads(ended.out)
    assert (body["failed_again"], body["same_inputs"], body["notes"]) == (True, True, [])
    row = judged.rows["positive_only"]
    assert (body["status"], body["reason_code"]) == (row["status"], row["reason_code"])
    kept = torch.load(out)
    (got,), (expected,) = kept["got"], kept["expected"]
    first = body["evidence"]["mistakes"]["first"][0]
    assert float(got[tuple(first["index"])]) == pytest.approx(first["got"])
    assert torch.allclose(torch.tril(kept["inputs"][0].double() @ kept["inputs"][1].double()), expected)


def test_what_has_no_launch_to_make_again_is_said(bench, judged):
    ended = bench.run("reproduce", judged.csv_path, "syntax_error")
    assert ended.code == 2
    assert "syntax_error is build_failed" in ended.err and "there is no launch to make again. Type python run.py show" in ended.err


def test_nothing_is_left_behind(bench, judged, served):
    assert bench.left_behind() == []
