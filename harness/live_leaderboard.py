"""The leaderboard of a watch: a line of it as soon as its candidate is judged, and the whole of it when all are.

It keeps the newest record of each candidate; which of them are still there is the caller's to say.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from harness.leaderboard import rank, render, render_row
from harness.problem import Problem
from harness.records.schema import Record
from harness.report import terminal

_NEXT = "\nNext:"  # what to type next: here it is known


class LiveLeaderboard:
    """Prints to stdout; `as_json` prints each record as a line of JSON, when it is there, and nothing else."""

    def __init__(self, problem: Problem, as_json: bool) -> None:
        self._problem, self._as_json = problem, as_json
        self._records: dict[str, Record] = {}
        self._titles, self._is_whole = "", True

    def add(self, record: Record, present: set[str], *, is_last: bool) -> None:
        """Keep the record and show its line; where it `is_last`, the table of all candidates that are `present`."""
        self._records[record.candidate] = record
        self._is_whole = False
        if self._as_json:
            print(json.dumps(record.to_json()), flush=True)
        elif is_last:
            self.complete(present)
        else:
            ranked = self._ranked(present | {record.candidate})
            titles, line = render_row(ranked, record.candidate, **_fitting_stdout())
            print(line if titles == self._titles else f"\n{titles}\n{line}", flush=True)
            self._titles = titles

    def complete(self, present: set[str]) -> None:
        """Show the table of the candidates that are `present`, unless it was what was shown last."""
        ranked = self._ranked(present)
        if ranked and not self._is_whole and not self._as_json:
            text = render(ranked, **_fitting_stdout())
            print(f"\n{text.rpartition(_NEXT)[0] or text}", flush=True)
        self._titles, self._is_whole = "", True

    def _ranked(self, present: set[str]) -> list[Record]:
        records = [record for name, record in self._records.items() if name in present]
        return rank(records, self._problem.kinds, self._problem.accuracy.precision_class)


def _fitting_stdout() -> dict[str, Any]:
    return {"width": terminal.width_of(sys.stdout), "color": terminal.color_wanted(sys.stdout)}
