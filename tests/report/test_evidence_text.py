"""What the words and the picture say of where errors sit."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.reference.evidence import Evidence, Mistakes, Recipe, Spread, WrongElement
from harness.report.evidence_text import evidence_lines, launch_sentence, picture_lines, where_sentences

ALL = {name: Spread(100, 100, 0, 99, 1) for name in ("rows", "columns")}
MISTAKES = Mistakes(
    output=0, shape=(100, 100), dtype="float32", allowed_u=32.0, wrong=4950, elements=10000,
    first=(WrongElement((0, 1), "nan", 0.0, "inf"), WrongElement((0, 2), 1.5, 0.25, 1250.0)),
    batches=Spread(1, 1, 0, 0, None), **ALL, below_diagonal=0, on_diagonal=0, above_diagonal=4950,
    picture=(" @", "  "),
)
RECIPE = Recipe({"M": 100}, "signs", 7, 1)


def where(**changes) -> str:
    return "\n".join(where_sentences(replace(MISTAKES, **changes)))


def test_a_triangle_is_called_one():
    assert "everything above the diagonal and nothing else" in where()
    assert "above the diagonal only" in where(above_diagonal=4949, wrong=4949)
    assert "below the diagonal only" in where(above_diagonal=0, below_diagonal=7, wrong=7)
    assert "the diagonal alone" in where(above_diagonal=0, on_diagonal=100, wrong=100)
    assert "diagonal" not in where(below_diagonal=1)
    assert "diagonal" not in where(below_diagonal=None, on_diagonal=None, above_diagonal=None)


@pytest.mark.parametrize(("spread", "words"), [
    (Spread(100, 1, 99, 99, None), "only row 99, the last of 100"),
    (Spread(100, 1, 0, 0, None), "only row 0, the first of 100"),
    (Spread(100, 3, 31, 95, 32), "every 32nd row, from 31 to 95"),
    (Spread(100, 4, 96, 99, 1), "rows 96 to 99 of 100"),
    (Spread(100, 5, 2, 60, None), "5 of the rows 2 to 60 of 100"),
])
def test_rows_that_have_something_in_common_are_named(spread, words):
    assert words in where(rows=spread)


def test_batches_are_named_only_where_there_are_some():
    assert "batch" not in where()
    assert "only batch 3 of 8" in where(batches=Spread(8, 1, 3, 3, None))


def test_the_picture_has_its_edges_numbered_and_keeps_its_blanks():
    lines = picture_lines(MISTAKES)
    assert [line for line in lines if "│" in line] == [" 0 │ @│", "99 │  │"]


def test_all_wrong_needs_no_picture_and_no_percentage():
    text = "\n".join(evidence_lines(Evidence(RECIPE, replace(MISTAKES, wrong=10000))))
    assert "Wrong: all elements of 100×100 float32, off by more than 32 u." in text
    assert "│" not in text


def test_values_that_are_no_numbers_are_shown_and_nearly_all_is_not_all():
    text = "\n".join(evidence_lines(Evidence(RECIPE, replace(MISTAKES, wrong=9999))))
    assert "(over 99 %)" in text
    assert ["[0,", "1]", "nan", "0", "inf"] in [line.split() for line in text.splitlines()]
    assert "1,250" in text


def test_a_launch_of_a_queue_says_which():
    assert launch_sentence(RECIPE) == "Found in a single launch, at M=100, inputs of the family signs."
    assert "launch 3 of 40 queued together" in launch_sentence(replace(RECIPE, before=(1, 2), queued=40))


def test_without_wrong_values_the_launch_alone_is_named():
    assert evidence_lines(Evidence(RECIPE)) == [launch_sentence(RECIPE)]
