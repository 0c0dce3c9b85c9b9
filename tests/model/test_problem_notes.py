"""Notes on a problem: a closed list of words in the records, each with a sentence, and which of them bar ranks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.model.problem_notes import ProblemNote, bars_ranks, note_text, notes_in
from harness.results.ranking import rank, shows_its_work, why_unranked

RANKED = {"kind": "custom", "precision_class": "fp32", "time_us": 2.0}


@pytest.mark.parametrize("notes", [(), (ProblemNote.SAME_OUTPUT,), tuple(ProblemNote)])
def test_what_stands_in_a_record_is_read_as_it_was_written(notes):
    assert tuple(notes_in(note_text(notes))) == notes


def test_a_note_that_was_told_twice_stands_there_once_and_an_unknown_word_is_passed_over():
    assert note_text([ProblemNote.SAME_INPUTS, ProblemNote.SAME_INPUTS]) == "same_inputs"
    assert notes_in("of_a_later_version, same_output") == [ProblemNote.SAME_OUTPUT]
    assert note_text([]) is None and notes_in(None) == []


@pytest.mark.parametrize("note", ProblemNote)
def test_rows_are_ranked_unless_the_note_says_that_they_are_not(make_record, note):
    record = make_record(problem_note=note.value, **RANKED)
    is_barred = "neither ranked nor scored" in note.sentence
    assert bars_ranks(record.problem_note) == is_barred
    [row] = rank([record], ["custom"])
    assert (row.rank is None) == is_barred
    if is_barred:
        assert why_unranked(row, [row]) == note.sentence


def test_who_leaves_the_state_as_it_was_is_not_ranked_and_who_moves_it_is(make_record):
    moves = make_record(state_moved=True, **RANKED)
    leaves = replace(moves, candidate="leaves", state_moved=False, time_us=1.0)
    rows = {row.candidate: row for row in rank([moves, leaves], ["custom"])}
    assert (rows["tiled"].rank, rows["leaves"].rank) == (1, None)
    assert not shows_its_work(leaves)
    assert "leaves the model's state as it was" in why_unranked(rows["leaves"], list(rows.values()))
