"""The command line: words and flags in, one call into `verbs`, an exit code out.

Nothing heavy is imported before the flags are understood, so that `--help`, `list` and a mistake answer at once.
"""

from __future__ import annotations

import argparse
import atexit
import importlib
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from harness.cli.flags import understood
from harness.model.errors import HarnessError, NothingToRun


def as_process() -> None:
    """Carry out the command line of this process, and end it at once: taking PyTorch apart would take half a second."""
    status = 1  # what ends with a traceback ends with this

    def end_at_once() -> None:
        for stream in (sys.stdout, sys.stderr):
            with suppress(AttributeError, OSError, ValueError):  # closed, or never there
                stream.flush()
        os._exit(status)

    atexit.register(end_at_once)  # before all others are, and so called after them
    try:
        status = main(sys.argv[1:])
    except SystemExit as ending:  # argparse's: --help, and flags that it does not know
        status = ending.code if isinstance(ending.code, int) else int(ending.code is not None)


def main(arguments: Sequence[str]) -> int:
    """Carry out the command line `arguments` and return the exit code."""
    try:
        with _ended_in_order():
            return _carry_out(understood(arguments))
    except HarnessError as error:
        print(str(error), file=sys.stderr)
        return error.exit_code
    except ModuleNotFoundError as error:  # what this software itself lacks is its own fault
        if error.name is None or error.name.partition(".")[0] == "harness":
            raise
        from harness.device.choice import not_installed

        print(not_installed(error.name), file=sys.stderr)
        return NothingToRun.exit_code
    except BrokenPipeError:
        return 0
    except KeyboardInterrupt:
        print(_where_it_stopped(), file=sys.stderr)
        return 130


def _where_it_stopped() -> str:
    """What is said of an interrupted command, with the file of results where there are any."""
    writer = sys.modules.get("harness.results.writer")  # not imported for a verb that writes none
    files = None if writer is None else writer.RunFiles.latest
    if files is None or not files.records:
        return "interrupted"
    return f"interrupted; what was measured so far is in {files.csv_path}"


@contextmanager
def _ended_in_order() -> Iterator[None]:
    """Meanwhile SIGTERM is as Ctrl-C: `kill` and `timeout` leave no worker, no compiler and no folder behind either."""
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _carry_out(options: argparse.Namespace) -> int:
    """The exit code of the verb; only its own module is imported."""
    return importlib.import_module(f"harness.cli.verbs.{_module_of(options)}").run(options)


def _module_of(options: argparse.Namespace) -> str:
    """The module of `harness.cli.verbs` for these flags: the verb's own, but that flags of `run` may mean another's."""
    if options.verb != "run":
        return options.verb.replace("-", "_")
    if options.tune:
        return "tune"
    if options.watch:
        return "watch"
    from harness.runs.suite.problems import is_suite

    return "suite" if options.resume or is_suite(options.problem) else "run"
