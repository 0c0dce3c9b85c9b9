"""The few figures that matter, made of a kernel's counters, each with a sentence on what it says; pure.

The thresholds of the sentences are rules of thumb: above 80 % of what a unit can sustain there is little to win by
using it better, below 5 % it is not what the time goes to.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from harness.tools.counters import metrics

_FULL, _BUSY, _IDLE = 80.0, 50.0, 5.0
_MANY_CONFLICTS = 20.0
_TOP_STALLS, _LEAST_STALL = 3, 0.05
_OF_PIPES = (
    "at its limit: only less work on it makes the kernel faster", "busy, with room left",
    "mostly waiting for data, or little used",
)
# By the counter of a unit's use: its figure's key and title, and what it says where the unit is full, busy or neither.
_UNITS = {
    metrics.DRAM_PERCENT: (
        "dram", "DRAM throughput", "it is at the memory's limit: only fewer bytes make it faster",
        "memory is busy, and may be the limit for part of the time", "memory is not what limits it",
    ),
    metrics.L2_PERCENT: (
        "l2", "L2 throughput", "L2 is at its limit: reuse from shared memory or registers", "L2 is busy",
        "L2 is not what limits it",
    ),
    metrics.TENSOR_PERCENT: ("tensor", "tensor pipe", *_OF_PIPES),
    metrics.FMA_PERCENT: ("fma", "FMA pipe", *_OF_PIPES),
    metrics.ISSUE_PERCENT: (
        "issue", "issue slots", "an instruction nearly every cycle: only fewer instructions make it faster",
        "warps are ready most of the time", "most cycles issue nothing: see what the warps wait for",
    ),
}
_BYTES = {metrics.DRAM_PERCENT: metrics.DRAM_BYTES, metrics.L2_PERCENT: metrics.L2_BYTES}
# What a warp waits for, and what helps.
_STALLS = {
    "barrier": "waits at a barrier for other warps of its block: fewer barriers, or more blocks to run meanwhile",
    "branch_resolving": "waits for a branch to be decided: fewer branches, or predication",
    "dispatch_stall": "was held back by the dispatcher: register banks, or a pipe that takes every second cycle",
    "drain": "waits for its last stores before it ends",
    "gmma": "waits for the tensor cores to finish a group of wgmma: deeper pipelining, or they are the limit",
    "imc_miss": "waits for constants: index them alike in all lanes",
    "lg_throttle": "the queue to global memory is full: fewer and wider loads",
    "long_scoreboard": "waits for global memory or L2: load earlier, more loads in flight, reuse from shared memory",
    "math_pipe_throttle": "waits for an arithmetic pipe that is busy: that pipe is the limit",
    "membar": "waits at a memory fence",
    "mio_throttle": "the queue to shared memory is full: fewer and wider shared loads, more work in registers for each",
    "misc": "waits for something rare",
    "no_instruction": "waits for instructions: a shorter loop body, or less unrolling",
    "short_scoreboard": "waits for shared memory or a special function: load earlier, or fewer bank conflicts",
    "sleeping": "sleeps: nanosleep, or a spin with back-off",
    "tex_throttle": "the queue to the texture unit is full",
    "wait": "waits a fixed few cycles for its own last instruction: more independent work in each thread",
}


@dataclass(frozen=True)
class Figure:
    """`key` is stable, `title` what a person reads; `value` in `unit`; `sentence` what it says of the kernel."""

    key: str
    title: str
    value: float
    unit: str
    sentence: str


def figures_of(values: Mapping[str, float]) -> list[Figure]:
    """The figures that the counters in `values` (by metric, base units) give; without its counters one is left out."""
    of_units = [_use(values, metric) for metric in _UNITS]
    figures = [*of_units, _occupancy(values), _conflicts(values), _sectors(values), _clock(values), *_stalls(values)]
    return [each for each in figures if each is not None]


def time_us(values: Mapping[str, float]) -> float | None:
    """The duration of the kernel, whose unit is ns, in µs."""
    return None if metrics.DURATION not in values else values[metrics.DURATION] / 1e3


def _use(values: Mapping[str, float], metric: str) -> Figure | None:
    percent, duration_ns, hits = values.get(metric), values.get(metrics.DURATION), values.get(metrics.L2_HITS)
    if percent is None:
        return None
    key, title, full, busy, otherwise = _UNITS[metric]
    sentence = full if percent >= _FULL else busy if percent >= _BUSY else otherwise
    if otherwise in _OF_PIPES and percent < _IDLE:
        sentence = "not used, or hardly"
    if duration_ns and _BYTES.get(metric) in values:
        sentence = f"{values[_BYTES[metric]] / duration_ns:,.0f} GB/s: {sentence}"
    if metric == metrics.L2_PERCENT and hits is not None:
        sentence += f"; {hits:.0f} % of what it was asked for was there"
    return Figure(f"{key}_percent", title, percent, "%", sentence)


def _occupancy(values: Mapping[str, float]) -> Figure | None:
    percent, most = values.get(metrics.OCCUPANCY), values.get(metrics.MOST_OCCUPANCY)
    if percent is None:
        return None
    if most is None:
        return Figure("occupancy_percent", "occupancy", percent, "%", "of the warps that a multiprocessor can hold")
    limits = {name: values[metric] for metric, name in metrics.LIMITS.items() if metric in values}
    least = min(limits.values(), default=0.0)
    by = " and ".join(name for name, blocks in limits.items() if blocks == least)
    why = f": {by} allow {least:.0f} block{'s' if least != 1 else ''} at a time"
    sentence = "of 100 % that is possible" if most >= 99.5 else f"of {most:.0f} % that is possible{why}"
    if percent < 0.8 * most:
        sentence += "; the rest is lost to blocks that end early, or too few of them"
    return Figure("occupancy_percent", "occupancy", percent, "%", sentence)


def _conflicts(values: Mapping[str, float]) -> Figure | None:
    wavefronts = values.get(metrics.WAVEFRONTS_LOAD, 0.0) + values.get(metrics.WAVEFRONTS_STORE, 0.0)
    if metrics.CONFLICTS_LOAD not in values:
        return None
    if not wavefronts:
        return Figure("bank_conflict_percent", "bank conflicts", 0.0, "%", "no thread reads or writes shared memory")
    loads, stores = values[metrics.CONFLICTS_LOAD], values.get(metrics.CONFLICTS_STORE, 0.0)
    percent = 100.0 * (loads + stores) / wavefronts
    sentence = f"of the accesses to shared memory are repeats: {'few' if percent >= 1 else 'next to none'}"
    if percent >= _MANY_CONFLICTS:
        which = "loads" if loads >= stores else "stores"
        sentence = f"of the accesses to shared memory are repeats, most of them of {which}: pad or swizzle the tile"
    return Figure("bank_conflict_percent", "bank conflicts", percent, "%", sentence)


def _sectors(values: Mapping[str, float]) -> Figure | None:
    sectors = values.get(metrics.SECTORS_LOAD)
    if not sectors:
        return None
    sentence = "sectors of 32 bytes for a warp's load: coalesced it is 4 with 4 bytes a lane, 8 with 8, 16 with 16"
    return Figure("sectors_per_load", "global loads", sectors, "", sentence)


def _clock(values: Mapping[str, float]) -> Figure | None:
    duration_ns, cycles = values.get(metrics.DURATION), values.get(metrics.CYCLES)
    if not duration_ns or not cycles:
        return None
    sentence = "what a multiprocessor's cycles say of this call; near its power limit a GPU lowers its clock"
    return Figure("sm_mhz", "SM clock", 1e3 * cycles / duration_ns, "MHz", sentence)


def _stalls(values: Mapping[str, float]) -> list[Figure]:
    waits = {name: values[metric] for metric, name in metrics.STALLS.items() if metric in values}
    between = sum(waits.values()) + 1.0  # one cycle is the issue itself
    # A warp that was ready while another was chosen does not stall.
    top = sorted((name for name in waits if name in _STALLS), key=lambda name: -waits[name])[:_TOP_STALLS]
    percents = {name: 100.0 * waits[name] / between for name in top if waits[name] > _LEAST_STALL * between}
    return [
        Figure(f"stall_{name}", f"stall: {name}", percent, "%", f"of a warp's time: {_STALLS[name]}")
        for name, percent in percents.items()
    ]
