"""The words and flags of the command line: what each verb takes, and what is said of a mistake in them.

Nothing heavy is imported here: `--help` and a mistake answer at once.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from harness import __version__
from harness.completion import answer_the_shell
from harness.errors import InputError

EXIT_CODES = """exit codes:
  0  the run finished        1  --strict and a candidate is not ok, or the harness failed
  2  bad input               3  selftest, compare --fail-on: something is not as it should be
  4  nothing could run       130  interrupted"""

_EXAMPLES = """examples:
  python run.py problems/tril_matmul.yaml                     build, check, time and rank every candidate
  python run.py problems/tril_matmul.yaml --only 'tiled*'     only some of them
  python run.py problems/tril_matmul.yaml --watch             and again each time a candidate's file is saved
  python run.py 15_anything.py --candidates some/dir          a KernelBench problem, unmodified
  python run.py list                                          problems, candidates, settings
  python run.py doctor                                        what this machine has, and what is missing
  python run.py compare results/tril_matmul/                  results of several GPUs side by side
  python run.py report results/                               all of them as one HTML file with charts
  python run.py show tiled_shared                             everything known about one candidate
  python run.py reproduce tiled_shared                        the launch that failed once more, its tensors to a file
  python run.py profile tiled_shared                          what the hardware counters say of one call
  python run.py new tril_matmul my_kernel                     a candidate to begin with
  python run.py selftest --adversarial                        cheats, faults and honest controls, and who sees through"""

VERBS = ("run", "list", "doctor", "compare", "scores", "report", "show", "reproduce", "profile", "new", "new-problem", "serve",
         "cache", "selftest")


def understood(arguments: Sequence[str]) -> argparse.Namespace:
    """What `arguments` ask for; `verb` is among it. Raises InputError for what no verb or flag is."""
    parser = _parser()
    answer_the_shell(parser, VERBS)
    return parser.parse_args(_with_verb(list(arguments)))


def _with_verb(arguments: list[str]) -> list[str]:
    """Put `run` before a problem file; say what was meant when the word is neither verb nor file."""
    first = next((word for word in arguments if not word.startswith("-")), None)
    if first is None or first in VERBS:
        return arguments
    if not Path(first).suffix and not Path(first).exists() and not set(first) & set("*?["):
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
    _add_compare(verbs)
    scores = verbs.add_parser("scores", help="KernelBench's fast_p, mean speedup and correctness over results")
    scores.add_argument(
        "paths", nargs="+", type=Path, metavar="CSV|DIR|GLOB",
        help="a DIR stands for the newest run of each problem on each device in it",
    )
    scores.add_argument("--json", action="store_true", help="print JSON")
    _add_report(verbs)
    _add_show(verbs)
    _add_reproduce(verbs)
    _add_profile(verbs)
    _add_new(verbs)
    _add_serve(verbs)
    _add_cache(verbs)
    _add_selftest(verbs)
    return parser


def _add_run(verbs: argparse._SubParsersAction) -> None:
    run = verbs.add_parser(
        "run", help="build, check, time and rank the candidates of a problem",
        epilog=EXIT_CODES, formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    run.add_argument(
        "problem", nargs="+", type=Path, metavar="PROBLEM",
        help="problems/NAME.yaml, or a KernelBench .py file; several, a folder or a 'GLOB' are run as a suite",
    )
    run.add_argument("--only", action="append", default=[], metavar="GLOB", help="only candidates whose name matches")
    run.add_argument("--skip", action="append", default=[], metavar="GLOB", help="leave out candidates that match")
    run.add_argument("--device", default="auto", metavar="auto|cuda:0|cpu", help="where to run (default: a GPU if there is one)")
    _add_devices(run)
    run.add_argument("--config", default="default", metavar="quick|default|rigorous", help="how long to measure, or a YAML file")
    run.add_argument(
        "--mode", choices=("forward", "forward_backward"), metavar="forward|forward_backward",
        help="time gradients too, or not, whatever the problem says",
    )
    run.add_argument(
        "--sizes", action="append", default=[], metavar="M=4096[,K=…]",
        help="time at these sizes instead; several times: at each, and the geometric mean of the speedups",
    )
    run.add_argument("--candidates", type=Path, metavar="DIR", help="folder of candidates (default: candidates/<problem>)")
    run.add_argument("--out", type=Path, default=Path("results"), metavar="DIR", help="where results go (default: results)")
    run.add_argument("--arch", metavar="80,90a,…", help="without a GPU: compile CUDA candidates for these, and run the others")
    run.add_argument("--json", action="store_true", help="print the records as JSON instead of the leaderboard")
    run.add_argument("--strict", action="store_true", help="exit 1 when a candidate is not ok")
    run.add_argument("--watch", action="store_true", help="stay, and judge a candidate each time its file is saved")
    run.add_argument(
        "--tune", metavar="CANDIDATE", help="search its PARAMETERS, and write the best into a YAML beside it"
    )
    run.add_argument("--trials", type=int, default=32, metavar="N", help="how many choices --tune tries (default: 32)")
    run.add_argument("--resume", action="store_true", help="keep rows of earlier runs for which nothing has changed")
    run.add_argument("--sanitize", action="store_true", help="run kernels under compute-sanitizer too")
    run.add_argument("--energy", action="store_true", help="measure the energy of a call too, in seconds of calls")
    run.add_argument(
        "--extra-times", action="store_true",
        help="time calls with a warm cache, back to back, and as a CUDA graph too; no rank hangs on these",
    )


def _add_devices(verb: argparse.ArgumentParser) -> None:
    verb.add_argument(
        "--devices", metavar="all|cuda:0,cuda:2", help="several GPUs of this machine at once, each with its own referee"
    )


def _add_compare(verbs: argparse._SubParsersAction) -> None:
    compare = verbs.add_parser(
        "compare", help="put results of several runs side by side",
        epilog=EXIT_CODES, formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    compare.add_argument(
        "paths", nargs="+", type=Path, metavar="CSV|DIR|GLOB",
        help="a DIR stands for the newest run of each device in it",
    )
    compare.add_argument(
        "--fail-on", action="append", default=[], metavar="slower[:1%]|incorrect",
        help="exit 3 when a candidate is slower, by its whole interval, or newly wrong",
    )
    compare.add_argument(
        "--by", default="source", metavar="source|name", help="what makes two candidates one (default: the same source)"
    )
    compare.add_argument("--force", action="store_true", help="compare what was measured by different methods too")
    compare.add_argument(
        "--format", default="table", choices=("table", "markdown", "csv", "json"), help="what to print"
    )
    compare.add_argument("--json", action="store_true", help="the same as --format json")
    compare.add_argument("--junit", type=Path, metavar="FILE", help="write JUnit XML too")


def _add_report(verbs: argparse._SubParsersAction) -> None:
    report = verbs.add_parser("report", help="write one HTML file of all results, with charts, that opens offline")
    report.add_argument(
        "paths", nargs="*", type=Path, default=[Path("results")], metavar="CSV|DIR", help="results (default: results)"
    )
    report.add_argument("--out", type=Path, metavar="FILE", help="where it goes (default: DIR/report.html)")
    report.add_argument(
        "--candidates", action="append", type=Path, default=[], metavar="DIR",
        help="also look for sources here (default: candidates/)",
    )
    report.add_argument("--open", action="store_true", help="open it in the browser")
    report.add_argument("--json", action="store_true", help="print JSON")


def _add_show(verbs: argparse._SubParsersAction) -> None:
    show = verbs.add_parser("show", help="everything known about one candidate; where in its output the errors sit")
    _add_record(show)
    show.add_argument("--json", action="store_true", help="print JSON")


def _add_reproduce(verbs: argparse._SubParsersAction) -> None:
    reproduce = verbs.add_parser(
        "reproduce", help="make the launch that failed again; its inputs, got and expected to a file"
    )
    _add_record(reproduce)
    reproduce.add_argument("--out", type=Path, metavar="FILE", help="what to write (default: NAME.reproduced.pt)")
    reproduce.add_argument("--file", type=Path, metavar="FILE", help="the candidate's file, where it has moved")
    reproduce.add_argument("--problem", type=Path, metavar="PROBLEM", help="the problem's file, where it has moved")
    reproduce.add_argument("--device", metavar="auto|cuda:0|cpu", help="where to run (default: as the record's run)")
    reproduce.add_argument("--config", default="default", metavar="NAME", help="settings; their time limits count")
    reproduce.add_argument("--json", action="store_true", help="print JSON")


def _add_profile(verbs: argparse._SubParsersAction) -> None:
    profile = verbs.add_parser(
        "profile", help="what Nsight Compute (ncu) counts in one call: throughputs, pipes, occupancy, stalls",
        epilog=EXIT_CODES, formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    profile.add_argument("candidate", metavar="CANDIDATE", help="a name, PROBLEM/NAME, or a file")
    profile.add_argument("--problem", type=Path, metavar="PROBLEM", help="its problem (default: by its folder's name)")
    profile.add_argument("--candidates", type=Path, metavar="DIR", help="folder of candidates, with --problem")
    profile.add_argument("--device", default="auto", metavar="auto|cuda:0", help="where to run (default: a GPU)")
    profile.add_argument("--mode", choices=("forward", "forward_backward"), metavar="forward|forward_backward",
                         help="count gradients too, or not, whatever the problem says")
    profile.add_argument("--config", default="default", metavar="NAME", help="settings; their time limits count")
    profile.add_argument("--json", action="store_true", help="print JSON, with every counter")


def _add_serve(verbs: argparse._SubParsersAction) -> None:
    serve = verbs.add_parser(
        "serve", help="answer jobs: one line of JSON in, one record out, warm between them",
        description='A job is {"problem": NAME or FILE, "source": TEXT or "path": FILE}, with "name", "config", "mode" '
        'and "id" as you like; AGENTS.md has the keys of the answer.',
    )
    serve.add_argument("--device", default="auto", metavar="auto|cuda:0|cpu", help="where to run (default: auto)")
    serve.add_argument("--config", default="default", metavar="NAME", help="settings of jobs that name none")
    serve.add_argument("--out", type=Path, metavar="DIR", help="keep records on disk too, as a run does")
    serve.add_argument("--verbose", action="store_true", help="tell on stderr what is being done")


def _add_record(verb: argparse.ArgumentParser) -> None:
    """The words by which a verb finds one record."""
    verb.add_argument(
        "candidate", nargs="+", metavar="CANDIDATE",
        help="a name, PROBLEM/NAME, a file, or a CSV (or DIR) and a name; the newest record counts",
    )
    verb.add_argument(
        "--results", type=Path, default=Path("results"), metavar="DIR", help="where to look (default: results)"
    )


def _add_new(verbs: argparse._SubParsersAction) -> None:
    new = verbs.add_parser("new", help="write a candidate that runs as it stands, to be changed from there")
    new.add_argument("problem", type=Path, metavar="PROBLEM", help="a problem's name or file")
    new.add_argument("name", metavar="NAME", help="what the candidate is to be called; nothing is overwritten")
    new.add_argument(
        "--from", dest="rung", metavar="CANDIDATE", help="begin as a copy of this one (default: of the reference)"
    )
    new.add_argument("--candidates", type=Path, metavar="DIR", help="where to put it (default: candidates/<problem>)")
    new.add_argument("--json", action="store_true", help="print JSON")
    problem = verbs.add_parser("new-problem", help="write a problem that runs as it stands, to be changed from there")
    problem.add_argument("name", metavar="NAME", help="what the problem is to be called; nothing is overwritten")
    problem.add_argument(
        "--problems", type=Path, default=Path("problems"), metavar="DIR", help="where to put it (default: problems)"
    )
    problem.add_argument("--json", action="store_true", help="print JSON")


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
    _add_devices(selftest)
    selftest.add_argument(
        "--only", action="append", default=[], metavar="GLOB", help="only cases whose name, or group/name, matches"
    )
    selftest.add_argument("--skip", action="append", default=[], metavar="GLOB", help="leave out cases that match")
    selftest.add_argument("--out", type=Path, metavar="DIR", help="where records go (default: a new temporary folder)")
    selftest.add_argument("--write", type=Path, metavar="FILE", help="put the matrix between the markers of this page")
    selftest.add_argument(
        "--repeat", type=int, default=1, metavar="N", help="time eager against itself so many times (default: 1)"
    )
    selftest.add_argument("--json", action="store_true", help="print JSON")
