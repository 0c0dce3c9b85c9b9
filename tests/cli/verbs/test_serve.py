"""What `serve` says to good jobs and bad ones, with a judge that follows a script."""

from __future__ import annotations

import io
import json
import threading
from pathlib import Path

import pytest

from harness.cli.verbs.serve import serve, serve_together
from harness.model.errors import HarnessError


class Found:
    def __init__(self, words):
        self._words = words

    def to_json(self):
        return {"record": self._words}


def answers_to(*lines: str, evaluate=None) -> list[dict]:
    def judge(problem, source, *, name, config, mode, baseline):
        if source == "lost":
            raise HarnessError("the GPU does not answer")
        if source == "bug":
            raise ZeroDivisionError("division by zero")
        return Found([problem, str(source), type(source).__name__, name, config])

    out = io.StringIO()
    serve([line + "\n" for line in lines], out, evaluate or judge, "quick")
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_a_job_is_answered_under_its_id_with_the_settings_of_the_server():
    (answer,) = answers_to('{"id": 7, "problem": "tril", "source": "class ModelNew: pass"}')
    assert answer == {"id": 7, "record": ["tril", "class ModelNew: pass", "str", None, "quick"]}


def test_a_path_is_a_file_and_a_job_may_choose_name_and_settings():
    (answer,) = answers_to('{"problem": "tril", "path": "a/b.py", "name": "mine", "config": "rigorous"}')
    assert answer["record"][1:] == ["a/b.py", type(Path()).__name__, "mine", "rigorous"]
    assert answer["id"] is None


@pytest.mark.parametrize(("line", "said"), [
    ("{", "one line of JSON"),
    ('{"id": 3', "this is none (Expecting ',' delimiter at column 9)"),
    ("[]", "JSON object"),
    ("3", "JSON object"),
    ('{"id": "x"}', "names its problem"),
    ('{"problem": "tril"}', "either the candidate's source or the path"),
    ('{"problem": "tril", "source": "a", "path": "b"}', "either the candidate's source or the path"),
    ('{"problem": "tril", "sorce": "a"}', "Did you mean 'source'"),
    ('{"problem": 3, "source": "a"}', "'problem' of a job is text, not 3"),
    ("[" * 100_000, "one line of JSON"),
    (r'{"problem": "tril", "source": "\ud800"}', "half of a surrogate pair"),
])
def test_a_bad_job_costs_its_own_answer_and_the_next_is_served(line, said):
    bad, good = answers_to(line, '{"id": 2, "problem": "tril", "source": "x"}')
    assert bad["error"]["kind"] == "input"
    assert said in bad["error"]["message"]
    assert good["id"] == 2
    assert "error" not in good


def test_the_machine_s_fault_and_ours_are_answers_too():
    lost, bug = answers_to('{"id": 1, "problem": "t", "source": "lost"}', '{"id": 2, "problem": "t", "source": "bug"}')
    assert lost == {"id": 1, "error": {"kind": "machine", "message": "the GPU does not answer"}}
    assert (bug["id"], bug["error"]["kind"]) == (2, "harness")
    assert "division by zero" in bug["error"]["message"]
    assert bug["error"]["traceback"].startswith("Traceback") and "in judge" in bug["error"]["traceback"]


def test_blank_lines_get_no_answer():
    assert answers_to("", "   ") == []


def test_what_is_only_checked_and_what_has_a_budget_is_passed_on_and_nothing_else_is_taken_for_them():
    def judge(problem, source, **words):
        return Found(words)

    (answer,) = answers_to('{"problem": "t", "source": "a", "check_only": true, "budget_s": 2.5}', evaluate=judge)
    assert answer["record"]["check_only"] is True and answer["record"]["budget_s"] == 2.5
    for key, value in (("check_only", '"yes"'), ("budget_s", "true"), ("budget_s", "-1")):
        (answer,) = answers_to(f'{{"problem": "t", "source": "a", "{key}": {value}}}', evaluate=judge)
        assert answer["error"]["kind"] == "input" and key in answer["error"]["message"]


def test_together_each_is_answered_as_soon_as_it_is_judged():
    first = threading.Event()

    def judge(problem, source, **words):
        assert source != "slow" or first.wait(30)
        first.set()
        return Found(source)

    out = io.StringIO()
    lines = ['{"id": 1, "problem": "t", "source": "slow"}', "", '{"id": 2, "problem": "t", "source": "quick"}']
    serve_together([line + "\n" for line in lines], out, judge, "quick")
    assert [json.loads(line)["id"] for line in out.getvalue().splitlines()] == [2, 1]


def test_after_ctrl_c_nobody_waits_for_answers():
    closed, begun = threading.Event(), threading.Event()

    def judge(problem, source, **words):
        begun.set()
        closed.wait(30)
        return Found(source)

    def interrupted():
        yield '{"id": 1, "problem": "t", "source": "slow"}'
        assert begun.wait(30)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        serve_together(interrupted(), io.StringIO(), judge, "quick")
    assert not closed.is_set()
    closed.set()
