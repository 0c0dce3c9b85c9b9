"""`run.py compare`: results of several runs side by side, and gates for an exit code."""

from __future__ import annotations

import argparse
import gc
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from harness.model.errors import HarnessError, InputError
from harness.model.paths import PROGRAM
from harness.model.spelling import hint_for
from harness.report import terminal
from harness.report.comparison_tables import letter
from harness.results.across_devices import Figure, figures_named
from harness.results.comparison import Compared, Gate, Tripped, tripped
from harness.results.joined_runs import JOINS, is_forcible, join
from harness.results.result_files import ResultFile, find_runs, is_readable

EXIT_REFUSED, EXIT_GATE = 2, 3


def run(options: argparse.Namespace) -> int:
    """Print the comparison. Returns 0, 3 when a gate is tripped, 2 when methods were kept apart. Raises InputError."""
    gc.disable()  # hundreds of files make objects that all live until the end: looking for dead ones is wasted
    gates = [Gate.parse(text) for text in options.fail_on]
    show = figures_named(options.show) if options.show is not None else ()
    compared = compare(options.paths, by=options.by, force=options.force, show=show)
    form = "json" if options.json else options.format
    _print(drawn(compared, form, terminal.width_of(sys.stdout), terminal.color_wanted(sys.stdout), show))
    stopped = _stopped(compared, gates)
    gate_lines = list(map(_gate_line, stopped))
    for line in gate_lines:
        print(line, file=sys.stderr)
    _leave(options, compared, stopped, gate_lines, show)
    if stopped:
        return EXIT_GATE
    refusals = compared.refusals()
    if refusals:
        were = "was" if len(refusals) == 1 else "were"
        how = "; --force makes them all the same" if any(is_forcible(mixed) for *_, mixed in refusals) else ""
        print(f"{len(refusals)} of the comparisons would have mixed different methods and {were} left out{how}",
              file=sys.stderr)
        return EXIT_REFUSED
    return 0


def _print(text: str) -> None:
    """To stdout; a reader that goes away (`| head`) takes neither the gates nor a build server's files with it."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _stopped(compared: Compared, gates: list[Gate]) -> list[Tripped]:
    """What the gates stop; a comparison that was refused is told of by itself, before any gate's complaint."""
    try:
        return tripped(compared, gates)
    except InputError:
        if compared.refusals():
            return []
        raise


def _gate_line(stopped: Tripped) -> str:
    against = f" against {letter(stopped.reference)}" if stopped.reference is not None else ""
    where = f"{stopped.case.title}: {stopped.name} in {letter(stopped.run)}{against}"
    return f"--fail-on {stopped.gate}: {where}: {stopped.reason}"


def _leave(
    options: argparse.Namespace, compared: Compared, stopped: list[Tripped], gate_lines: list[str],
    show: Sequence[Figure],
) -> None:
    """Write what a build server picks up: JUnit where it was asked for, Markdown where the step has a summary."""
    if options.junit is not None:
        from harness.report.comparison_files import as_junit

        _write(options.junit, as_junit(compared, stopped, gated=bool(options.fail_on)) + "\n", "w", "--junit")
    summary = os.environ.get("GITHUB_STEP_SUMMARY")
    if summary:
        bullets = ["", *(f"- **{line}**" for line in gate_lines)] if gate_lines else []
        text = "\n".join([drawn(compared, "markdown", None, show=show), *bullets]) + "\n\n"
        _write(Path(summary), text, "a", "GITHUB_STEP_SUMMARY")


def _write(path: Path, text: str, how: str, whose: str) -> None:
    try:
        with path.open(how, encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise HarnessError(f"{whose}: cannot write {path} ({error.strerror or error})") from None


# Sets runs side by side: the CSVs of several devices, or of one device last week and today.


def compare(
    paths: Iterable[Path | str], *, by: str = "source", force: bool = False, show: Sequence[Figure] = ()
) -> Compared:
    """The runs of the files, folders and globs compared; a folder stands for its newest run of each problem and device.

    `by` "name" joins candidates by name, edited or not; `force` compares runs of different methods all the same. Raises
    InputError when a path cannot be used, when there is only one run, or when figures to `show` beside each other have
    no two devices.
    """
    paths = [Path(path) for path in paths]
    if not paths:
        raise InputError("name two CSVs or a folder of results", hint=f"As in `{PROGRAM} compare results/tril_matmul/`")
    if by not in JOINS:
        raise InputError(f"--by {by}: candidates are joined by source or by name", hint=hint_for(by, JOINS))
    runs, notes = find_runs(paths)
    if len(runs) < 2:
        raise _only_one(runs[0], paths[0], notes)
    compared = Compared.of(join(runs, by), notes, force=force)
    if show and not compared.across:
        hint = "Name the results of two devices, or leave --show out"
        raise InputError("--show sets devices beside each other, and no problem here was run on two", hint=hint)
    return compared


def drawn(compared: Compared, form: str, width: int | None, color: bool = False, show: Sequence[Figure] = ()) -> str:
    """The comparison as `form`: table, markdown, csv or json; only the table knows of a width and of colours."""
    if form == "table":
        from harness.report.comparison_terminal import render

        return render(compared, width=width, color=color, show=show)
    from harness.report import comparison_files

    return getattr(comparison_files, f"as_{form}")(compared, show)


def _only_one(run: ResultFile, named: Path, notes: list[str]) -> InputError:
    beside = [each for each in sorted(run.path.parent.glob("*.csv")) if each.name != run.path.name]
    others = [each for each in beside if is_readable(each)]
    hint = f"`{PROGRAM} compare {others[-1]} {run.path}` compares two runs on one device" if others else \
        "Name a second CSV, or a folder with the results of several devices"
    more = f"; and {len(notes) - 1} more" if len(notes) > 1 else ""
    passed_over = f"; {notes[0]}{more}" if notes else ""
    message = f"there is one run here ({run.device_name}, {run.utc}), so nothing to compare{passed_over}"
    return InputError(message, named, hint=hint)
