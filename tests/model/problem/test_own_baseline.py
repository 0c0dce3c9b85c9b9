"""`baseline:` in a problem's YAML and `--baseline`: a candidate file in eager's place, or one sentence on why not."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.model.candidate import read_candidate, rivals_of
from harness.model.errors import InputError, NothingToRun
from harness.model.problem import load_problem, over_baseline

SOURCE = "class ModelNew:\n    pass\n"
GIVE = "Give the path of a Python file with a class ModelNew: --baseline candidates/tril_matmul/tiled_shared.py"


@pytest.fixture
def expert(files):
    """`experts/expert.py` beside the folder of problems."""
    path = Path("experts/expert.py")
    path.parent.mkdir()
    path.write_text(SOURCE)
    return path


def test_a_path_in_the_yaml_is_relative_to_the_yaml(files, expert):
    baseline = files.load(files.minimal + "baseline: ../experts/expert.py\n").baseline
    assert (baseline.name, baseline.role, baseline.source) == ("expert", "baseline", SOURCE)
    assert baseline.source_hash == read_candidate(expert).source_hash


def test_without_one_the_baseline_is_eager(files):
    assert files.load(files.minimal).baseline is None
    assert over_baseline(load_problem("problems/x.yaml"), None).baseline is None


def test_the_flag_counts_before_the_yaml(files, expert):
    other = Path("other.py")
    other.write_text(SOURCE)
    problem = files.load(files.minimal + "baseline: ../experts/expert.py\n")
    assert over_baseline(problem, other).baseline.name == "other"


@pytest.mark.parametrize(("source", "says"), [
    (None, "there is no such file of a baseline"),
    ("class Model: pass\n", "expert.py:1: found class Model; the harness runs the class named ModelNew"),
    ("class ModelNew(\n", "expert.py:1: "),
])
def test_a_file_that_cannot_be_a_baseline_is_named_with_the_line_of_the_yaml(files, expert, source, says):
    expert.unlink()
    if source is not None:
        expert.write_text(source)
    message = files.message(files.minimal + "baseline: ../experts/expert.py\n")
    assert message.startswith("problems/x.yaml:3: baseline: ") and says in message


@pytest.mark.parametrize(("path", "says"), [
    ("none.py", f"none.py: there is no such file of a baseline. {GIVE}"),
    ("eagr.py", "eagr.py: there is no such file of a baseline. Did you mean eager.py?"),
    ("eager", "eager: there is no such file of a baseline. --baselines names the harness's own"),
    ("experts", f"experts: there is no such file of a baseline. {GIVE}"),
    ("notes.txt", "notes.txt: a baseline is a .py file with class ModelNew"),
    ("eager.py", "the baseline eager.py: eager is the name of a baseline. Rename the file"),
])
def test_a_flag_that_names_no_baseline_gets_one_sentence(files, expert, path, says):
    for name in ("notes.txt", "eager.py"):
        Path(name).write_text(SOURCE)
    with pytest.raises(InputError) as caught:
        over_baseline(files.load(files.minimal), Path(path))
    assert str(caught.value) == says and caught.value.exit_code == 2


def test_the_file_itself_is_no_candidate_beside_itself(files, expert):
    Path("experts/mine.py").write_text(SOURCE)
    baseline = over_baseline(files.load(files.minimal), expert).baseline
    found = [read_candidate(Path("experts", name)) for name in ("expert.py", "mine.py")]
    assert [each.name for each in rivals_of(baseline, found)] == ["mine"]
    assert [each.name for each in rivals_of(None, found)] == ["expert", "mine"]
    with pytest.raises(NothingToRun, match="no candidate is left: expert is the baseline itself"):
        rivals_of(baseline, found[:1])


def test_another_file_of_its_name_is_refused(files, expert):
    Path("expert.py").write_text(SOURCE)
    baseline = over_baseline(files.load(files.minimal), expert).baseline
    with pytest.raises(InputError, match="expert is the name of the baseline and of a candidate. Rename one") as caught:
        rivals_of(baseline, [read_candidate(Path("expert.py"))])
    assert caught.value.exit_code == 2
