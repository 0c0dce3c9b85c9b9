"""Sources found by what they say, wherever they lie now."""

from __future__ import annotations

from harness.model.candidate import read_candidate
from harness.report.html.run_files import find_sources, highlighted


def test_a_source_is_found_by_its_hash_under_another_name(tmp_path):
    path = tmp_path / "tril" / "renamed.py"
    path.parent.mkdir()
    path.write_text("class ModelNew: pass\n")
    found = find_sources([tmp_path, tmp_path / "no_such_folder"])
    assert found[read_candidate(path).source_hash].text == "class ModelNew: pass\n"


def test_highlighting_escapes_and_keeps_every_character(tmp_path):
    shown = highlighted('x = "</script><b>" # {{ 1 }}\n')
    assert "</script>" not in shown and "<b>" not in shown and "&lt;/script&gt;" in shown
