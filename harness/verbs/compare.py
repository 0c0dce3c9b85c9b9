"""`run.py compare`: results of several runs side by side, and gates for an exit code."""

from __future__ import annotations

import argparse
import gc
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from harness.compare import compare, drawn
from harness.errors import HarnessError, InputError
from harness.records.comparison import is_forcible
from harness.records.compared import Compared, Gate, Tripped, tripped
from harness.records.figures import Figure, figures_named
from harness.report import terminal
from harness.report.comparison_text import letter

EXIT_REFUSED, EXIT_GATE = 2, 3


def run(options: argparse.Namespace) -> int:
    """Print the comparison. Returns 0, 3 when a gate is tripped, 2 when different methods were kept apart.

    Raises InputError for what cannot be compared.
    """
    gc.disable()  # hundreds of files make objects that all live until the end: looking for dead ones is wasted
    gates = [Gate.parse(text) for text in options.fail_on]
    show = figures_named(options.show) if options.show is not None else ()
    compared = compare(options.paths, by=options.by, force=options.force, show=show)
    form = "json" if options.json else options.format
    _print(drawn(compared, form, terminal.width_of(sys.stdout), terminal.color_wanted(sys.stdout), show))
    stopped = _stopped(compared, gates)
    gate_lines = _gate_lines(stopped)
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


def _gate_lines(stopped: list[Tripped]) -> list[str]:
    lines = []
    for each in stopped:
        against = f" against {letter(each.reference)}" if each.reference is not None else ""
        where = f"{each.case.title}: {each.name} in {letter(each.run)}{against}"
        lines.append(f"--fail-on {each.gate}: {where}: {each.reason}")
    return lines


def _leave(
    options: argparse.Namespace, compared: Compared, stopped: list[Tripped], gate_lines: list[str],
    show: Sequence[Figure],
) -> None:
    """Write what a build server picks up: JUnit where it was asked for, Markdown where the step has a summary."""
    if options.junit is not None:
        from harness.report.junit import as_junit

        _write(options.junit, as_junit(compared, stopped, gated=bool(options.fail_on)) + "\n", "w", "--junit")
    summary = os.environ.get("GITHUB_STEP_SUMMARY")
    if summary:
        told = ["", *(f"- **{line}**" for line in gate_lines)] if gate_lines else []
        text = "\n".join([drawn(compared, "markdown", None, show=show), *told]) + "\n\n"
        _write(Path(summary), text, "a", "GITHUB_STEP_SUMMARY")


def _write(path: Path, text: str, how: str, whose: str) -> None:
    try:
        with path.open(how, encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise HarnessError(f"{whose}: cannot write {path} ({error.strerror or error})") from None
