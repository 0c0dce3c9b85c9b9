"""Progress that keeps what it is told."""

from __future__ import annotations

from collections.abc import Callable

from harness.report.progress import NullProgress
from harness.results.record import Record


class Listening(NullProgress):
    """Keeps what it is told, and does `when` told of a stage."""

    def __init__(self, when: Callable[[str, str], None] = lambda name, text: None) -> None:
        super().__init__()
        self.stages: list[tuple[str, str]] = []
        self.notes: list[str] = []
        self.outcomes: list[tuple[str | None, str]] = []
        self.cleared: list[str] = []
        self.totals: list[dict[str, int]] = []
        self._when = when

    def status(self, candidate: str, text: str) -> None:
        self.stages.append((candidate, text))
        self._when(candidate, text)

    def clear(self, device: str) -> None:
        self.cleared.append(device)

    def overall(self, **counts: int) -> None:
        self.totals.append(counts)

    def note(self, text: str) -> None:
        self.notes.append(text)

    def done(self, record: Record, device: str | None = None) -> None:
        self.outcomes.append((device, record.candidate))
