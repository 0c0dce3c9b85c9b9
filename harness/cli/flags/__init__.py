"""The words and flags of the command line, what is said of a mistake in them, and what completes them in a shell.

Nothing heavy is imported here: `--help` and a mistake answer at once. Each of `VERBS` has a module in `cli/verbs`.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
from collections.abc import Collection, MutableMapping, Sequence
from pathlib import Path

from harness import __version__
from harness.cli.flags import verb_flags
from harness.cli.flags.verb_flags import EXIT_CODES, Parser
from harness.model.errors import InputError
from harness.model.paths import PROGRAM

_EXAMPLES = (
    ("problems/tril_matmul.yaml", "build, check, time and rank every candidate"),
    ("problems/tril_matmul.yaml --only 'tiled*'", "only some of them"),
    ("watch problems/tril_matmul.yaml", "and again when one is saved, or what it imports"),
    ("15_anything.py --candidates some/dir", "a KernelBench problem, unmodified"),
    ("list", "problems, candidates, settings"),
    ("doctor", "what this machine has, and what is missing"),
    ("compare results/tril_matmul/", "results of several GPUs side by side"),
    ("report results/", "all of them as one HTML file with charts"),
    ("show tiled_shared", "everything known about one candidate"),
    ("reproduce my_kernel", "the launch that failed once more, its tensors to a file"),
    ("profile tril_matmul/tiled_shared", "what the hardware counters say of one call"),
    ("new tril_matmul my_kernel", "a candidate to begin with"),
    ("selftest --adversarial", "cheats, faults and honest controls, and who sees through"),
)

# In the order of --help. The flags of each are added by the function `add_…` of `verb_flags`.
VERBS = (
    "run", "watch", "tune", "suite", "list", "doctor", "compare", "scores", "report", "show", "reproduce", "profile",
    "new", "new-problem", "serve", "cache", "selftest",
)
# What starts the command line; not a folder of that name on the way to it.
_PROGRAM = re.compile(r"(?:^|[\s/])(?:run\.py|kernel-referee|-m harness)(?=\s|$)")


def understood(arguments: Sequence[str]) -> argparse.Namespace:
    """What `arguments` ask for; `verb` is among it. Raises InputError for what no verb or flag is."""
    parser = _parser()
    _answer_the_shell(parser, VERBS)
    options, unknown = parser.parse_known_args(_with_verb(list(arguments)))
    if unknown:
        raise _no_such_flag(options.verb, unknown, parser)
    return options


def _with_verb(arguments: list[str]) -> list[str]:
    """Put `run` before a problem's file or name; say what was meant when the word is neither that nor a verb."""
    first = next((word for word in arguments if not word.startswith("-")), None)
    if first is None or first in VERBS:
        return arguments
    if not Path(first).suffix and not Path(first).exists() and not set(first) & set("*?["):
        from harness.model.problem import problems_by_name
        from harness.model.spelling import hint_for, nearest

        problems = problems_by_name()
        if first in problems:
            return ["run", *arguments]
        meant = None if nearest(first, VERBS) else nearest(first, problems)
        hint = f"Did you mean {meant}?" if meant else hint_for(first, VERBS, "The verbs are")
        raise InputError(f"'{first}' is neither a verb nor a problem file", hint=hint)
    return ["run", *arguments]


def _no_such_flag(verb: str, unknown: Sequence[str], parser: Parser) -> InputError:
    """What was typed that `verb` does not know, with the nearest flag that it does."""
    from harness.model.spelling import nearest

    help_of = f"Type {PROGRAM} {verb} --help for the flags"
    flag = next((word.partition("=")[0] for word in unknown if word.startswith("-")), None)
    if flag is None:
        return InputError(f"'{unknown[0]}' is one word too many for {verb}", hint=help_of)
    meant = nearest(flag.lstrip("-"), [known.lstrip("-") for known in parser.flags_of(verb)])
    return InputError(f"{verb} has no flag {flag}", hint=f"Did you mean --{meant}?" if meant else help_of)


def _parser() -> Parser:
    width = max(len(words) for words, _ in _EXAMPLES)
    examples = "\n".join(["examples:", *(f"  {PROGRAM} {words:<{width}}   {what}" for words, what in _EXAMPLES)])
    parser = Parser(prog=PROGRAM, description="A referee for GPU kernels: builds, checks, times and ranks candidates.",
                    epilog=f"{examples}\n\n{EXIT_CODES}", formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--version", action="version", version=f"kernel-referee {__version__}")
    verbs = parser.add_subparsers(dest="verb", metavar="PROBLEM | VERB", parser_class=Parser, required=True)
    for verb in VERBS:
        getattr(verb_flags, f"add_{verb.replace('-', '_')}")(verbs)
    return parser


# What the shell asks while a command line is being typed: answered by argcomplete, where it is installed.


def _answer_the_shell(parser: argparse.ArgumentParser, verbs: Collection[str]) -> None:
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
