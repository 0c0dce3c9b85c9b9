"""The command line: words and flags in, one call into `verbs`, an exit code out.

A first word that is no verb is a problem file. Nothing heavy is imported before the flags are understood, so that
`--help`, `list` and a mistake answer at once.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from harness import __version__
from harness.errors import HarnessError, InputError

EXIT_CODES = """exit codes:
  0  the run finished        1  --strict and a candidate is not ok, or the harness failed
  2  bad input               3  selftest: something is not as it should be
  4  nothing could run       130  interrupted"""

_EXAMPLES = """examples:
  python run.py problems/tril_matmul.yaml                     build, check, time and rank every candidate
  python run.py problems/tril_matmul.yaml --only 'tiled*'     only some of them
  python run.py 15_anything.py --candidates some/dir          a KernelBench problem, unmodified
  python run.py list                                          problems, candidates, settings
  python run.py doctor                                        what this machine has, and what is missing
  python run.py compare results/tril_matmul/                  results of several GPUs side by side
  python run.py selftest --adversarial                        cheats, faults and honest controls, and who sees through"""

VERBS = ("run", "list", "doctor", "compare", "cache", "selftest")


def main(arguments: Sequence[str]) -> int:
    """Carry out the command line `arguments` and return the exit code."""
    try:
        options = _parser().parse_args(_with_verb(list(arguments)))
        return _carry_out(options)
    except HarnessError as error:
        print(str(error), file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:
        return 0
    except KeyboardInterrupt:
        print("interrupted; what was measured so far is in the results file", file=sys.stderr)
        return 130


def _with_verb(arguments: list[str]) -> list[str]:
    """Put `run` before a problem file; say what was meant when the word is neither verb nor file."""
    first = next((word for word in arguments if not word.startswith("-")), None)
    if first is None or first in VERBS:
        return arguments
    if not Path(first).suffix and not Path(first).exists():
        from harness.problem import PROBLEMS_DIR
        from harness.spelling import hint_for

        if (PROBLEMS_DIR / f"{first}.yaml").exists():
            raise InputError(f"'{first}' is no verb", hint=f"Type python run.py problems/{first}.yaml")
        raise InputError(f"'{first}' is neither a verb nor a problem file", hint=hint_for(first, VERBS, "The verbs are"))
    return ["run", *arguments]


class _Parser(argparse.ArgumentParser):
    """Mistakes in flags are InputErrors, with the nearest right flag."""

    def error(self, message: str) -> None:
        raise InputError(message, hint=f"Type {self.prog} --help for the flags")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="python run.py", description="A referee for GPU kernels: builds, checks, times and ranks candidates.",
        epilog=f"{_EXAMPLES}\n\n{EXIT_CODES}", formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"kernel-referee {__version__}")
    verbs = parser.add_subparsers(dest="verb", metavar="PROBLEM | VERB", parser_class=_Parser, required=True)
    _add_run(verbs)
    listing = verbs.add_parser("list", help="problems, their candidates, and the settings")
    listing.add_argument("--json", action="store_true", help="print JSON")
    doctor = verbs.add_parser("doctor", help="what this machine has, what is missing and how to get it")
    doctor.add_argument("--json", action="store_true", help="print JSON")
    compare = verbs.add_parser("compare", help="put results of several runs side by side")
    compare.add_argument("paths", nargs="+", type=Path, metavar="CSV|DIR", help="a DIR stands for the newest run of each device in it")
    _add_cache(verbs)
    _add_selftest(verbs)
    return parser


def _add_run(verbs: argparse._SubParsersAction) -> None:
    run = verbs.add_parser(
        "run", help="build, check, time and rank the candidates of a problem",
        epilog=EXIT_CODES, formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    run.add_argument("problem", type=Path, metavar="PROBLEM", help="problems/NAME.yaml, or a KernelBench .py file")
    run.add_argument("--only", action="append", default=[], metavar="GLOB", help="only candidates whose name matches")
    run.add_argument("--skip", action="append", default=[], metavar="GLOB", help="leave out candidates that match")
    run.add_argument("--device", default="auto", metavar="auto|cuda:0|cpu", help="where to run (default: a GPU if there is one)")
    run.add_argument("--config", default="default", metavar="quick|default|rigorous", help="how long to measure, or a YAML file")
    run.add_argument(
        "--mode", choices=("forward", "forward_backward"), metavar="forward|forward_backward",
        help="time gradients too, or not, whatever the problem says",
    )
    run.add_argument("--candidates", type=Path, metavar="DIR", help="folder of candidates (default: candidates/<problem>)")
    run.add_argument("--out", type=Path, default=Path("results"), metavar="DIR", help="where results go (default: results)")
    run.add_argument("--arch", metavar="80,90a,…", help="without a GPU: compile CUDA candidates for these, and run the others")
    run.add_argument("--json", action="store_true", help="print the records as JSON instead of the leaderboard")
    run.add_argument("--strict", action="store_true", help="exit 1 when a candidate is not ok")
    run.add_argument("--sanitize", action="store_true", help="run kernels under compute-sanitizer too")


def _add_cache(verbs: argparse._SubParsersAction) -> None:
    cache = verbs.add_parser("cache", help="what the cache of builds holds, and clearing it")
    cache.add_argument("--clear", action="store_true", help="remove everything that no run under way may be using")
    cache.add_argument("--older-than", metavar="AGE", help="remove what has not been used for this long: 30d, 12h, 2w")
    cache.add_argument("--json", action="store_true", help="print JSON")


def _add_selftest(verbs: argparse._SubParsersAction) -> None:
    selftest = verbs.add_parser(
        "selftest", help="how far this device's numbers can be trusted; --adversarial: what cheats and is caught",
        epilog=EXIT_CODES, formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    selftest.add_argument(
        "--adversarial", action="store_true", help="judge the corpus in tests/adversarial and print the catch matrix"
    )
    selftest.add_argument(
        "--device", default="auto", metavar="auto|cuda:0|cpu", help="where to run (default: a GPU if there is one)"
    )
    selftest.add_argument(
        "--only", action="append", default=[], metavar="GLOB", help="only cases whose name, or group/name, matches"
    )
    selftest.add_argument("--skip", action="append", default=[], metavar="GLOB", help="leave out cases that match")
    selftest.add_argument("--out", type=Path, metavar="DIR", help="where records go (default: a new temporary folder)")
    selftest.add_argument("--write", type=Path, metavar="FILE", help="put the matrix between the markers of this page")
    selftest.add_argument("--json", action="store_true", help="print JSON")


def _carry_out(options: argparse.Namespace) -> int:
    if options.verb == "run":
        from harness.verbs import run

        return run.run(options)
    if options.verb == "list":
        from harness.verbs import list as listing

        return listing.run(as_json=options.json)
    if options.verb == "doctor":
        from harness.verbs import doctor

        return doctor.run(as_json=options.json)
    if options.verb == "cache":
        from harness.verbs import cache

        return cache.run(options)
    if options.verb == "selftest":
        from harness.verbs import selftest

        return selftest.run(options)
    from harness.verbs import compare

    return compare.run(options.paths)
