"""How many launches a device has room for at once, each with inputs, outputs and what they are compared with."""

from __future__ import annotations

from harness.clocks.stopwatch import MARKS
from harness.device.bench import Bench
from harness.referee.reference import Reference
from harness.wire.layout import region_bytes

# A player's stopwatch keeps this many marks until a queue has run; a call with gradients takes three.
_MOST_LAUNCHES = MARKS // 3
_SHARE_OF_MEMORY = 0.25
_USUAL_BYTES = 8 << 30  # where a device does not say what it has


def most_launches(bench: Bench, reference: Reference, least: int = 1) -> int:
    """Of one queue at the sizes of `reference`, but `least` where there is no room for as many, and never more than a
    stopwatch has marks for.
    """
    each = 4 * region_bytes(reference.specs) + 2 * region_bytes(reference.output_specs)
    room = int(_SHARE_OF_MEMORY * (bench.identity.memory_bytes or _USUAL_BYTES) / each)
    return max(least, min(room, _MOST_LAUNCHES))
