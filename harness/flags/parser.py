"""A parser whose mistakes are errors of ours, and the exit codes that `--help` closes with."""

from __future__ import annotations

import argparse

from harness.errors import InputError

EXIT_CODES = """exit codes:
  0  the run finished        1  --strict and a candidate is not ok, or the harness failed
  2  bad input               3  selftest, compare --fail-on: something is not as it should be
  4  nothing could run       130  interrupted"""


class Parser(argparse.ArgumentParser):
    """Mistakes in flags are InputErrors, with the nearest right flag."""

    def error(self, message: str) -> None:
        raise InputError(message, hint=f"Type {self.prog} --help for the flags")
