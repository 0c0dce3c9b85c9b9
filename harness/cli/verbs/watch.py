"""`run.py watch PROBLEM`: judge the candidates, and each again when it is saved, or what it imports.

What has not changed is neither built nor judged again; what is saved meanwhile joins the queue.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cli.flags.verb_flags import NOT_OF_WATCH
from harness.device.choice import check_device_name, require_torch
from harness.model.candidate import Candidate, find_candidates, rivals_of
from harness.model.errors import HarnessError, InputError, NothingToRun
from harness.model.files.text_files import shown
from harness.model.problem import Problem, asked_problem
from harness.model.settings import check_one_size, load_settings
from harness.model.verdict import ReasonCode
from harness.report import terminal
from harness.report.leaderboard import render, render_row
from harness.results.ranking import rank_of
from harness.results.record import Record
from harness.runs.saved_files import SavedFiles
from harness.sandbox.prestart import prestart

if TYPE_CHECKING:
    from harness.runs.candidate_queue import CandidateQueue
    from harness.runs.referee import Evaluation

_POLL_S = 0.25


def run(options: argparse.Namespace) -> int:
    """Watch one problem's folder of candidates. Returns 0 when it is interrupted."""
    check_device_name(options.device)
    for flag in NOT_OF_WATCH:
        if getattr(options, flag.replace("-", "_")):
            raise InputError(f"--{flag} goes with a run that ends, not with `watch`", hint="Leave one of the two out")
    if len(options.problem) != 1 or options.problem[0].is_dir():
        raise InputError("`watch` looks at one problem", hint="Name one problem file")
    load_settings(options.config)
    check_one_size(options, "`watch`")
    problem = asked_problem(options)

    def find() -> list[Path]:
        try:
            candidates = find_candidates(problem.candidate_folders, options.only, options.skip, problem.form)
            return [candidate.path for candidate in rivals_of(problem.baseline, candidates)]
        except (NothingToRun, InputError):
            return []  # a folder that is empty for now, or a glob that nothing matches yet

    if not problem.candidate_folders[0].is_dir():
        find_candidates(problem.candidate_folders, form=problem.form)  # says what is wrong with it
    with suppress(NothingToRun):  # says which names collide
        rivals_of(problem.baseline, find_candidates(problem.candidate_folders, form=problem.form))
    require_torch()
    prestart()
    from harness.report.progress import open_progress
    from harness.runs.referee import Referee

    with open_progress(silent=options.json) as progress, Referee(
        options.device, out_dir=options.out, progress=progress, wait_s=options.wait
    ) as referee:
        watch = _Watch(SavedFiles((problem.candidates_dir, *problem.more_candidates), find, _POLL_S, form=problem.form),
                       lambda: referee.queue(problem, load_settings(options.config)),
                       LiveLeaderboard(problem, options.json),
                       tell=lambda text: None if options.json else progress.note(text))
        with suppress(KeyboardInterrupt):
            folder = shown(problem.candidates_dir)
            watch.forever(f"watching {folder}: save a candidate there to judge it; Ctrl-C ends this")
        records = referee.csv_of(problem, load_settings(options.config))
        if records is not None and not options.json:
            progress.note(f"all rows are in {shown(records)}")
    return 0


class _Watch:
    """Judges what `saved` finds in queues that `open_queue` gives, and shows each row on the `board`."""

    def __init__(
        self, saved: SavedFiles, open_queue: Callable[[], CandidateQueue[Evaluation]], board: LiveLeaderboard,
        tell: Callable[[str], None],
    ) -> None:
        self._saved, self._open_queue, self._board, self._tell = saved, open_queue, board, tell

    def forever(self, while_waiting: str) -> None:
        """Look, judge, and wait, which is told in these words."""
        is_told = False
        while True:
            changed = self._saved.changed()
            if changed:
                self.judge(changed)
            if changed or not is_told:
                self._tell(while_waiting)
                is_told = True
            time.sleep(_POLL_S)

    def judge(self, changed: Sequence[Candidate]) -> None:
        """Judge these, and what is saved meanwhile, with it in the place of what it said before."""
        try:
            with self._open_queue() as queue:
                queue.add(changed)
                while queue.left:
                    self._judge_next(queue)
                    queue.add(self._saved_meanwhile())
        except HarnessError as error:  # no queue: settings that cannot be read any more, say
            self._tell(str(error))
        self._board.complete(self._saved.candidates)

    def _judge_next(self, queue: CandidateQueue[Evaluation]) -> None:
        try:
            evaluation = queue.judge_next(within_s=_POLL_S)
        except HarnessError as error:
            self._tell(str(error))
            return
        if evaluation is not None and evaluation.record.reason_code is ReasonCode.SAVED_MEANWHILE:
            self._saved.forget(evaluation.record.candidate)  # a row of it as it is now comes next
        elif evaluation is not None:
            self._board.add(evaluation.record, self._saved.candidates, is_last=not queue.left)

    def _saved_meanwhile(self) -> list[Candidate]:
        """What was saved since the last look; a file that is seen to change is looked at a second time."""
        changed = self._saved.changed()
        if self._saved.is_moving:
            time.sleep(_POLL_S)
            changed += self._saved.changed()
        return changed


# The leaderboard of a watch: a line of it as soon as its candidate is judged, and the whole of it when all are.

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
            titles, line = render_row(ranked, record.candidate, **terminal.fitting(sys.stdout))
            print(line if titles == self._titles else f"\n{titles}\n{line}", flush=True)
            self._titles = titles

    def complete(self, present: set[str]) -> None:
        """Show the table of the candidates that are `present`, unless it was what was shown last."""
        ranked = self._ranked(present)
        if ranked and not self._is_whole and not self._as_json:
            text = render(ranked, **terminal.fitting(sys.stdout))
            print(f"\n{text.rpartition(_NEXT)[0] or text}", flush=True)
        self._titles, self._is_whole = "", True

    def _ranked(self, present: set[str]) -> list[Record]:
        return rank_of([record for name, record in self._records.items() if name in present], self._problem)
