"""What a candidate costs the driver of a cluster: thousands over 64 simulated GPUs, whose judges only wait.

`python benchmarks/cluster.py` starts 8 Ray nodes with 8 pretended GPUs each on this machine (about 8 GB of memory), and
sends 100, 1,000 and 10,000 candidates through `Referees.map`. Builds and judges are stand-ins; all that goes on between
the caller and them is real. It prints, for each count: processor time of the driver's process a candidate, its resident
memory after a tenth and at the end, and how long devices had nothing to do at the end.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import random
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

NODES, GPUS_EACH = 8, 8
STORE_BYTES = 128 << 20
BUILT_BYTES = 100_000
SOURCE = """import torch


class ModelNew(torch.nn.Module):
    def forward(self, A, B):
        return torch.tril(torch.matmul(A, B))  # {number}
"""


class PretendedReferee:
    """Stands where `runs.cluster.actor.RefereeActor` does: it answers each job after some tenths of a second."""

    def __init__(self, program: str, device: str) -> None:
        from harness.results.assembly import harness_hash

        self._said, self._hash = queue.SimpleQueue(), harness_hash()
        self._seconds = random.Random(os.getpid())

    def open(self) -> str:
        """As the actor's."""
        return json.dumps({"version": "", "hash": self._hash, "pid": os.getpid()})

    def hear(self, timeout_s: float, text: str | None = None, *builds: object) -> list[str]:
        """As the actor's."""
        if text is not None:
            self.send(text, *builds)
        try:
            return [self._said.get(timeout=timeout_s)]
        except queue.Empty:
            return []

    def send(self, text: str, *builds: object) -> None:
        """As the actor's."""
        from harness.device.identity import DeviceIdentity

        body = json.loads(text)
        if body["kind"] == "word":
            identity = DeviceIdentity("cuda", "Pretended GPU", f"GPU-{os.getpid()}", sm="9.0")
            self._said.put(json.dumps(["device", asdict(identity)]))
            return
        candidate = body["candidate"]
        record = {
            "run_id": "1", "utc": "2026-01-01T00:00:00+00:00", "problem": body["problem"]["name"], "sizes": "",
            "dtype": "float32", "candidate": candidate["name"], "source_hash": candidate["source_hash"], "status": "ok",
            "time_us": 100.0, "speedup": 1.5, "speedup_lo": 1.49, "speedup_hi": 1.51, "rank": 1,
        }
        samples = {"players": [{"candidate_us": [100.0] * 400, "log_ratios": [0.4] * 80}]}
        answer = json.dumps(["answer", body["number"], record, samples, None])
        threading.Timer(self._seconds.uniform(*SECONDS), self._said.put, [answer]).start()

    def interrupt(self) -> None:
        """As the actor's."""

    def end(self) -> None:
        """As the actor's."""


SECONDS = (0.4, 1.2)


def pretended_build(common: str, request: str, wanted: object) -> tuple[str, list]:
    """Stands where `runs.cluster.builds.built` does, and returns as many bytes as an extension has."""
    return "built", ["{}", {"0-kernel.so": os.urandom(BUILT_BYTES)}]


def jobs(count: int) -> Iterator:
    """So many jobs, no two alike."""
    from harness.cluster import Job

    return (Job("tril_matmul", SOURCE.format(number=number), name=f"c{number}") for number in range(count))


def resident_mb() -> float:
    """The resident memory of this process, in 10⁶ bytes."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def measured(judges, count: int) -> dict[str, float]:
    """What `count` candidates took."""
    began_s, began_cpu_s, ends_s, memory_mb = time.monotonic(), time.process_time(), [], []
    for _ in judges.map(jobs(count)):
        ends_s.append(time.monotonic())
        if len(ends_s) in (max(1, count // 10), count):
            memory_mb.append(resident_mb())
    devices = NODES * GPUS_EACH
    # The last answers, one of each device: a device whose last answer was early had nothing more to do until the end.
    idle_s = sum(ends_s[-1] - each for each in ends_s[-devices:]) / devices
    return {
        "candidates": count, "wall_s": ends_s[-1] - began_s,
        "driver_ms": 1e3 * (time.process_time() - began_cpu_s) / count, "tenth_mb": memory_mb[0], "end_mb": memory_mb[-1],
        "idle_s": idle_s,
    }


def main() -> None:
    """Print a line for each count of candidates."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("counts", nargs="*", type=int, default=[100, 1000, 10_000])
    counts = parser.parse_args().counts
    import ray
    from ray.cluster_utils import Cluster

    from harness.cluster import Referees
    from harness.runs.cluster.link import Link

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    for _ in range(NODES):
        cluster.add_node(num_cpus=1, num_gpus=GPUS_EACH, object_store_memory=STORE_BYTES)
    ray.init(address=cluster.address, log_to_driver=False, logging_level="error")
    began_s = time.monotonic()
    with Referees(link=Link("cuda", actor=PretendedReferee, build=pretended_build)) as judges:
        while judges.devices < NODES * GPUS_EACH:
            time.sleep(0.1)
        print(f"{judges.devices} devices after {time.monotonic() - began_s:.0f} s", flush=True)
        for count in counts:
            found = measured(judges, count)
            print(
                "{candidates:6d} candidates: {wall_s:.1f} s, driver {driver_ms:.2f} ms each, memory {tenth_mb:.0f} MB after a "
                "tenth and {end_mb:.0f} MB at the end, {idle_s:.2f} s idle a device at the end".format(**found), flush=True,
            )
    ray.shutdown()
    cluster.shutdown()


if __name__ == "__main__":
    main()
