"""What is told of a problem once, for all rows of a run: a closed list, each with its sentence.

Where a problem cannot show what a candidate computes, its rows are judged and timed, but neither ranked nor scored. A
record has the words of the list in its column `problem_note`; the sentence stands once under the table.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum


_NOTHING_COUNTS = "its rows are neither ranked nor scored"


class ProblemNote(str, Enum):
    """The word in the records, and the `sentence` that stands under the table."""

    def __new__(cls, word: str, sentence: str) -> ProblemNote:
        note = str.__new__(cls, word)
        note._value_, note.sentence = word, sentence
        return note

    SAME_OUTPUT = "same_output", "its output was the same for all draws of the inputs, so what a candidate computes " \
        f"cannot be seen: {_NOTHING_COUNTS}"
    SAME_INPUTS = "same_inputs", "its get_inputs() returned the same at each draw, so a result that was kept from an " \
        f"earlier call is right: {_NOTHING_COUNTS}"
    ROUNDING_NOISE = "rounding_noise", "one of its outputs is rounding noise, in which nothing can be compared: " \
        f"{_NOTHING_COUNTS}"
    COARSE_CHOICE = "coarse_choice", "its outputs are whole numbers chosen by what was summed, and inputs in TF32 change " \
        f"none of them, so a candidate's precision cannot be seen: {_NOTHING_COUNTS}"
    OVERLAPPING_INPUT = "overlapping_input", "an input of its get_inputs() has elements that overlap in memory; " \
        "candidates and eager alike are given a contiguous copy of it"

    @property
    def bars_ranks(self) -> bool:
        """Whether rows with this note are neither ranked nor scored."""
        return self is not ProblemNote.OVERLAPPING_INPUT


def note_text(notes: Iterable[ProblemNote]) -> str | None:
    """The column of a record; None without notes."""
    return ", ".join(note.value for note in dict.fromkeys(notes)) or None


def notes_in(text: str | None) -> list[ProblemNote]:
    """The notes in a record's column; words that this version does not know are passed over."""
    known = {note.value: note for note in ProblemNote}
    return [known[word] for word in (text or "").split(", ") if word in known]


def bars_ranks(text: str | None) -> bool:
    """Whether a row with this column is neither ranked nor scored."""
    return any(note.bars_ranks for note in notes_in(text))
