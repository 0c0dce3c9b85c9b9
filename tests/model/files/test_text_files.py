"""A file that is written whole, or not at all."""

from __future__ import annotations

import pytest

from harness.model.files.text_files import replacing


def test_a_file_is_replaced_once_all_of_it_is_written(tmp_path):
    path = tmp_path / "page.html"
    path.write_text("before")
    with replacing(path) as part:
        part.write_text("after")
        assert path.read_text() == "before"
    assert path.read_text() == "after" and list(tmp_path.iterdir()) == [path]


def test_what_fails_half_way_leaves_the_file_as_it_was_and_nothing_beside_it(tmp_path):
    path = tmp_path / "page.html"
    path.write_text("before")
    with pytest.raises(OSError, match="No space left"), replacing(path) as part:
        part.write_text("aft")
        raise OSError(28, "No space left on device")
    assert path.read_text() == "before" and list(tmp_path.iterdir()) == [path]
