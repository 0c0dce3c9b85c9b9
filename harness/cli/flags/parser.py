"""A parser whose mistakes are errors of ours, and the exit codes that `--help` closes with."""

from __future__ import annotations

import argparse

from harness.model.errors import InputError

CANDIDATES = "in the place of candidates/: those of a problem lie in DIR/<problem>, or in DIR itself"
EXIT_CODES = """exit codes:
  0  the run finished        1  --strict and a candidate is not ok, or the harness failed
  2  bad input               3  selftest, compare --fail-on: something is not as it should be
  4  nothing could run       130  interrupted"""


class Parser(argparse.ArgumentParser):
    """Mistakes in flags are InputErrors."""

    def error(self, message: str) -> None:
        raise InputError(message, hint=f"Type {self.prog} --help for the flags")

    def flags_of(self, verb: str) -> list[str]:
        """The long flags that `verb` has."""
        (verbs,) = (each for each in self._actions if isinstance(each, argparse._SubParsersAction))
        return [flag for flag in verbs.choices[verb]._option_string_actions if flag.startswith("--")]


def add_verb(verbs: argparse._SubParsersAction, name: str, what: str) -> argparse.ArgumentParser:
    """A verb whose `--help` closes with the exit codes."""
    return verbs.add_parser(name, help=what, epilog=EXIT_CODES, formatter_class=argparse.RawDescriptionHelpFormatter)
