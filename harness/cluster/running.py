"""Runs on a cluster: one problem on all of its devices, or a suite with a problem on each."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from harness.cluster.link import Link, Seat
from harness.cluster.places import RayPlaces
from harness.fleet.running import Fleet
from harness.pipeline import RunRequest, RunResult
from harness.report.progress import Progress


def run(request: RunRequest, link: Link, progress: Progress, seats: Sequence[Seat] | None = None) -> list[RunResult]:
    """Judge everything that `request` names on the devices of the cluster, or on those `seats` of it alone; a result for each
    model among them. Raises HarnessError for what is the user's or the cluster's fault.
    """
    with ExitStack() as stack, RayPlaces(link, seats, wait_s=request.wait_s) as places:
        return Fleet(request, places, progress, stack).run()
