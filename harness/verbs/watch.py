"""`run.py PROBLEM --watch`: judge the candidates, and each again when it is saved, or what it imports.

The device, the references and the control stay; what has not changed is neither built nor judged again.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.candidate import Candidate, find_candidates
from harness.device.choose import check_device_name, require_torch
from harness.errors import HarnessError, InputError, NothingToRun
from harness.problem import Problem, at_sizes, in_mode, load_problem
from harness.reading.text_files import shown
from harness.saved_files import SavedFiles
from harness.settings import check_one_size, load_settings

_LOOK_S = 0.25


def run(options: argparse.Namespace) -> int:
    """Watch one problem's folder of candidates. Returns 0 when it is interrupted."""
    check_device_name(options.device)
    for flag in ("resume", "sanitize", "arch", "strict", "devices", "energy", "extra_times"):
        if getattr(options, flag):
            said = f"--{flag.replace('_', '-')} goes with a run that ends, not with --watch"
            raise InputError(said, hint="Leave one of the two out")
    if len(options.problem) != 1 or options.problem[0].is_dir():
        raise InputError("--watch looks at one problem", hint="Name one problem file")
    load_settings(options.config)
    check_one_size(options, "--watch")
    problem = at_sizes(in_mode(load_problem(options.problem[0], options.candidates), options.mode), options.sizes)
    folder = problem.candidates_dir

    def find() -> list[Path]:
        try:
            return [candidate.path for candidate in find_candidates(folder, options.only, options.skip)]
        except (NothingToRun, InputError):
            return []  # a folder that is empty for now, or a glob that nothing matches yet

    if not folder.is_dir():
        find_candidates(folder)  # says what is wrong with it
    require_torch()
    from harness.evaluation import Referee
    from harness.report.progress import open_progress

    with open_progress(silent=options.json) as progress, Referee(
        options.device, out_dir=options.out, progress=progress
    ) as referee:
        saved = SavedFiles(folder, find)
        board = _Board(problem, options.json)
        try:
            _forever(
                saved, lambda candidate: referee.evaluate(problem, candidate.path, config=options.config).record,
                board, tell=lambda text: None if options.json else progress.note(text), folder=folder,
            )
        except KeyboardInterrupt:
            return 0
    return 0


def _forever(
    saved: SavedFiles, judge: Callable[[Candidate], Any], board: _Board, tell: Callable[[str], None], folder: Path
) -> None:
    waiting = False
    while True:
        changed = saved.changed()
        for candidate in changed:
            try:
                board.add(judge(candidate))
            except HarnessError as error:
                tell(str(error))
        if changed:
            board.show(saved.candidates)
        if changed or not waiting:
            tell(f"watching {shown(folder)}: save a candidate there to judge it; Ctrl-C ends this")
            waiting = True
        time.sleep(_LOOK_S)


class _Board:
    """The newest record of each candidate, as a leaderboard or as lines of JSON."""

    def __init__(self, problem: Problem, as_json: bool) -> None:
        self._problem, self._as_json = problem, as_json
        self._records: dict[str, Any] = {}
        self._fresh: list[Any] = []

    def add(self, record: Any) -> None:
        self._records[record.candidate] = record
        self._fresh.append(record)

    def show(self, present: set[str]) -> None:
        """Print the records of those that are `present`, or as JSON those that are new."""
        from harness.leaderboard import rank, render
        from harness.report import terminal

        fresh, self._fresh = self._fresh, []
        if self._as_json:
            for record in fresh:
                print(json.dumps(record.to_json()), flush=True)
            return
        records = [record for name, record in self._records.items() if name in present]
        if records:
            ranked = rank(records, self._problem.kinds, self._problem.accuracy.precision_class)
            text = render(ranked, width=terminal.width_of(sys.stdout), color=terminal.color_wanted(sys.stdout))
            print(text.rpartition("\nNext:")[0] or text, flush=True)
