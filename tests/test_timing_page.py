"""docs/design/timing.md has the table that the committed figures of eager against itself make."""

from __future__ import annotations

import importlib.util

import pytest

from harness.model.paths import REPOSITORY

_SPEC = importlib.util.spec_from_file_location("write_timing", REPOSITORY / "docs" / "write_timing.py")
write_timing = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(write_timing)

PAGE = write_timing.PAGE.read_text(encoding="utf-8")


def test_its_table_is_that_of_the_committed_figures():
    body = write_timing.read(write_timing.FIGURES)
    assert write_timing.page_with(PAGE, body) == PAGE, "type python docs/write_timing.py"


def test_other_figures_change_the_block_and_nothing_else():
    body = write_timing.read(write_timing.FIGURES)
    changed = {**body, "utc": "2099-12-31T00:00:00+00:00", "devices": ["cuda:0"], "device": "NVIDIA X"}
    page = write_timing.page_with(PAGE, changed)
    assert "On NVIDIA X, PyTorch" in page and "2099-12-31, `--config" in page
    assert write_timing.page_with(page, body) == PAGE


def test_of_several_runs_each_command_and_each_day_is_named():
    body = write_timing.read(write_timing.FIGURES)
    one = {name: body[name] for name in ("utc", "command", "minutes", "processes")}
    several = {**body, "utc": "2099-12-31T00:00:00+00:00", "command": "the second", "earlier": [one]}
    page = write_timing.page_with(PAGE, several)
    assert f"{body['command']}\nthe second\n" in page and f"{body['utc'][:10]} and 2099-12-31, `--config" in page


def test_a_page_without_the_markers_is_not_written_to():
    with pytest.raises(ValueError, match="has no markers"):
        write_timing.page_with("no table here\n", {})
