"""The flags of the verbs that put kernels on a device: run, profile, serve, selftest."""

from __future__ import annotations

import argparse
import math
from pathlib import Path

from harness.cli.flags.parser import CANDIDATES, add_verb
from harness.model.places import own


def add_run(verbs: argparse._SubParsersAction) -> None:
    run = _runs(verbs, "run", "build, check, time and rank the candidates of a problem")
    _add_resume(run)
    run.add_argument("--watch", action="store_true", help="as the verb watch")
    run.add_argument("--tune", metavar="CANDIDATE", help="as the verb tune")
    _add_trials(run)


def add_watch(verbs: argparse._SubParsersAction) -> None:
    watch = _runs(verbs, "watch", "run, and judge a candidate again each time it is saved, or what it imports", one=True)
    watch.set_defaults(watch=True, tune=None, resume=False)


def add_tune(verbs: argparse._SubParsersAction) -> None:
    tune = _runs(verbs, "tune", "search a candidate's PARAMETERS, and write the best into a YAML beside it", one=True)
    tune.add_argument("tune", metavar="CANDIDATE", help="the candidate, by its name")
    _add_trials(tune)
    tune.set_defaults(watch=False, resume=False)


def add_suite(verbs: argparse._SubParsersAction) -> None:
    suite = _runs(verbs, "suite", "run many problems one after the other, with one summary")
    _add_resume(suite)
    suite.set_defaults(watch=False, tune=None)


def _add_resume(run: argparse.ArgumentParser) -> None:
    run.add_argument("--resume", action="store_true", help="keep rows of earlier runs for which nothing has changed")


def _add_trials(run: argparse.ArgumentParser) -> None:
    run.add_argument("--trials", type=int, default=32, metavar="N", help="how many choices tuning tries (default: 32)")


def _runs(verbs: argparse._SubParsersAction, verb: str, what: str, *, one: bool = False) -> argparse.ArgumentParser:
    """A verb that judges the candidates of `one` problem or of several, with all flags that such verbs share."""
    run = add_verb(verbs, verb, what)
    several = "" if one else "; several, a folder or a 'GLOB' are run as a suite"
    run.add_argument(
        "problem", nargs=1 if one else "+", type=Path, metavar="PROBLEM",
        help=f"a problem's name, its YAML, or a KernelBench .py file{several}",
    )
    run.add_argument("--only", action="append", default=[], metavar="GLOB", help="only candidates whose name matches")
    run.add_argument("--skip", action="append", default=[], metavar="GLOB", help="leave out candidates that match")
    run.add_argument(
        "--device", default="auto", metavar="auto|cuda:0|cpu", help="where to run (default: a GPU if there is one)"
    )
    add_devices(run)
    run.add_argument(
        "--config", default="default", metavar="quick|default|rigorous", help="how long to measure, or a YAML file"
    )
    run.add_argument(
        "--mode", choices=("forward", "forward_backward"), metavar="forward|forward_backward",
        help="time gradients too, or not, whatever the problem says",
    )
    run.add_argument(
        "--sizes", action="append", default=[], metavar="M=4096[,K=…]",
        help="time at these sizes instead; several times: at each, and the geometric mean of the speedups",
    )
    run.add_argument("--candidates", type=Path, metavar="DIR", help=CANDIDATES)
    run.add_argument(
        "--baselines", metavar="eager[,torch.compile,…]",
        help="what else is timed (default: what the problem names; in a suite of KernelBench files eager alone)",
    )
    run.add_argument(
        "--baseline", type=Path, metavar="FILE",
        help="a candidate file that all speedups are over, in eager's place (default: the problem's `baseline`, or eager)",
    )
    run.add_argument(
        "--out", type=Path, default=own("results"), metavar="DIR", help="where results go (default: results)"
    )
    run.add_argument(
        "--arch", metavar="80,90a,…", help="without a GPU: compile CUDA candidates for these, and run the others"
    )
    run.add_argument("--json", action="store_true", help="print the records as JSON instead of the leaderboard")
    run.add_argument("--strict", action="store_true", help="exit 1 when a candidate is not ok")
    add_wait(run)
    run.add_argument("--sanitize", action="store_true", help="run kernels under compute-sanitizer too")
    run.add_argument("--energy", action="store_true", help="measure the energy of a call too, in seconds of calls")
    run.add_argument(
        "--extra-times", action="store_true",
        help="time calls with a warm cache, back to back, and as a CUDA graph too; no rank hangs on these",
    )
    return run


def add_profile(verbs: argparse._SubParsersAction) -> None:
    what = "what Nsight Compute (ncu) counts in one call: throughputs, pipes, occupancy, stalls"
    profile = add_verb(verbs, "profile", what)
    profile.add_argument("candidate", metavar="CANDIDATE", help="a name, PROBLEM/NAME, or a file")
    profile.add_argument("--problem", type=Path, metavar="PROBLEM", help="its problem (default: by its folder's name)")
    profile.add_argument("--candidates", type=Path, metavar="DIR", help=f"{CANDIDATES}; with --problem")
    profile.add_argument("--device", default="auto", metavar="auto|cuda:0", help="where to run (default: a GPU)")
    profile.add_argument("--mode", choices=("forward", "forward_backward"), metavar="forward|forward_backward",
                         help="count gradients too, or not, whatever the problem says")
    profile.add_argument("--config", default="default", metavar="NAME", help="settings; their time limits count")
    add_wait(profile)
    profile.add_argument("--json", action="store_true", help="print JSON, with every counter")


def add_serve(verbs: argparse._SubParsersAction) -> None:
    serve = verbs.add_parser(
        "serve", help="answer jobs: one line of JSON in, one record out, warm between them",
        description='A job is {"problem": NAME or FILE, "source": TEXT or "path": FILE}, with "name", "config", "mode" '
        'and "id" as you like; AGENTS.md has the keys of the answer.',
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
    selftest.add_argument(
        "--adversarial", action="store_true", help="judge the corpus in tests/adversarial and print the catch matrix"
    )
    selftest.add_argument(
        "--device", default="auto", metavar="auto|cuda:0|cpu", help="where to run (default: a GPU if there is one)"
    )
    add_devices(selftest)
    selftest.add_argument(
        "--only", action="append", default=[], metavar="GLOB", help="only cases whose name, or group/name, matches"
    )
    selftest.add_argument("--skip", action="append", default=[], metavar="GLOB", help="leave out cases that match")
    selftest.add_argument("--out", type=Path, metavar="DIR", help="where records go (default: a new temporary folder)")
    selftest.add_argument("--write", type=Path, metavar="FILE", help="put the matrix between the markers of this page")
    selftest.add_argument(
        "--repeat", type=int, default=1, metavar="N", help="time eager against itself so many times (default: 1)"
    )
    selftest.add_argument(
        "--config", default="quick", metavar="NAME", help="how long eager and the waits are timed (default: quick)"
    )
    add_wait(selftest)
    selftest.add_argument("--json", action="store_true", help="print JSON")


def add_wait(verb: argparse.ArgumentParser) -> None:
    """--wait, for whoever times on a device."""
    verb.add_argument(
        "--wait", type=_seconds, metavar="SECONDS",
        help="give up, with exit code 4, where another run has the device for longer (default: an hour)",
    )


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
    """--devices, for `choose.check_device_names` to read."""
    verb.add_argument(
        "--devices", metavar="all|cuda:0,cuda:2", help="several GPUs of this machine at once, each with its own judge"
    )
    add_ray(verb)


def add_ray(verb: argparse.ArgumentParser) -> None:
    """--ray and what goes with it, for `runs.cluster.link.connected`."""
    verb.add_argument("--ray", metavar="auto|ADDRESS", help="the GPUs of a Ray cluster; with --device cpu a CPU of each node")
    verb.add_argument("--accelerator", metavar="TYPE", help="with --ray: only GPUs of this model, by Ray's name for it (H100)")
