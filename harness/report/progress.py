"""What a run tells the person who waits for it: stages while it works, one line for each finished candidate.

Everything goes to stderr, so that stdout holds the leaderboard alone. With a terminal the stages are live lines (rich),
without one plain lines with the time of day before each. Half a minute of silence is broken by what is waited for.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from datetime import datetime
from typing import TextIO

from harness.model.verdict import Status
from harness.report import terminal
from harness.results.record import Record

SILENCE_S = 30.0
OVERALL_S = 30.0  # from one plain line on all devices to the next


class Progress:
    """Plain lines, `21:04:05.6 candidate: text`; also the seam that the twins below fill. Use it in a `with`."""

    speaks = True

    def __init__(self, stream: TextIO, device: str | None = None) -> None:
        self.stream = stream
        self._device = device  # named before every line, where several processes tell of one each
        self._said: dict[str, str] = {}
        self._overall, self._overall_said, self._overall_s = "", "", time.monotonic()
        self._doing, self._since_s = "", time.monotonic()
        self._last_line_s = time.monotonic()
        self._is_over, self._breaker = threading.Event(), None

    def status(self, candidate: str, text: str) -> None:
        """Say what is being done with a candidate; the same words twice running are said once."""
        self._begin(f"{candidate}: {text}")
        if self._said.get(candidate) != text:
            self._said[candidate] = text
            self._line(name_on(self._device, f"{candidate}: {text}"), "dim")

    def done(self, record: Record, device: str | None = None) -> None:
        """Say what became of a candidate or baseline; on which `device`, where there are several."""
        self._begin("")
        self._said.pop(name_on(device, record.candidate), None)
        outcome = name_on(device or self._device, outcome_text(record))
        self._line(outcome, terminal.STATUS_STYLES.get(record.status.value, "red"))

    def clear(self, device: str) -> None:
        """Know that `device` is at nothing any more: it was lost, or what it was at has no row."""
        for name in [name for name in self._said if name.startswith(f"{device} ")]:
            del self._said[name]
        if self._doing.startswith(f"{device} "):
            self._begin("")

    def overall(self, *, judged: int, of: int, at_work: int, devices: int, builds: int) -> None:
        """Say how far several devices together are, and how many `builds` wait; of one device its own lines tell."""
        text = f"{judged} of {of} judged, {at_work} of {devices} devices at work, {builds} builds waiting"
        if devices > 1 or self._overall:
            self._overall = text
            self._show_overall()

    def _show_overall(self) -> None:
        if self._overall != self._overall_said and time.monotonic() - self._overall_s >= OVERALL_S:
            self._overall_said, self._overall_s = self._overall, time.monotonic()
            self._line(name_on(self._device, self._overall), "dim")

    def note(self, text: str) -> None:
        """Say something that belongs to no candidate."""
        self._begin(text)
        self._line(name_on(self._device, text), "bold")

    def __enter__(self) -> Progress:
        if self.speaks:
            self._is_over.clear()
            self._breaker = threading.Thread(target=self._break_silences, name="progress", daemon=True)
            self._breaker.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._is_over.set()
        if self._breaker is not None:
            self._breaker.join()

    @property
    def _moves(self) -> bool:
        """Whether something that moves on the screen shows that work goes on."""
        return False

    def _begin(self, doing: str) -> None:
        if doing != self._doing:
            self._doing, self._since_s = doing, time.monotonic()

    def _break_silences(self) -> None:
        """Say again and again what is being done, where nothing else has been said for `SILENCE_S`."""
        while not self._is_over.wait(max(0.0, self._last_line_s + SILENCE_S - time.monotonic())):
            if self._moves:
                self._last_line_s = time.monotonic()
            elif time.monotonic() - self._last_line_s >= SILENCE_S:
                doing = f": {self._doing}" if self._doing else ""
                text = f"still at it after {time.monotonic() - self._since_s:.0f} s{doing}"
                self._line(name_on(self._device, text), "dim")

    def _line(self, text: str, style: str) -> None:
        self._last_line_s = time.monotonic()
        with contextlib.suppress(OSError, ValueError):  # a closed pipe costs the line, not the run
            print(f"{datetime.now():%H:%M:%S.%f}"[:-5], text, file=self.stream, flush=True)


class NullProgress(Progress):
    """Says nothing: for `--json` and for tests."""

    speaks = False

    def __init__(self) -> None:
        super().__init__(sys.stderr)

    def _line(self, text: str, style: str) -> None:
        return None


class LiveProgress(Progress):
    """A line with a spinner and a clock for each candidate at work, and one for all devices; above them the finished ones."""

    def __init__(self, stream: TextIO) -> None:
        from rich.console import Console
        from rich.progress import Progress as Bars, SpinnerColumn, TextColumn, TimeElapsedColumn

        super().__init__(stream)
        self._console = Console(file=stream, highlight=False, markup=False, emoji=False)
        columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
        self._bars = Bars(*columns, console=self._console, transient=True)
        self._at_work: dict[str, int] = {}
        self._of_all: int | None = None

    def status(self, candidate: str, text: str) -> None:
        described = f"{candidate}: {text}"
        self._begin(described)
        if candidate in self._at_work:
            self._bars.update(self._at_work[candidate], description=described)
        else:
            self._at_work[candidate] = self._bars.add_task(described, total=None)

    def done(self, record: Record, device: str | None = None) -> None:
        name = name_on(device, record.candidate)
        if name in self._at_work:
            self._bars.remove_task(self._at_work.pop(name))
        super().done(record, device)

    def clear(self, device: str) -> None:
        for name in [name for name in self._at_work if name.startswith(f"{device} ")]:
            self._bars.remove_task(self._at_work.pop(name))
        super().clear(device)

    def _show_overall(self) -> None:
        if self._of_all is None:
            self._of_all = self._bars.add_task(self._overall, total=None)
        if self._overall != self._overall_said:
            self._overall_said = self._overall
            self._bars.update(self._of_all, description=self._overall)

    @property
    def _moves(self) -> bool:
        return bool(self._at_work)

    def __enter__(self) -> Progress:
        self._bars.start()
        return super().__enter__()

    def __exit__(self, *raised: object) -> None:
        super().__exit__(*raised)
        self._bars.stop()

    def _line(self, text: str, style: str) -> None:
        self._last_line_s = time.monotonic()
        with contextlib.suppress(OSError, ValueError):
            self._console.print(text, style=style, soft_wrap=True)


def name_on(device: str | None, text: str) -> str:
    """`text` with the device's name before it, where there is one to name."""
    return f"{device} {text}" if device else text


def open_progress(stream: TextIO | None = None, *, silent: bool = False, device: str | None = None) -> Progress:
    """The progress that fits the stream (stderr by default): live with a terminal that is not dumb, plain, or silent.

    With `device` it is plain and names it: several processes share the stream then. NO_COLOR is honoured (by rich).
    """
    stream = stream or sys.stderr
    if silent:
        return NullProgress()
    if device is None and stream.isatty() and os.environ.get("TERM") != "dumb":
        return LiveProgress(stream)
    return Progress(stream, device)


def outcome_text(record: Record) -> str:
    """One line: `tiled: ok: 2.71 ms, 1.011× [1.010, 1.012] over eager, FASTER` or `naive: incorrect: why`."""
    if record.status is not Status.OK:
        reason = (record.reason or "no reason was recorded").strip().splitlines()[0]
        return f"{record.candidate}: {record.status.value}: {terminal.one_line(reason)}"
    parts = [terminal.time_text(record.time_us)] if record.time_us else []
    ratio = terminal.speedup_text(record)
    parts += [f"{ratio} over {record.baseline}" if record.baseline else ratio] if ratio else []
    if not ratio and record.eager_speedup:  # the baseline of one's own, or a row that has none to be over
        over_eager = terminal.ratio_text(record.eager_speedup, record.eager_speedup_lo, record.eager_speedup_hi)
        parts.append(f"{over_eager} over eager")
    parts += [record.call] if ratio and record.call else []
    return f"{record.candidate}: ok" + (f": {', '.join(parts)}" if parts else "")
