"""What the shell asks while a command line is being typed: answered by argcomplete, where it is installed.

`flags` calls this for every command line; without the shell's question in the environment it does nothing.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
from collections.abc import Collection, MutableMapping

# What starts the command line; not a folder of that name on the way to it.
_PROGRAM = re.compile(r"(?:^|[\s/])(?:run\.py|kernel-referee|-m harness)(?=\s|$)")


def answer_the_shell(parser: argparse.ArgumentParser, verbs: Collection[str]) -> None:
    """Print completions and end the process when a shell asked for them; else return at once."""
    if "_ARGCOMPLETE" not in os.environ:
        return
    try:
        import argcomplete
    except ImportError:
        os._exit(1)
    put_run_before_a_problem(os.environ, verbs)
    argcomplete.autocomplete(parser)


def put_run_before_a_problem(environment: MutableMapping[str, str], verbs: Collection[str]) -> None:
    """Insert the verb that is left out before a problem file, so that the flags of `run` can be completed."""
    line, point = environment.get("COMP_LINE", ""), int(environment.get("COMP_POINT", "0"))
    before = line[:point]
    program = _PROGRAM.search(before)
    if program is None:
        return
    after = program.end()
    try:
        words = shlex.split(before[after:])
    except ValueError:
        return  # in the middle of a quoted word
    typed = [word for word in words if not word.startswith("-")]
    being_typed = len(words) == 1 and not before.endswith(" ")
    if not typed or typed[0] in verbs or being_typed:
        return
    environment["COMP_LINE"] = f"{line[:after]} run{line[after:]}"
    environment["COMP_POINT"] = str(point + len(" run"))
