"""The files of what `Referees` judge, where records are kept: for each problem, settings, model of device, PyTorch and CUDA
a CSV and the samples beside it. They are of the machine that asks.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.model.problem import Problem
from harness.results.ranking import rank_of
from harness.results.record import Record
from harness.results.writer import RunFiles, check_writable, device_slug, utc_now

_MOST_HELD = 128  # of thousands of problems; a process may have 1,024 files open


class AnswerFiles:
    """Files below `out_dir`, each begun with its first record; none without `out_dir`. Raises InputError where nothing can be
    written there.
    """

    def __init__(self, out_dir: Path | None) -> None:
        if out_dir is not None:
            check_writable(out_dir)
        self._out_dir = out_dir
        self._held: deque[RunFiles] = deque()
        self._files: dict[tuple[Hashable, Hashable], tuple[RunFiles, Problem]] = {}

    def append(self, key: Hashable, problem: Problem, record: Record, samples: Mapping[str, Any]) -> str | None:
        """Write down a record of `problem`, which with its settings is known by `key`. Returns None, or one sentence when the
        disk refused; raises InputError where no file could be made.
        """
        if self._out_dir is None:
            return None
        model = key, record.team
        if model not in self._files:
            slug = device_slug(record.device_name or "unknown", record.device_kind or "cuda")
            made = RunFiles.create(self._out_dir, problem.name, slug, utc_now())
            self._files[model] = made, problem
            self._held.append(made)
            if len(self._held) > _MOST_HELD:
                self._held.popleft().let_go()
        return self._files[model][0].append(replace(record, rank=None), samples)  # it was ranked alone

    def csv_of(self, key: Hashable) -> Path | None:
        """Return where the records of a problem are, of the first model that judged one; None if they are nowhere."""
        return next((files.csv_path for (own, _), (files, _) in list(self._files.items()) if own == key), None)

    def finish(self) -> None:
        """Put the ranks in."""
        for files, problem in self._files.values():
            files.finish(rank_of(files.records, problem))
