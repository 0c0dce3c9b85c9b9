"""`run.py selftest` as a person types it, on a CPU and over a few cases of the real corpus."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.device.lock import device_lock
from harness.selftest.corpus import CORPUS, cases_for, read_corpus

pytestmark = pytest.mark.processes

REPOSITORY = Path(__file__).resolve().parents[2]
CHEAT, FAULT, HONEST = "constant_output", "segfault_in_forward", "torch_masked"
PAGE = "<!-- matrix:cuda -->\n<!-- /matrix:cuda -->\n<!-- matrix:cpu -->\n<!-- /matrix:cpu -->\n"


def selftest(folder: Path, *words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "run.py", "selftest", *map(str, words)], cwd=REPOSITORY, capture_output=True, text=True,
        timeout=500, check=False,
        env={**os.environ, "TMPDIR": str(folder), "KERNEL_REFEREE_CACHE": str(folder / "cache"), "NO_COLOR": "1"},
    )


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """The corpus's cheat, fault and control through the command line, and the folder of it all."""
    folder = tmp_path_factory.mktemp("selftest")
    (folder / "page.md").write_text(PAGE, encoding="utf-8")
    only = [word for name in (CHEAT, FAULT, HONEST) for word in ("--only", name)]
    words = ["--adversarial", "--device", "cpu", "--out", folder / "out", "--write", folder / "page.md"]
    return selftest(folder, *words, *only), folder


def test_the_corpus_that_is_shipped_can_be_read_and_has_something_for_each_kind_of_device():
    cases = read_corpus(CORPUS)
    for kind in ("cpu", "cuda"):
        assert len(cases_for(cases, kind, "tril_matmul")) >= 10


def test_each_case_has_its_line_and_the_exit_code_says_whether_all_is_as_expected(ran):
    ended, _ = ran
    outcome = {line.split()[1]: line.split()[-1] for line in ended.stdout.splitlines() if line.count("  ") > 3}
    assert (outcome[CHEAT], outcome[FAULT]) == ("caught", "right"), ended.stdout
    # On a machine that other programs share, a control may be right and not measurable.
    assert outcome[HONEST] in ("right", "unsure"), ended.stdout
    assert ended.returncode == (0 if outcome[HONEST] == "right" and "eager itself" not in ended.stdout else 3)
    assert "1 cheat: 1 caught\n" in ended.stdout
    assert "Traceback" not in ended.stdout + ended.stderr
    # The fault of the machine among the three is not shown to it.
    assert f"naive judge [2/2] {HONEST}: correct" in ended.stderr


def test_the_records_are_those_of_a_normal_run(ran):
    ended, folder = ran
    (path,) = (folder / "out").rglob("*.csv")
    assert str(path) in ended.stdout
    with path.open(newline="", encoding="utf-8") as file:
        rows = {row["candidate"]: row for row in csv.DictReader(file)}
    assert set(rows) == {"eager", CHEAT, FAULT, HONEST}
    assert rows[FAULT]["status"] == "crashed"
    assert rows[HONEST]["config"] == "selftest"


@pytest.mark.parametrize("words", [[], ["--adversarial", "--only", CHEAT]])
def test_who_does_not_want_to_wait_for_another_run_gives_up(words, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with device_lock(None):
        ended = selftest(tmp_path, *words, "--device", "cpu", "--wait", "0.1")
    assert ended.returncode == 4 and "still has this CPU after 0.1 s" in ended.stderr


def test_the_matrix_is_on_the_page_and_in_the_folder(ran):
    _, folder = ran
    page = (folder / "page.md").read_text(encoding="utf-8")
    assert f"`{FAULT}`" in page and page.startswith("<!-- matrix:cuda -->\n<!-- /matrix:cuda -->\n")
    kept = json.loads((folder / "out" / "matrix-cpu.json").read_text(encoding="utf-8"))
    assert {row["name"] for row in kept} == {CHEAT, FAULT, HONEST}


def test_nothing_but_the_cache_and_the_results_is_left(ran):
    _, folder = ran
    left = {path.name for path in folder.iterdir() if not path.name.startswith("torchinductor_")}
    assert left <= {"cache", "out", "page.md", "kernel-referee-locks"}


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--only", "guess"], 2, "--adversarial"),
        (["--devices", "all"], 2, "--devices is about the corpus. Type selftest --adversarial --devices all"),
        (["--adversarial", "--only", "gues"], 2, "Did you mean 'guess'?"),
        (["--adversarial", "--write", "no/such/page.md"], 2, "no/such/page.md"),
        (["--adversarial", "--device", "toaster"], 2, "--device cpu"),
        (["--adversarial", "--only", "illegal_access_cuda", "--device", "cpu"], 4, "none of the chosen cases"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else str(value),
)
def test_a_mistake_is_one_line_and_an_exit_code(tmp_path, words, code, said):
    ended = selftest(tmp_path, *words)
    assert ended.returncode == code, ended.stderr
    assert said in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


def test_without_the_naive_judge_its_column_is_empty_and_nothing_is_said_of_it(tmp_path):
    ended = selftest(tmp_path, "--adversarial", "--no-naive", "--device", "cpu", "--only", CHEAT, "--out", tmp_path / "out")
    assert ended.returncode == 0, ended.stdout
    assert "1 cheat: 1 caught\n" in ended.stdout
    assert "the naive judge" not in ended.stdout + ended.stderr
    wrong = selftest(tmp_path, "--no-naive", "--device", "cpu")
    assert (wrong.returncode, "about the corpus" in wrong.stderr) == (2, True)
