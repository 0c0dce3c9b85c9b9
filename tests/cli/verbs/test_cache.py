"""`run.py cache`: what it shows and what it clears."""

from __future__ import annotations

import json
import os
import time

import pytest

from harness import cli


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("KERNEL_REFEREE_CACHE", str(tmp_path))
    for name, age_s in (("old", 40 * 86400), ("new", 60)):
        folder = tmp_path / "entries" / name
        folder.mkdir(parents=True)
        (folder / "manifest.json").write_text(json.dumps({"build": {"built_by": "nvcc 13.0", "extensions": []}}))
        used = time.time() - age_s
        os.utime(folder / "manifest.json", (used, used))
    return tmp_path


def test_it_shows_entries_size_and_limit_of_each_kind(root, capsys):
    assert cli.main(["cache"]) == 0
    shown = capsys.readouterr().out
    assert "CUDA" in shown
    assert "of 10 GB" in shown
    assert str(root) in shown


def test_json_has_the_same_in_stable_keys(root, capsys):
    assert cli.main(["cache", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["kinds"]["CUDA"]["entries"] == told["entries"] == 2
    assert told["removed"] == 0
    assert told["limit_bytes"] == 10 << 30


def test_older_than_removes_what_was_not_used_for_so_long(root, capsys):
    assert cli.main(["cache", "--older-than", "30d"]) == 0
    assert "Removed 1 entry" in capsys.readouterr().out
    assert [path.name for path in (root / "entries").iterdir()] == ["new"]


def test_clear_removes_everything(root, capsys):
    assert cli.main(["cache", "--clear"]) == 0
    assert "Removed 2 entries" in capsys.readouterr().out
    assert not list((root / "entries").iterdir())


def test_an_empty_cache_is_shown_too(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("KERNEL_REFEREE_CACHE", str(tmp_path / "none"))
    assert cli.main(["cache"]) == 0
    assert "0 B of 10 GB" in capsys.readouterr().out


def test_an_age_that_cannot_be_read_is_one_sentence(root, capsys):
    assert cli.main(["cache", "--older-than", "tomorrow"]) == 2
    assert "'tomorrow' is no age" in capsys.readouterr().err
