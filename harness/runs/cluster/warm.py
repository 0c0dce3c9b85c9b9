"""A judge that stays, on a node: it judges the jobs of `Referees` one after the other, each with all that it needs.

Device, references and control stay warm for the last problems, as in `runs.referee.Referee`, which this is. A fault of
whoever asks, or of this machine, is the answer to its job.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from multiprocessing.connection import Connection
from typing import Any

from harness.model.candidate import rivals_of
from harness.model.errors import HarnessError
from harness.runs.fleet.device_judge import DeliveredBuilds, PipedProgress
from harness.runs.fleet.judge_process import errors_sent
from harness.sandbox.prestart import prestart, uncollected


def main(descriptor: int) -> None:
    """Judge until the parent has nothing more, or is gone."""
    pipe = Connection(descriptor)
    with errors_sent(pipe):
        device = pipe.recv()["device"]
        prestart()
        with uncollected():
            from harness.runs.referee import Referee  # and PyTorch with it

        with Referee(device, progress=PipedProgress(pipe)) as judge:
            pipe.send(("device", asdict(judge.identity)))
            while (message := pipe.recv()) is not None:
                pipe.send(_answer(judge, pipe, message[1]))


def _answer(judge: Any, pipe: Connection, job: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the answer to `job`: its number, record and samples, or no record and the exit code and text of an error; and why the
    device can judge nothing more, if that is so.
    """
    builds: DeliveredBuilds | None = None
    if job["builds"] is not None:
        builds = DeliveredBuilds(pipe)
        builds.take(job["builds"], job["quiet"])
    try:
        candidates = rivals_of(job["problem"].baseline, [job["candidate"]])
        [evaluation] = judge.judge(
            job["problem"], candidates, job["settings"], check_only=job["check_only"], budget_s=job["budget_s"], builds=builds
        )
    except HarnessError as error:
        return "answer", job["number"], None, (error.exit_code, str(error)), judge.lost
    except Exception as error:  # a fault of ours costs one answer, not the device
        words = f"the harness failed: {type(error).__name__}: {' '.join(str(error).split())[:500]}"
        return "answer", job["number"], None, (1, words), judge.lost
    return "answer", job["number"], evaluation.record.to_json(), dict(evaluation.samples), judge.lost
