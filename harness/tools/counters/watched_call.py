"""`python -m harness.tools.counters.watched_call FOLDER`: load a candidate as a worker does, call it twice, the second
time between the profiler's start and stop.

This is what ncu watches. The first call is for what is compiled or tuned when it first runs.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch

from harness.tools import launch_files
from harness.tools.sanitizer.watched_call import constructed, on_device
from harness.worker import model


def main(folder: Path) -> int:
    """Make the launch in `folder` and leave its outcome there. Returns the exit status."""
    launch = launch_files.read(folder)
    try:
        _make(launch)
        outcome: dict[str, Any] = {"launched": True}
    except Exception as error:
        outcome = {"raised": model.describe(error)}
    (folder / launch_files.OUTCOME).write_text(json.dumps(outcome), encoding="utf-8")
    return 0 if "launched" in outcome else 1


def _make(launch: launch_files.SmallLaunch) -> None:
    device = torch.device(launch.device)
    candidate = constructed(launch, device)
    inputs = on_device(device, launch.inputs)
    with torch.no_grad():
        candidate(*inputs)
        torch.cuda.synchronize()
        torch.cuda.profiler.start()
        candidate(*inputs)
        torch.cuda.synchronize()
        torch.cuda.profiler.stop()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
