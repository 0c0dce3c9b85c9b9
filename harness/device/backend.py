"""The seam between the judge and a device: what a backend offers, whichever device it stands on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch

from harness.attribution.loaded_code import LoadedCode
from harness.attribution.recording import Recording
from harness.device.energy import PowerMeter
from harness.device.identity import DeviceIdentity, Telemetry, Violations
from harness.model.device_limits import DeviceLimits
from harness.protocol.arena import Arena
from harness.protocol.frames import Channel
from harness.protocol.markers import Markers
from harness.reference.inputs.late_inputs import LateInputs
from harness.reference.inputs.sets import InputSet


@dataclass(frozen=True)
class LaunchReached:
    """The worker's stream has reached the launch numbered `sequence` (or the end, one past the last)."""

    sequence: int


@dataclass(frozen=True)
class CacheFlushed:
    """The worker says that the cache is cold for the launch numbered `sequence`, and waits for its window."""

    sequence: int


@dataclass(frozen=True)
class LocalTimes:
    """Times in µs of launches that the judge made itself, those of their forward passes where backward passes followed,
    and the host µs from the last call to its end. `hidden` says whether a gated queue was full before it was let go;
    None when it was not to be gated.
    """

    times_us: list[float]
    end_to_end_us: float
    hidden: bool | None = None
    forward_us: list[float] = field(default_factory=list)


class Backend(Protocol):
    """One device with the regions that a worker shares, and the judge's own arm beside it."""

    kind: str
    limits: DeviceLimits
    identity: DeviceIdentity
    torch_device: torch.device
    arena: Arena
    transport: str
    l2_policy: str
    timer: str
    markers: Markers  # of the worker that was prepared last

    def prepare_command(self) -> dict[str, Any]:
        """What a fresh worker must know of the device, as a frame."""

    def available_bytes(self) -> int:
        """Memory that judging may use: what nobody else holds, within the limit that was set."""

    def limit_memory(self, limit_bytes: int | None) -> None:
        """Have the harness and its workers get along with so much of the device's memory, as on a smaller one."""

    def open(self, count: int, input_bytes: int, output_bytes: int, *, tight: bool = False) -> dict[str, Any]:
        """Have regions for `count` launches at least; returns the frame by which the worker opens them.

        Where it is `tight` inputs are unmasked where they lie, and all launches have one outbox for the last output.
        """

    def close_regions(self) -> dict[str, Any]:
        """Give back the regions once the worker has closed them, which the frame has it do; call `free_regions` then."""

    def free_regions(self) -> None:
        """Give back the memory of regions that the worker has closed."""

    def forget_launches(self) -> None:
        """Give back all that launches had, outputs that were taken among it; no worker is left that has any of it open."""

    def upload_inputs(self, sets: Sequence[InputSet], late_inputs: LateInputs | None = None) -> None:
        """Bring the sets as close to the worker as may be without making them readable; the launch that `late_inputs`
        is for gets that at its turn, and what is missing with its window.
        """

    def release(self, channel: Channel, sequence: int, index: int) -> None:
        """Let the launch numbered `sequence` go ahead with the set at `index`, as far as its timed window."""

    def open_window(self, sequence: int, index: int) -> None:
        """Let the timed window open of the launch numbered `sequence` with the set at `index`, whose cache is cold."""

    def flush_fault(self, index: int, *, inspect: bool) -> str | None:
        """What is wrong with the flush that a worker has just reported for launch `index`; None where it was done. A
        GPU is looked at only where `inspect` says so: the switch between two processes would be felt by the launch
        after it.
        """

    def release_all(self, channel: Channel, last: int) -> None:
        """Let everything up to `last` go ahead without inputs, windows and all, so that a failed queue drains."""

    def poll(self, channel: Channel, timeout_s: float) -> LaunchReached | CacheFlushed | dict[str, Any] | None:
        """The next turn, flush or frame within about `timeout_s`, or None."""

    def begin_recording(self) -> None:
        """Have the kernels of the worker's launches recorded from now on; of a GPU's alone."""

    def end_recording(self) -> Recording:
        """What was recorded since; all of the launches are over."""

    def loaded_code(self) -> LoadedCode:
        """The machine code that the worker has loaded into a GPU so far."""

    def slots_unchanged(self, sets: Sequence[InputSet]) -> Sequence[bool]:
        """Of the slot of each set whether it still holds what it was filled with. A device is asked at once and waited
        for only by who looks at an answer, or by the next `upload_inputs`.
        """

    def snapshot(self, index: int) -> None:
        """Keep a piece of the outbox of launch `index` as it is now, before the next launch goes."""

    def written_late(self) -> list[int]:
        """Of the launches with snapshots since `upload_inputs`, those whose outbox was not taken as it was then."""

    def take_outputs(self, count: int, *, on_host: bool = False) -> None:
        """Copy the first `count` outboxes to the judge's own memory, host memory with `on_host`: what comes later is
        too late. The next `upload_inputs` waits for it.
        """

    def outbox(self, index: int) -> torch.Tensor:
        """The bytes of the output of launch `index` as they were taken, as uint8."""

    def local_launches(self, model: torch.nn.Module, sets: Sequence[InputSet], *, gate: bool) -> LocalTimes:
        """Make the same launches in this process, on the same slots, in the same order of steps."""

    def synchronize(self) -> None: ...

    def telemetry(self, own_pids: set[int]) -> Telemetry: ...

    def processes(self) -> set[int] | None:
        """The processes that compute on the GPU, where NVML can be asked and lists this one."""

    def violations(self) -> Violations:
        """For how long limits have held the clocks down so far."""

    def power_meter(self) -> PowerMeter:
        """What says afterwards how much power the device took while it was entered."""

    def copy_gbytes_s(self) -> float:
        """Measured copy bandwidth in 10⁹ bytes/s, counting bytes read and written."""

    def multiply_add_tflops(self) -> float:
        """Measured rate of fp32 multiply-adds in 10¹² operations/s, two for each."""

    def event_floor_us(self) -> float:
        """What the stopwatch reads around nothing, in µs (median)."""

    def unhealthy(self) -> str | None:
        """None when the device still computes rightly and is idle, else a sentence."""

    def settle(self) -> None:
        """Take the device as it is now for idle and empty: another run, which was waited for, has left it."""

    def left_bytes(self, waiting: int = 0) -> int:
        """Bytes of device memory that outlived the worker that was killed last; so many others wait with it open."""

    def peak_bytes(self) -> int | None:
        """The most memory that was seen in use by all processes since the last call; None where nobody counts."""

    def note_waiting_worker(self) -> None:
        """One worker, and no other process of the harness's, has opened the device: see what it holds of its memory."""

    def has_room_for_waiting(self) -> bool:
        """Whether a worker may open the device before its turn, beside the one that is judged."""

    def release_memory(self) -> None:
        """Give back what is cached and not in use."""

    def visible_devices(self) -> dict[str, str]:
        """Environment by which a worker sees this device and no other."""
