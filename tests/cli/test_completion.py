"""What a shell is answered: verbs, flags, and the flags of `run` where only a problem was typed."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from harness.cli.flags import VERBS, put_run_before_a_problem
from harness.model.paths import REPOSITORY

pytestmark = pytest.mark.processes


def completions(typed: str, tmp_path) -> set[str]:
    line = f"python {typed}"
    answers = tmp_path / "answers"
    question = {
        "_ARGCOMPLETE": "2", "_ARGCOMPLETE_IFS": "\n", "COMP_LINE": line, "COMP_POINT": str(len(line)),
        "_ARGCOMPLETE_STDOUT_FILENAME": str(answers), "COMP_TYPE": "9", "_ARGCOMPLETE_COMP_WORDBREAKS": " \t\n",
    }
    done = subprocess.run(
        [sys.executable, "run.py"], cwd=REPOSITORY, env={**os.environ, **question}, capture_output=True, timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return {word.strip() for word in answers.read_text().split("\n")}


@pytest.mark.parametrize(("typed", "found"), [
    ("run.py com", {"compare"}),
    ("run.py compare --fo", {"--force", "--format"}),
    ("run.py problems/tril_matmul.yaml --wat", {"--watch"}),
    ("run.py problems/tril_matmul.yaml --device cpu --sa", {"--sanitize"}),
    ("run.py run problems/tril_matmul.yaml --mode forw", {"forward", "forward_backward"}),
])
def test_a_word_is_completed(typed, found, tmp_path):
    pytest.importorskip("argcomplete")
    assert completions(typed, tmp_path) == found


@pytest.mark.parametrize(("line", "becomes"), [
    ("python run.py p.yaml --d", "python run.py run p.yaml --d"),
    ("python run.py p.yaml ", "python run.py run p.yaml "),
    ("./run.py --strict p.yaml --d", "./run.py run --strict p.yaml --d"),
    ("kernel-referee p.yaml --d", "kernel-referee run p.yaml --d"),
    ("python -m harness p.yaml --d", "python -m harness run p.yaml --d"),
    ("/kernel-referee/run.py p.yaml --d", "/kernel-referee/run.py run p.yaml --d"),
    ("python run.py comp", None), ("python run.py compare --f", None), ("python run.py ", None),
    ("python other.py p.yaml --d", None), ("python run.py 'p.ya", None),
])
def test_run_is_put_before_what_is_no_verb_once_another_word_is_typed(line, becomes):
    environment = {"COMP_LINE": line, "COMP_POINT": str(len(line))}
    put_run_before_a_problem(environment, VERBS)
    assert environment == {"COMP_LINE": becomes or line, "COMP_POINT": str(len(becomes or line))}


def test_without_a_question_of_the_shells_nothing_is_answered():
    done = subprocess.run(
        [sys.executable, "run.py", "--version"], cwd=REPOSITORY, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.startswith("kernel-referee ")
