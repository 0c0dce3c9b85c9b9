"""What `pip install .` puts into an environment works there, from any folder, and nothing is written into it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from harness.model.paths import REPOSITORY

pytestmark = pytest.mark.processes

START = "import sys; sys.argv[0] = 'kernel-referee'; import kernel_referee; kernel_referee.main()"


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    """A folder as an environment's site-packages would be, as far as this package goes."""
    folder = tmp_path_factory.mktemp("built")
    subprocess.run(
        [sys.executable, "setup.py", "-q", "egg_info", "--egg-base", str(folder), "build", "--build-base", str(folder),
         "--build-lib", str(folder / "lib")],
        cwd=REPOSITORY, check=True, capture_output=True, timeout=120,
    )
    return folder / "lib"


@pytest.fixture
def typed(installed, tmp_path, monkeypatch):
    """`typed(words)`: what comes of them in an empty folder but for a harness.py, which comes first on PYTHONPATH."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "harness.py").write_text("raise SystemExit('this is not the package')")

    def run(*words: str, answers: str = "") -> subprocess.CompletedProcess[str]:
        path = os.pathsep.join([str(tmp_path), str(installed)])
        return subprocess.run(
            [sys.executable, "-c", START, *words], env={**os.environ, "PYTHONPATH": path}, cwd=tmp_path, input=answers,
            capture_output=True, text=True, timeout=300, check=False,
        )

    return run


def files_in(folder: Path) -> dict[str, int]:
    files = [path for path in folder.rglob("*") if path.suffix != ".pyc" and path.is_file()]
    return {str(path): path.stat().st_mtime_ns for path in files}


def test_it_holds_every_module_page_problem_candidate_and_setting(installed):
    for folder, there in (
        ("harness", "harness"), ("problems", "kernel_referee/problems"), ("candidates", "kernel_referee/candidates"),
        ("configs", "kernel_referee/configs"), ("tests/known", "kernel_referee/tests/known"),
        ("tests/adversarial", "kernel_referee/tests/adversarial"),
    ):
        wanted = {
            path.relative_to(REPOSITORY / folder) for path in (REPOSITORY / folder).rglob("*")
            if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".part"
        }
        assert wanted <= {path.relative_to(installed / there) for path in (installed / there).rglob("*")}, folder


def test_the_list_the_settings_and_the_advice_are_those_of_an_installation(typed):
    listed = json.loads(typed("list", "--json").stdout)
    assert {"tril_matmul", "matmul_transposed_a"} <= {each["name"] for each in listed["problems"]}
    assert listed["settings"] == ["quick", "default", "rigorous"]
    missing = typed("compare")
    assert missing.returncode == 2 and "`kernel-referee PROBLEM` writes" in missing.stderr


def test_a_shipped_candidate_is_not_tuned_in_place(typed, installed):
    path = installed / "kernel_referee/candidates/tril_matmul/tiled_shared.py"
    before = path.read_text()
    path.write_text(f'PARAMETERS = {{"BM": [1, 2]}}\n{before}')
    try:
        refused = typed("tril_matmul", "--tune", "tiled_shared")
    finally:
        path.write_text(before)
    assert refused.returncode == 2 and "new tril_matmul my_tiled_shared --from tiled_shared" in refused.stderr


@pytest.mark.slow
def test_run_compare_report_and_serve_from_an_empty_folder_leave_the_installation_as_it_is(typed, installed, tmp_path):
    before = files_in(installed)
    ran = typed("tril_matmul", "--config", "quick", "--device", "cpu", "--baselines", "eager", "--only", "cublas_blocks", "--json")
    assert ran.returncode == 0, ran.stderr
    (row,) = [each for each in json.loads(ran.stdout)["records"] if each["role"] == "candidate"]
    assert row["status"] in ("ok", "unsure"), row["reason"]
    assert row["dirty"] is None
    shutil.copytree("results", "earlier")
    for words in (["compare", "earlier", "results"], ["scores"], ["report"], ["show", "cublas_blocks"]):
        assert typed(*words).returncode == 0, words
    job = {"problem": "tril_matmul", "path": "candidates/tril_matmul/cublas_blocks.py"}
    answer = typed("serve", "--device", "cpu", "--config", "quick", answers=json.dumps(job) + "\n")
    assert json.loads(answer.stdout)["record"]["status"] in ("ok", "unsure"), answer.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"harness.py", "results", "earlier"}
    assert files_in(installed) == before
