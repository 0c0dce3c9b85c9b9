"""The pages in docs/ and AGENTS.md: their commands are ones that there are, their candidates ones that are taken."""

from __future__ import annotations

import json
import re
import shlex

import pytest

from harness import flags
from harness.candidate import read_candidate
from harness.places import REPOSITORY
from harness.records.evidence import Evidence, Mistakes, Recipe, Spread, WrongElement
from harness.verbs.serve import _KEYS

PAGES = [REPOSITORY / "AGENTS.md", *sorted((REPOSITORY / "docs").glob("*.md"))]
AGENTS = PAGES[0].read_text(encoding="utf-8")
TUTORIAL = (REPOSITORY / "docs" / "tutorial.md").read_text(encoding="utf-8")


def commands(text: str) -> list[list[str]]:
    blocks = re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    found = [re.search(r"python (run\.py [^|]*)", line) for block in blocks for line in block.splitlines()]
    return [shlex.split(each.group(1), comments=True)[1:] for each in found if each]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_is_one_that_the_command_line_knows(page):
    for arguments in commands(page.read_text(encoding="utf-8")):
        assert flags.understood(arguments).verb in flags.VERBS, arguments


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_to_a_file_leads_to_one(page):
    prose = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", prose):
        assert (page.parent / target).exists(), target


def test_the_tutorial_s_kernel_is_a_candidate_and_its_mistake_is_the_line_that_it_mends(tmp_path):
    (source,) = re.findall(r"^```python\n(.*?)^```", TUTORIAL, re.MULTILINE | re.DOTALL)
    path = tmp_path / "my_first.py"
    path.write_text(source, encoding="utf-8")
    candidate = read_candidate(path)
    assert (candidate.fault, candidate.language) == (None, "cpp")
    (mended,) = re.findall(r"^```cpp\n(.*?)\n```", TUTORIAL, re.MULTILINE | re.DOTALL)
    assert mended.replace("j < M", "j <= i") in source


def test_the_page_for_programs_names_every_key_of_a_job_and_of_the_evidence():
    ONE = Spread(1, 1, 0, 0, None)
    element = WrongElement((0,), 1.0, 2.0, 3.0)
    mistakes = Mistakes(0, (1,), "float32", 8.0, 1, 1, (element,), ONE, ONE, ONE, None, None, None, ("@",))
    body = json.loads(json.dumps(Evidence(Recipe({}, "signs", 1, 2), mistakes).to_json()))
    keys = {*_KEYS, *body["recipe"], *body["mistakes"], *body["mistakes"]["rows"], *body["mistakes"]["first"][0]}
    assert [key for key in sorted(keys) if f"`{key}`" not in AGENTS] == []


def test_the_page_for_programs_has_the_exit_codes_of_the_help_text():
    for code in re.findall(r"(?m)(?:^|\s{2,})(\d+)  ", flags.EXIT_CODES):
        assert f"| {code} |" in AGENTS
