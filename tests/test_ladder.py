"""docs/ladder.md says what its CSVs say, and has every rung that runs on a GPU."""

from __future__ import annotations

import importlib.util

import pytest
from shipped import shipped

from harness.model.paths import REPOSITORY

_SPEC = importlib.util.spec_from_file_location("write_ladder", REPOSITORY / "docs" / "write_ladder.py")
write_ladder = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(write_ladder)


@pytest.fixture
def page():
    return write_ladder.PAGE.read_text(encoding="utf-8")


def test_its_figures_are_those_of_the_results_that_it_names(page):
    paths = write_ladder.named_in(page)
    assert set(paths) == set(write_ladder.PROBLEMS)
    assert write_ladder.page_with(page, paths) == page, "type python docs/write_ladder.py"
    assert write_ladder.plot(page, paths) == write_ladder.PLOT.read_text(encoding="utf-8")


def test_it_has_every_rung_but_those_for_a_cpu(page):
    for problem in write_ladder.PROBLEMS:
        for path in shipped(f"candidates/{problem}/*.py"):
            listed = f"[{path.stem}](../candidates/{problem}/{path.name})" in page
            assert listed != path.stem.endswith("_cpu"), path


def test_new_results_change_figures_order_date_and_links_and_nothing_else(page, tmp_path):
    paths = write_ladder.named_in(page)
    text = paths["tril_matmul"].read_text(encoding="utf-8")
    rows = write_ladder.read(paths["tril_matmul"])
    slow = rows["tiled_shared"]
    changed = tmp_path / "20991231T000000Z.csv"
    changed.write_text(
        text.replace(slow["time_us"], "12345.6").replace(rows["eager"]["utc"], "2099-12-31T00:00:00+00:00"),
        encoding="utf-8",
    )
    made = write_ladder.page_with(page, {**paths, "tril_matmul": changed})
    assert "(../results/tril_matmul/nvidia-h200/20991231T000000Z.csv)" in made
    assert "NVIDIA H200 on 2099-12-31" in made
    lines = [line for line in made.splitlines() if line.startswith(("| [", "| eager"))]
    assert "tiled_shared" in lines[1] and "| 12.3 |" in lines[1]
    assert write_ladder.page_with(made, paths) == page
