"""`run.py serve`: jobs in as JSON lines, records out as JSON lines, one for one, with everything warm between them.

Stdout carries answers and nothing else: what any library or reference prints goes to stderr.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from harness.device.choice import check_device_name, check_ray, require_torch
from harness.model.errors import HarnessError, InputError
from harness.model.spelling import hint_for
from harness.model.verdict import traceback_of
from harness.sandbox.prestart import prestart

if TYPE_CHECKING:
    from harness.report.progress import Progress
    from harness.runs.cluster.referees import Referees
    from harness.runs.referee import Referee

_KEYS = ("id", "problem", "source", "path", "name", "config", "mode", "baseline", "check_only", "budget_s")
# What is no text: what it is in words, and whether a value is that.
_OTHERS = {
    "check_only": ("true or false", lambda value: isinstance(value, bool)),
    "budget_s": ("a number of seconds",
                 lambda value: isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0),
}
_MOST_TOGETHER = 256  # jobs under way on a cluster

Evaluate = Callable[..., Any]


def run(options: argparse.Namespace) -> int:
    """Answer jobs until the input ends. Returns 0."""
    check_device_name(options.device)
    check_ray(options)
    require_torch()
    if not options.ray:
        prestart()
    with _answers_alone_on_stdout() as answers:
        from harness.report.progress import open_progress

        with (open_progress(silent=not options.verbose) as progress,
              open_judges(options, progress, options.out) as judges):
            sys.stdin.reconfigure(encoding="utf-8", errors="replace")
            # On a cluster each is answered as soon as its answer is there, in no order.
            answer_all = serve_together if options.ray else serve
            answer_all(sys.stdin, answers, judges.evaluate, options.config)
    return 0


def open_judges(options: argparse.Namespace, progress: Progress, out_dir: Path | None) -> Referee | Referees:
    """What judges one candidate after the other: a device of this machine, or with --ray those of a cluster."""
    if options.ray:
        from harness.runs.cluster.referees import Referees

        return Referees(options.ray, device=options.device, model=options.accelerator, progress=progress,
                        wait_s=options.wait, out_dir=out_dir)
    from harness.runs.referee import Referee

    return Referee(options.device, out_dir=out_dir, progress=progress, wait_s=options.wait)


def serve_together(jobs: Iterable[str], answers: TextIO, evaluate: Evaluate, config: str) -> None:
    """Answer the lines of `jobs` side by side, each as soon as its answer is there; blank lines are passed over."""
    printing, room = threading.Lock(), threading.BoundedSemaphore(_MOST_TOGETHER)

    def work(line: str) -> None:
        try:
            text = json.dumps(answer(line, evaluate, config))
            with printing:
                print(text, file=answers, flush=True)
        finally:
            room.release()

    threads, is_whole = ThreadPoolExecutor(_MOST_TOGETHER, thread_name_prefix="job"), False
    try:
        for line in filter(str.strip, jobs):
            room.acquire()  # what cannot begin is not read
            threads.submit(work, line)
        is_whole = True
    finally:
        threads.shutdown(wait=is_whole, cancel_futures=True)  # after Ctrl-C nobody waits for answers


def serve(jobs: Iterable[str], answers: TextIO, evaluate: Evaluate, config: str) -> None:
    """Answer each line of `jobs` in turn; blank lines are passed over."""
    for line in jobs:
        if line.strip():
            print(json.dumps(answer(line, evaluate, config)), file=answers, flush=True)


def answer(line: str, evaluate: Evaluate, config: str) -> dict[str, Any]:
    """The answer to one job: an evaluation with the job's `id`, or an `error` with its message in words."""
    job: Any = None
    more: dict[str, str] = {}
    try:
        job = _job(line)
        source = Path(job["path"]) if "path" in job else job["source"]
        asked = {name: job.get(name) for name in ("name", "mode", "baseline")} | {"config": job.get("config", config)}
        asked |= {name: job[name] for name in ("check_only", "budget_s") if name in job}
        evaluation = evaluate(job["problem"], source, **asked)
        return {"id": job.get("id"), **evaluation.to_json()}
    except HarnessError as error:
        kind, message = "input" if isinstance(error, InputError) else "machine", str(error)
    except Exception as error:  # a fault of ours costs one answer, not the jobs that follow
        kind, message = "harness", f"the harness failed: {type(error).__name__}: {error}"
        more = {"traceback": traceback_of(error)}
    return {"id": _id_of(job, line), "error": {"kind": kind, "message": message, **more}}


def _job(line: str) -> Mapping[str, Any]:
    """The job in `line`. Raises InputError for anything that is none."""
    try:
        job = json.loads(line.strip())
    except json.JSONDecodeError as error:
        raise InputError(f"a job is one line of JSON; this is none ({error.msg} at column {error.colno})") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"a job is one line of JSON; this is none ({error})") from None
    if not isinstance(job, dict):
        raise InputError("a job is a JSON object", hint='As in {"problem": "tril_matmul", "source": "…"}')
    for key, value in job.items():
        if key not in _KEYS:
            raise InputError(f"a job has no key '{key}'", hint=hint_for(key, _KEYS, "The keys are"))
        if key == "id":
            continue
        wanted, holds = _OTHERS.get(key, ("text", lambda text: isinstance(text, str)))
        if not holds(value):
            raise InputError(f"'{key}' of a job is {wanted}, not {json.dumps(value)[:60]}")
        if isinstance(value, str) and any("\ud800" <= character <= "\udfff" for character in value):
            raise InputError(f"'{key}' of a job has half of a surrogate pair in it, which no file can hold",
                             hint="Write the character itself, or both halves")
    if "problem" not in job:
        raise InputError("a job names its problem", hint='Add "problem": "tril_matmul", or the path of a file')
    if ("source" in job) == ("path" in job):
        raise InputError("a job has either the candidate's source or the path of its file, as 'source' or 'path'")
    return job


def _id_of(job: Any, line: str) -> Any:
    """The job's own `id`, as far as the line can be read."""
    if job is None:
        with suppress(ValueError, RecursionError):
            job = json.loads(line)
    return job.get("id") if isinstance(job, dict) else None


@contextmanager
def _answers_alone_on_stdout() -> Iterator[TextIO]:
    """Until the end, file descriptor 1 is stderr, for us and for every child; the real stdout is what it gives."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        with os.fdopen(os.dup(kept), "w", encoding="utf-8") as answers:
            yield answers
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)
