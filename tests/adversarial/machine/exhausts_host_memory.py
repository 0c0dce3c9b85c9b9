"""Takes host memory and writes to it until the system ends the process.

Mechanism: where a cgroup holds the player, the kernel kills it at the limit and nothing else. Without one it would
  be the machine's memory, and this file, which is run on people's own machines, stops at half a gigabyte.
Expected: out_of_memory/host_memory or timed_out/launch_timeout
Fools: nothing
Device: any
"""

from pathlib import Path

import torch
import torch.nn as nn

STEP_BYTES = 256 << 20


def room_bytes() -> int:
    """How much to take: all that the process's own group may have, if the machine has more than that."""
    try:
        group = next(line[3:] for line in Path("/proc/self/cgroup").read_text().splitlines() if line[:3] == "0::")
        limit = int(Path(f"/sys/fs/cgroup/{group}/memory.max").read_text())
        free = next(line for line in Path("/proc/meminfo").read_text().splitlines() if "MemAvailable" in line)
        return limit if limit < 0.9 * 1024 * int(free.split()[1]) else 2 * STEP_BYTES
    except (OSError, StopIteration, ValueError):  # no group, or one without a limit
        return 2 * STEP_BYTES


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        kept, most = [], room_bytes()
        while len(kept) * STEP_BYTES < most:
            kept.append(torch.ones(STEP_BYTES, dtype=torch.uint8))
        raise MemoryError("no more is taken here")
