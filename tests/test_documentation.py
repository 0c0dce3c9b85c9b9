"""The pages: their commands are ones that there are, their candidates ones that are taken, their links lead somewhere."""

from __future__ import annotations

import importlib.util
import json
import re
import shlex
from pathlib import Path

import pytest

from harness.cli import flags
from harness.cli.verbs.serve import _KEYS
from harness.model.candidate import read_candidate
from harness.model.paths import REPOSITORY
from harness.model.verdict import CODES_OF, ReasonCode, Status
from harness.reference.evidence import Evidence, Mistakes, Recipe, Spread, WrongElement

PAGES = [REPOSITORY / "AGENTS.md", REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]
AGENTS = PAGES[0].read_text(encoding="utf-8")
TUTORIAL = (REPOSITORY / "docs" / "tutorial.md").read_text(encoding="utf-8")


def name_of(page: Path) -> str:
    return page.relative_to(REPOSITORY).as_posix()


def commands(text: str) -> list[list[str]]:
    blocks = re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    found = [re.search(r"python (run\.py [^|]*)", line) for block in blocks for line in block.splitlines()]
    return [shlex.split(each.group(1), comments=True)[1:] for each in found if each]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_command_is_one_that_the_command_line_knows(page):
    for arguments in commands(page.read_text(encoding="utf-8")):
        assert "--help" in arguments or flags.understood(arguments).verb in flags.VERBS, arguments


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    prose = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", prose, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_leads_to_a_file_and_to_a_heading_of_it(page):
    prose = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for target, anchor in re.findall(r"\]\(([^)#:\s]*)(?:#([^)\s]*))?\)", prose):
        path = page.parent / target if target else page
        assert path.exists(), target
        assert not anchor or path.suffix != ".md" or anchor in anchors(path), f"{target}#{anchor}"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_file_of_the_repository_that_a_page_names_is_there(page):
    named = re.findall(r"`((?:harness|tests|benchmarks|configs|docs)/[\w/.]+\.\w+)`", page.read_text(encoding="utf-8"))
    assert [each for each in named if not (REPOSITORY / each).exists()] == []


def test_every_page_that_the_code_names_is_there():
    sources = [
        path for folder in ("harness", "benchmarks", "docs", "tests", "candidates", "problems")
        for path in (REPOSITORY / folder).rglob("*.py")
    ]
    named = {each for path in sources for each in re.findall(r"\bdocs/[\w/.-]+\.md\b", path.read_text(encoding="utf-8"))}
    assert named
    assert [each for each in sorted(named) if not (REPOSITORY / each).exists()] == []


def test_the_rooms_on_the_page_for_contributors_are_those_of_the_plan():
    spec = importlib.util.spec_from_file_location("write_rooms", REPOSITORY / "docs" / "write_rooms.py")
    write_rooms = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(write_rooms)
    page = write_rooms.PAGE.read_text(encoding="utf-8")
    assert write_rooms.page_with(page) == page, "type python docs/write_rooms.py"


def test_every_reason_code_has_its_heading_below_its_status_and_no_other_has():
    page = (REPOSITORY / "docs" / "verdicts.md").read_text(encoding="utf-8")
    sections = re.findall(r"^## (.*)\n((?:(?!^## ).*\n)*)", page, re.MULTILINE)
    below: dict[str, list[str]] = {}
    for title, text in sections:
        below[title] = re.findall(r"^### (.*)$", text, re.MULTILINE)
    codes = [code for each in below.values() for code in each]
    assert sorted(codes) == sorted(code.value for code in ReasonCode if code is not ReasonCode.NONE)
    for title, found in below.items():
        statuses = [Status(each) for each in re.findall(r"`(\w+)`", title)]
        assert set(found) <= {code.value for status in statuses for code in CODES_OF[status]}, title


def test_every_reason_code_says_what_to_do():
    page = (REPOSITORY / "docs" / "verdicts.md").read_text(encoding="utf-8")
    parts = re.split(r"^#{2,3} ", page, flags=re.MULTILINE)
    codes = {code.value for code in ReasonCode}
    assert [each.split("\n")[0] for each in parts if each.split("\n")[0] in codes and "**Do:**" not in each] == []


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
