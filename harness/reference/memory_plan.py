"""How much of a device's memory judging holds at once, and what it gives up, step by step, where there is little.

Every size is measured: inputs and outputs of one call, the model's state, the peak of one eager call. From these follows
what all that is alive together takes, in the judge and in the worker. Pure arithmetic: nothing here touches a device.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum

# One whole rotation of outputs, and a lead-in.
MOST_LAUNCHES = 17
# Slices of less than 1/256 of a call take longer to start than to compute; before there are so many, outputs go to the host.
_MORE_SLICES, _MANY_SLICES, _MOST_SLICES = 4, 64, 256
# A float64 pass may take this share of what there is before it is cut into slices.
_WIDE_SHARE = 1 / 8
# Of what is there: allocators round up, and keep blocks that fit no later request.
_USABLE_SHARE = 0.9


class MemoryStep(str, Enum):
    """What was given up last to have room; each step keeps what the ones before it gave up."""

    FULL = "full"
    FEWER = "fewer_launches"
    SINGLE = "one_launch"
    SLICES = "slices"
    HOST = "host"


@dataclass(frozen=True)
class CallSizes:
    """Sizes of one call, in bytes.

    `eager_bytes` is the peak of an eager call beyond its inputs and the state, outputs among them; `wide_inputs_bytes`
    what the inputs take in float64. `is_separable` says whether expected outputs can be made in slices.
    """

    inputs_bytes: int
    outputs_bytes: int
    state_bytes: int
    eager_bytes: int
    wide_inputs_bytes: int
    is_separable: bool = False

    @property
    def wide_bytes(self) -> int:
        """A float64 call with its inputs: every tensor of an eager call is twice as large."""
        return self.wide_inputs_bytes + 2 * max(self.eager_bytes, self.outputs_bytes)


@dataclass(frozen=True)
class MemoryPlan:
    """How many `launches` a segment may have, its lead-in included, and what else is done to have room.

    A `tight` plan keeps no inputs (they are drawn again from their seeds), unmasks them where they lie, and has one outbox
    for all launches. Expected outputs are made in `slices`. With `on_host` the outputs wait in host memory while a float64
    pass runs, and both processes give back all other memory between segments.
    """

    sizes: CallSizes
    launches: int = MOST_LAUNCHES
    tight: bool = False
    slices: int = 1
    on_host: bool = False

    @property
    def step(self) -> MemoryStep:
        if self.on_host:
            return MemoryStep.HOST
        if self.slices > 1:
            return MemoryStep.SLICES
        if self.tight:
            return MemoryStep.SINGLE
        return MemoryStep.FULL if self.launches >= MOST_LAUNCHES else MemoryStep.FEWER

    @property
    def needed_bytes(self) -> int:
        """The most that is alive at once, in the judge and the worker together."""
        return self._beside_calls_bytes + (self._tight_bytes if self.tight else self._roomy_bytes)

    @property
    def _beside_calls_bytes(self) -> int:
        """The state: the worker's, the reference's, as it was at birth, and in float64."""
        return 5 * self.sizes.state_bytes

    @property
    def _expected_bytes(self) -> int:
        """Making one expected output, beside eager's where that does not wait in host memory."""
        eager_bytes = 0 if self.on_host else self.sizes.outputs_bytes
        return -(-(self.sizes.wide_bytes + eager_bytes) // self.slices)

    @property
    def _tight_bytes(self) -> int:
        """What launches share and the worker's call, beside the most that the judge does at once: nothing is given back
        between segments. With `on_host` it is, and a call and the comparison of its outputs have room in turn.
        """
        sizes = self.sizes
        inputs, outputs, eager = sizes.inputs_bytes, sizes.outputs_bytes, max(sizes.eager_bytes, sizes.outputs_bytes)
        shared = self.launches * inputs + outputs
        compared = max(2 * inputs, inputs + self._expected_bytes)
        if self.on_host:
            return max(shared + max(2 * inputs, eager + outputs), compared)
        return shared + 2 * outputs + eager + max(compared, eager)  # the outputs taken of either arm stay

    @property
    def _roomy_bytes(self) -> int:
        """All of it lies side by side: regions, outputs taken, inputs of this half round, the next, and the baseline."""
        sizes, count = self.sizes, self.launches
        regions = count * (2 * sizes.inputs_bytes + sizes.outputs_bytes)
        held = (4 * count + 3) * sizes.inputs_bytes + count * sizes.outputs_bytes
        calls = 2 * sizes.eager_bytes + sizes.outputs_bytes
        return regions + held + calls + self._expected_bytes + 2 * sizes.outputs_bytes

    def smaller(self) -> MemoryPlan | None:
        """The next step down, None after the last."""
        if not self.tight:
            if self.launches > 2:
                return replace(self, launches=max(2, self.launches // 4))
            return replace(self, launches=2, tight=True)
        if self.sizes.is_separable and self.slices < (_MOST_SLICES if self.on_host else _MANY_SLICES):
            return replace(self, slices=min(_MOST_SLICES, _MORE_SLICES * self.slices))
        return None if self.on_host else replace(self, on_host=True)


def plan_memory(sizes: CallSizes, available_bytes: int) -> MemoryPlan:
    """The first plan that `available_bytes` have room for, or the smallest there is."""
    plan = MemoryPlan(sizes)
    for plan in _from_largest(sizes, available_bytes):
        if plan.needed_bytes <= _USABLE_SHARE * available_bytes:
            break
    return plan


def smallest_plan(sizes: CallSizes) -> MemoryPlan:
    """The plan after which there is none smaller."""
    plan = MemoryPlan(sizes)
    while (smaller := plan.smaller()) is not None:
        plan = smaller
    return plan


def slices_wanted(sizes: CallSizes, available_bytes: int) -> int:
    """In how many slices a float64 pass has room in its share, 1 where it is whole."""
    slices = 1
    while sizes.wide_bytes > _WIDE_SHARE * available_bytes * slices and slices < _MOST_SLICES:
        slices *= 2
    return slices


def sentence_of(plan: MemoryPlan) -> str:
    """What is done to have room, in words that follow "with"; "nothing given up" for a full plan."""
    measures = []
    if plan.tight:
        measures.append("one launch at a time, its inputs drawn again where they are needed")
    elif plan.launches < MOST_LAUNCHES:
        measures.append(f"at most {plan.launches - 1} timed launches in a row")
    if plan.slices > 1:
        measures.append(f"expected outputs in {plan.slices} slices")
    if plan.on_host:
        measures.append("outputs in host memory while they are compared")
    return ", ".join(measures) or "nothing given up"


def memory_notes(plan: MemoryPlan, lacked_launches: bool) -> list[str]:
    """What was given up to have room, where that changed the judging: `lacked_launches` had the time and no room."""
    is_fewer = plan.step is MemoryStep.FEWER and not lacked_launches
    return [] if plan.step is MemoryStep.FULL or is_fewer else [f"memory was short: {sentence_of(plan)}"]


def _from_largest(sizes: CallSizes, available_bytes: int) -> Iterator[MemoryPlan]:
    slices = slices_wanted(sizes, available_bytes) if sizes.is_separable else 1
    for launches in range(MOST_LAUNCHES, 1, -1):
        yield MemoryPlan(sizes, launches, slices=slices)
    plan: MemoryPlan | None = MemoryPlan(sizes, 2, tight=True, slices=slices)
    while plan is not None:
        yield plan
        plan = plan.smaller()
