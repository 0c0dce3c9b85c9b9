"""The flags of each verb, and the parser whose mistakes are errors of ours."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from pathlib import Path

from harness.model.errors import InputError
from harness.model.paths import own

CANDIDATES = "in the place of candidates/: those of a problem lie in DIR/<problem>, or in DIR itself"
EXIT_CODES = """exit codes:
  0  the run finished        1  --strict and a candidate is not ok, or the harness failed
  2  bad input               3  selftest, compare --fail-on: something is not as it should be
  4  nothing could run       130  interrupted"""

# Flags of two verbs.
_RESUME = {"action": "store_true", "help": "keep rows of earlier runs for which nothing has changed"}
_TRIALS = {"type": int, "default": 32, "metavar": "N", "help": "how many choices tuning tries (default: 32)"}
_MODE = {"choices": ("forward", "forward_backward"), "metavar": "forward|forward_backward"}
_ONE_DEVICE = {"default": "auto", "metavar": "auto|cuda:0|cpu", "help": "where to run (default: a GPU if there is one)"}

# What run has and these verbs refuse, in words that say why.
NOT_OF_WATCH = ("resume", "sanitize", "arch", "strict", "devices", "ray", "accelerator", "energy", "extra-times")
NOT_OF_TUNE = ("resume", "sanitize", "arch", "strict", "devices", "watch", "only", "skip", "baseline", "energy", "extra-times")


class Parser(argparse.ArgumentParser):
    """Mistakes in flags are InputErrors."""

    def error(self, message: str) -> None:
        raise InputError(message, hint=f"Type {self.prog} --help for the flags")

    def flags_of(self, verb: str) -> list[str]:
        """The long flags that `verb` has."""
        (verbs,) = (each for each in self._actions if isinstance(each, argparse._SubParsersAction))
        return [flag for flag in verbs.choices[verb]._option_string_actions if flag.startswith("--")]


def add_verb(verbs: argparse._SubParsersAction, name: str, what: str) -> argparse.ArgumentParser:
    """A verb whose `--help` begins with what it does and closes with the exit codes."""
    return verbs.add_parser(name, help=what, description=what, epilog=EXIT_CODES,
                            formatter_class=argparse.RawDescriptionHelpFormatter)


def add_run(verbs: argparse._SubParsersAction) -> None:
    run = _runs(verbs, "run", "build, check, time and rank the candidates of a problem")
    run.add_argument("--resume", **_RESUME)
    run.add_argument("--watch", action="store_true", help="as the verb watch")
    run.add_argument("--tune", metavar="CANDIDATE", help="as the verb tune")
    run.add_argument("--trials", **_TRIALS)


def add_watch(verbs: argparse._SubParsersAction) -> None:
    watch = _runs(verbs, "watch", "run, and judge a candidate again each time it is saved, or what it imports", one=True)
    _hide(watch, NOT_OF_WATCH)
    watch.set_defaults(watch=True, tune=None, resume=False)


def add_tune(verbs: argparse._SubParsersAction) -> None:
    tune = _runs(verbs, "tune", "search a candidate's PARAMETERS, and write the best into a YAML beside it", one=True)
    tune.add_argument("tune", metavar="CANDIDATE", help="the candidate, by its name")
    tune.add_argument("--trials", **_TRIALS)
    _hide(tune, NOT_OF_TUNE)
    tune.set_defaults(watch=False, resume=False)


def add_suite(verbs: argparse._SubParsersAction) -> None:
    suite = _runs(verbs, "suite", "run many problems one after the other, with one summary")
    suite.add_argument("--resume", **_RESUME)
    suite.set_defaults(watch=False, tune=None)


def _hide(verb: argparse.ArgumentParser, refused: Sequence[str]) -> None:
    """Leave the flags that are `refused` out of the verb's `--help`."""
    for action in verb._actions:
        if any(f"--{each}" in action.option_strings for each in refused):
            action.help = argparse.SUPPRESS


def _runs(verbs: argparse._SubParsersAction, verb: str, what: str, *, one: bool = False) -> argparse.ArgumentParser:
    """A verb that judges the candidates of `one` problem or of several, with all flags that such verbs share."""
    run = add_verb(verbs, verb, what)
    several = "" if one else "; several, a folder or a 'GLOB' are run as a suite"
    run.add_argument("problem", nargs=1 if one else "+", type=Path, metavar="PROBLEM",
                     help=f"a problem's name, its YAML, or a KernelBench .py file{several}")
    run.add_argument("--only", action="append", default=[], metavar="GLOB", help="only candidates whose name matches")
    run.add_argument("--skip", action="append", default=[], metavar="GLOB", help="leave out candidates that match")
    run.add_argument("--device", **_ONE_DEVICE)
    add_devices(run)
    run.add_argument("--config", default="default", metavar="quick|default|rigorous",
                     help="how long to measure, or a YAML file")
    run.add_argument("--mode", **_MODE, help="time gradients too, or not, whatever the problem says")
    run.add_argument("--sizes", action="append", default=[], metavar="M=4096[,K=…]",
                     help="time at these sizes instead; several times: at each, and the geometric mean of the speedups")
    run.add_argument("--candidates", type=Path, metavar="DIR", help=CANDIDATES)
    run.add_argument(
        "--baselines", metavar="eager[,torch.compile,…]",
        help="what else is timed (default: what the problem names; in a suite of KernelBench files eager alone)",
    )
    run.add_argument(
        "--baseline", type=Path, metavar="FILE",
        help="a candidate file that all speedups are over, in eager's place (default: the problem's `baseline`, or eager)",
    )
    run.add_argument("--out", type=Path, default=own("results"), metavar="DIR",
                     help="where results go (default: results)")
    run.add_argument("--arch", metavar="80,90a,…",
                     help="without a GPU: compile CUDA candidates for these, and run the others")
    run.add_argument("--json", action="store_true", help="print the records as JSON instead of the leaderboard")
    run.add_argument("--strict", action="store_true", help="exit 1 when a candidate is not ok")
    add_wait(run)
    run.add_argument("--sanitize", action="store_true", help="run kernels under compute-sanitizer too")
    run.add_argument("--energy", action="store_true", help="measure the energy of a call too, in seconds of calls")
    run.add_argument("--extra-times", action="store_true",
                     help="time calls with a warm cache, back to back, and as a CUDA graph too; no rank hangs on these")
    return run


def add_profile(verbs: argparse._SubParsersAction) -> None:
    what = "what Nsight Compute (ncu) counts in one call: throughputs, pipes, occupancy, stalls"
    profile = add_verb(verbs, "profile", what)
    profile.add_argument("candidate", metavar="CANDIDATE", help="a name, PROBLEM/NAME, or a file")
    profile.add_argument("--problem", type=Path, metavar="PROBLEM", help="its problem (default: by its folder's name)")
    profile.add_argument("--candidates", type=Path, metavar="DIR", help=f"{CANDIDATES}; with --problem")
    profile.add_argument("--device", default="auto", metavar="auto|cuda:0", help="where to run (default: a GPU)")
    profile.add_argument("--mode", **_MODE, help="count gradients too, or not, whatever the problem says")
    profile.add_argument("--config", default="default", metavar="NAME", help="settings; their time limits count")
    add_wait(profile)
    profile.add_argument("--json", action="store_true", help="print JSON, with every counter")


def add_serve(verbs: argparse._SubParsersAction) -> None:
    serve = verbs.add_parser(
        "serve", help="answer jobs: one line of JSON in, one record out, warm between them",
        description='A job is {"problem": NAME or FILE, "source": TEXT or "path": FILE}; "name", "config", "mode", '
        '"baseline", "check_only", "budget_s" and "id" are optional. AGENTS.md explains them, and the keys of the answer.',
    )
    serve.add_argument("--device", default="auto", metavar="auto|cuda:0|cpu", help="where to run (default: auto)")
    serve.add_argument("--config", default="default", metavar="NAME", help="settings of jobs that name none")
    serve.add_argument("--out", type=Path, metavar="DIR", help="keep records on disk too, as a run does")
    add_wait(serve)
    add_ray(serve)
    serve.add_argument("--verbose", action="store_true", help="tell on stderr what is being done")


def add_selftest(verbs: argparse._SubParsersAction) -> None:
    what = "how far this device's numbers can be trusted; --adversarial: what cheats and is caught"
    selftest = add_verb(verbs, "selftest", what)
    selftest.add_argument("--adversarial", action="store_true",
                          help="judge the corpus in tests/adversarial and print the catch matrix")
    selftest.add_argument("--device", **_ONE_DEVICE)
    add_devices(selftest)
    selftest.add_argument("--no-naive", action="store_true",
                          help="do not ask the naive judge beside, which takes as long again")
    selftest.add_argument("--only", action="append", default=[], metavar="GLOB",
                          help="only cases whose name, or group/name, matches")
    selftest.add_argument("--skip", action="append", default=[], metavar="GLOB", help="leave out cases that match")
    selftest.add_argument("--out", type=Path, metavar="DIR", help="where records go (default: a new temporary folder)")
    selftest.add_argument("--write", type=Path, metavar="FILE", help="put the matrix between the markers of this page")
    selftest.add_argument("--repeat", type=int, default=1, metavar="N",
                          help="time eager against itself so many times (default: 1)")
    selftest.add_argument("--config", default="quick", metavar="NAME",
                          help="how long eager and the waits are timed (default: quick)")
    add_wait(selftest)
    selftest.add_argument("--json", action="store_true", help="print JSON")


def add_wait(verb: argparse.ArgumentParser) -> None:
    """--wait, for whoever times on a device."""
    verb.add_argument("--wait", type=_seconds, metavar="SECONDS",
                      help="give up, with exit code 4, where another run has the device for longer (default: an hour)")


def _seconds(text: str) -> float:
    """A number of seconds, 0 or more. Raises ArgumentTypeError, which argparse puts into words."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is no number of seconds")
    return seconds


def add_devices(verb: argparse.ArgumentParser) -> None:
    """--devices, for `device.choice.check_device_names` to read."""
    verb.add_argument("--devices", metavar="all|cuda:0,cuda:2",
                      help="several GPUs of this machine at once, each with its own judge")
    add_ray(verb)


def add_ray(verb: argparse.ArgumentParser) -> None:
    """--ray and what goes with it, for `runs.cluster.link.connected`."""
    verb.add_argument("--ray", metavar="auto|ADDRESS", help="the GPUs of a Ray cluster; with --device cpu a CPU of each node")
    verb.add_argument("--accelerator", metavar="TYPE", help="with --ray: only GPUs of this model, by Ray's name for it (H100)")


def add_list(verbs: argparse._SubParsersAction) -> None:
    listing = add_verb(verbs, "list", "problems, their candidates, and the settings")
    listing.add_argument("--json", action="store_true", help="print JSON")


def add_doctor(verbs: argparse._SubParsersAction) -> None:
    doctor = add_verb(verbs, "doctor", "what this machine has, what is missing and how to get it")
    doctor.add_argument("--json", action="store_true", help="print JSON")


def add_new(verbs: argparse._SubParsersAction) -> None:
    new = add_verb(verbs, "new", "write a candidate that runs as it stands, to be changed from there")
    new.add_argument("problem", type=Path, metavar="PROBLEM", help="a problem's name or file")
    new.add_argument("name", metavar="NAME", help="what the candidate is to be called; nothing is overwritten")
    new.add_argument("--from", dest="rung", metavar="CANDIDATE",
                     help="begin as a copy of this one (default: of the reference)")
    new.add_argument("--candidates", type=Path, metavar="DIR", help=CANDIDATES)
    new.add_argument("--json", action="store_true", help="print JSON")


def add_new_problem(verbs: argparse._SubParsersAction) -> None:
    problem = add_verb(verbs, "new-problem", "write a problem that is complete as it stands, to be changed from there")
    problem.add_argument("name", metavar="NAME", help="what the problem is to be called; nothing is overwritten")
    problem.add_argument("--problems", type=Path, default=own("problems"), metavar="DIR",
                         help="where to put it (default: problems)")
    problem.add_argument("--json", action="store_true", help="print JSON")


def add_cache(verbs: argparse._SubParsersAction) -> None:
    cache = add_verb(verbs, "cache", "what the cache of builds holds, and clearing it")
    cache.add_argument("--clear", action="store_true", help="remove everything that no run under way may be using")
    cache.add_argument("--older-than", metavar="AGE", help="remove what has not been used for this long: 30d, 12h, 2w")
    cache.add_argument("--json", action="store_true", help="print JSON")


def add_compare(verbs: argparse._SubParsersAction) -> None:
    compare = add_verb(verbs, "compare", "put results of several runs side by side")
    compare.add_argument("paths", nargs="*", type=Path, default=[own("results")], metavar="CSV|DIR|GLOB",
                         help="a DIR stands for the newest run of each device in it (default: results)")
    compare.add_argument("--fail-on", action="append", default=[], metavar="slower[:1%]|incorrect",
                         help="exit 3 when a candidate is slower, by its whole interval, or newly wrong")
    compare.add_argument("--by", default="source", metavar="source|name",
                         help="what makes two candidates one (default: the same source)")
    compare.add_argument(
        "--show", metavar="time,tflops,sol,energy",
        help="absolute figures of several devices, any of these, with the ratio of each pair (default: speedups)",
    )
    compare.add_argument("--force", action="store_true", help="compare what was measured by different methods too")
    compare.add_argument("--format", default="table", choices=("table", "markdown", "csv", "json"),
                         help="what to print")
    compare.add_argument("--json", action="store_true", help="the same as --format json")
    compare.add_argument("--junit", type=Path, metavar="FILE", help="write JUnit XML too")


def add_scores(verbs: argparse._SubParsersAction) -> None:
    scores = add_verb(verbs, "scores", "KernelBench's fast_p, mean speedup and correctness over results")
    scores.add_argument(
        "paths", nargs="*", type=Path, default=[own("results")], metavar="CSV|DIR|GLOB",
        help="a DIR stands for the newest row of each candidate on each device in it (default: results)",
    )
    scores.add_argument("--json", action="store_true", help="print JSON")


def add_report(verbs: argparse._SubParsersAction) -> None:
    report = add_verb(verbs, "report", "write one HTML file of all results, with charts, that opens offline")
    report.add_argument("paths", nargs="*", type=Path, default=[own("results")], metavar="CSV|DIR",
                        help="results (default: results)")
    report.add_argument("--out", type=Path, metavar="FILE", help="where it goes (default: DIR/report.html)")
    report.add_argument("--candidates", action="append", type=Path, default=[], metavar="DIR",
                        help="look for sources here before candidates/")
    report.add_argument("--open", action="store_true", help="open it in the browser")
    report.add_argument("--json", action="store_true", help="print JSON")


def add_show(verbs: argparse._SubParsersAction) -> None:
    show = add_verb(verbs, "show", "everything known about one candidate; where in its output the errors sit")
    _add_record(show)
    show.add_argument("--json", action="store_true", help="print JSON")


def add_reproduce(verbs: argparse._SubParsersAction) -> None:
    reproduce = add_verb(verbs, "reproduce", "make the launch that failed again; its inputs, got and expected to a file")
    _add_record(reproduce)
    reproduce.add_argument("--out", type=Path, metavar="FILE", help="what to write (default: NAME.reproduced.pt)")
    reproduce.add_argument("--file", type=Path, metavar="FILE", help="the candidate's file, where it has moved")
    reproduce.add_argument("--problem", type=Path, metavar="PROBLEM", help="the problem's file, where it has moved")
    reproduce.add_argument("--device", metavar="auto|cuda:0|cpu", help="where to run (default: as the record's run)")
    reproduce.add_argument("--config", default="default", metavar="NAME", help="settings; their time limits count")
    reproduce.add_argument("--json", action="store_true", help="print JSON")


def _add_record(verb: argparse.ArgumentParser) -> None:
    """The words by which a verb finds one record."""
    verb.add_argument("candidate", nargs="+", metavar="CANDIDATE",
                      help="a name, PROBLEM/NAME, a file, or a CSV (or DIR) and a name; the newest record counts")
    verb.add_argument("--results", type=Path, default=own("results"), metavar="DIR",
                      help="where to look (default: results)")
