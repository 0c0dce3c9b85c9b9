"""What timing gives: a part of a round, and all that the rounds of one worker left."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field

from harness.device.identity import Telemetry, Violations
from harness.launch.conversation import LATE, Launch, Launches
from harness.timing.probes.result import ProbeResult
from harness.timing.probes.schedule import Probe
from harness.timing.stats import (
    Interval, PooledBaseline, baselines_agree, log_ratio, may_be_processes, trimmed_mean, tukey_mclaughlin, typical_us,
)

OVERHEAD_TRIM = 0.1
_QUARTER = 0.25


@dataclass(frozen=True)
class HalfRound:
    """Half a round, on inputs drawn alike, lead-ins left out, in µs; `of_baseline` has none, one or two segments."""

    launches: list[Launch]
    of_baseline: list[list[float]]
    tail_us: float | None = None
    baseline_forward_us: list[float] = field(default_factory=list)
    in_worker_us: list[float] = field(default_factory=list)  # the baseline in the candidate's own process

    @property
    def forward_us(self) -> list[float]:
        return [launch.forward_us for launch in self.launches if launch.forward_us is not None]

    @property
    def candidate_us(self) -> list[float]:
        return [launch.time_us for launch in self.launches]

    @property
    def baseline_us(self) -> list[float]:
        return [time_us for segment in self.of_baseline for time_us in segment]

    @property
    def wall_us(self) -> list[float]:
        return [launch.wall_us for launch in self.launches if launch.wall_us is not None]

    @property
    def flush_us(self) -> list[float]:
        return [launch.flush_us for launch in self.launches if launch.flush_us is not None]

    @property
    def wall_less_time_us(self) -> list[float]:
        """Of each launch the judge's wall time, on a CPU from the opening of its window, less the time reported."""
        return [
            launch.wall_us - (launch.flush_us or 0.0) - launch.time_us
            for launch in self.launches if launch.wall_us is not None
        ]

    @property
    def window_less_time_us(self) -> list[float | None]:
        """Of each launch the judge's time from the opening of its window on, less the time reported; None where it was missed."""
        return [None if launch.window_us is None else launch.window_us - launch.time_us for launch in self.launches]


_OF_ROUNDS = (
    "candidate_us", "baseline_us", "log_ratios", "in_worker_us", "in_worker_log_ratios", "segments", "forward_us",
    "baseline_forward_us", "wall_less_time_us", "window_less_time_us", "flush_us", "host_us", "tails_us", "telemetry", "read_at_s", "read_kept",
)


@dataclass
class Timing:
    """What the rounds gave. Times in µs, one per kept launch; ratios in ratio space."""

    candidate_us: list[float] = field(default_factory=list)
    baseline_us: list[float] = field(default_factory=list)
    log_ratios: list[float] = field(default_factory=list)
    in_worker_us: list[float] = field(default_factory=list)
    in_worker_log_ratios: list[float] = field(default_factory=list)
    segments: list[list[list[float]]] = field(default_factory=list)  # of each kept round those of the candidate
    notes: list[str] = field(default_factory=list)
    forward_us: list[float] = field(default_factory=list)
    baseline_forward_us: list[float] = field(default_factory=list)
    wall_less_time_us: list[float] = field(default_factory=list)
    window_less_time_us: list[float | None] = field(default_factory=list)
    flush_us: list[float] = field(default_factory=list)
    host_us: list[float] = field(default_factory=list)
    telemetry: list[Telemetry] = field(default_factory=list)
    violations: Violations = field(default_factory=Violations)  # from before the first round to after the last
    # Of the reading after each round: when it was, from the start of the rounds, and whether the round was kept.
    read_at_s: list[float] = field(default_factory=list)
    read_kept: list[bool] = field(default_factory=list)
    dropped: int = 0
    timer: str | None = None
    input_sets: int = 0
    launch_hidden: bool | None = None
    waits: bool = False  # whether it was the candidate's own queue that could not be gated
    end_to_end_us: float | None = None
    # Of each probe that holds times against each other, what says most against the candidate.
    probe_results: dict[Probe, ProbeResult] = field(default_factory=dict)
    recorded: list[Launches] = field(default_factory=list)  # probes among the rounds whose kernels were recorded
    other_streams: int = 0  # beside the current one, that had a part in each call that was recorded
    ungated_overhead_us: float | None = None
    synchronised_overhead_us: float | None = None  # the control's, where the device was waited for within each call
    tails_us: list[float] = field(default_factory=list)
    launches_per_segment: int = 0
    lacked_launches: bool = False  # whether memory had room for fewer than time had
    # Whether the baseline is so short that it is to be timed in the candidate's process too, and why it was not.
    wants_in_worker: bool = False
    in_worker_fault: str | None = None
    # Whether the candidate is other code than the baseline, on a device where a process makes code faster or slower.
    is_of_its_process: bool = False
    pooled_baseline: PooledBaseline | None = None  # the baseline's mean, where it was timed in several
    control_apart: float = 0.0  # how far from one the control's own speedup may be
    times_slowed: float = 1.0  # how many times as long as usual the baseline took, where that is held against nobody
    unvouched_us: float = 0.0  # how much longer a call may take than it says, for all that the judge's clock shows
    is_short: bool | None = None  # what was thought of the call when it was first asked whether there are rounds enough
    speedup: Interval | None = None
    scattered: Interval | None = None  # the same from the scatter of the rounds alone
    of_this_process: Interval | None = None  # the same without what another process would get
    confidence: float | None = None
    word: str | None = None
    is_brief: bool = False  # whether a few calls were enough, of what takes so much longer than the baseline

    def keep(self, *halves: HalfRound) -> None:
        """Add a round of two parts: its log-ratio, and what was read of each launch."""
        candidate = [half.candidate_us for half in halves]
        baseline = [segment for half in halves for segment in half.of_baseline]
        in_worker = [half.in_worker_us for half in halves if half.in_worker_us]
        self.segments.append(candidate)
        self.log_ratios.append(log_ratio(candidate, baseline))
        if len(in_worker) == len(halves):
            self.in_worker_log_ratios.append(log_ratio(candidate, in_worker))
        for half in halves:
            self.in_worker_us += half.in_worker_us
            self.candidate_us += half.candidate_us
            self.baseline_us += half.baseline_us
            self.forward_us += half.forward_us
            self.baseline_forward_us += half.baseline_forward_us
            self.host_us += [launch.host_us for launch in half.launches]
            self.wall_less_time_us += half.wall_less_time_us
            self.window_less_time_us += half.window_less_time_us
            self.flush_us += half.flush_us
            self.tails_us += [] if half.tail_us is None else [half.tail_us]

    def note_reading(self, reading: Telemetry, at_s: float, *, kept: bool) -> None:
        """Add what was read of the device after a round, `at_s` from the start of the rounds."""
        self.telemetry.append(reading)
        self.read_at_s.append(at_s)
        self.read_kept.append(kept)

    def forget_rounds(self) -> None:
        """Leave out all rounds so far: what was read of them is of another kind than what follows."""
        nothing = Timing()
        for name in _OF_ROUNDS:
            setattr(self, name, getattr(nothing, name))

    def rounds_until(self, seconds: float) -> int | None:
        """How many rounds were kept up to the first that ended so late, or later; None before there is one."""
        number = next((number for number, at_s in enumerate(self.read_at_s, 1) if at_s >= seconds), None)
        return None if number is None else sum(self.read_kept[:number])

    @property
    def agreeing(self) -> bool:
        """Whether the baseline was timed in the candidate's process too, in each round, and took as long there."""
        if not self.log_ratios or len(self.in_worker_log_ratios) != len(self.log_ratios):
            return False
        return baselines_agree(self.in_worker_log_ratios, self.log_ratios, self.baseline_time_us)

    @property
    def unseen_process(self) -> bool:
        """Whether what the candidate's process adds to a short call is in no baseline's time that could be taken."""
        return self.wants_in_worker and not self.agreeing and not self.apart_as_processes

    @property
    def deserves_another_process(self) -> bool:
        """Whether what the process adds to a call is in doubt by what may be this one process's alone."""
        return self.apart_as_processes or (self.wants_in_worker and self.in_worker_fault == LATE)

    @property
    def apart_as_processes(self) -> bool:
        """Whether the two baselines do not agree, but are no further apart than processes might be."""
        if self.agreeing or not self.log_ratios or len(self.in_worker_log_ratios) != len(self.log_ratios):
            return False
        return may_be_processes(self.in_worker_log_ratios, self.log_ratios, self.baseline_time_us)

    @property
    def is_pooled(self) -> bool:
        """Whether the speedup is over the baseline's mean of several processes, and not over that in the candidate's own."""
        return self.is_of_its_process and self.pooled_baseline is not None and bool(self.baseline_us)

    @property
    def ratios(self) -> list[float]:
        """The log-ratios that the speedup comes from."""
        return self.in_worker_log_ratios if self.agreeing and not self.is_pooled else self.log_ratios

    @property
    def time_us(self) -> float:
        return typical_us(self.candidate_us)

    @property
    def baseline_time_us(self) -> float:
        return typical_us(self.baseline_us)

    @property
    def times_unvouched(self) -> float:
        """How many times as long as it says a call may take, for all that the judge's clock shows."""
        return 1 + self.unvouched_us / self.time_us if self.unvouched_us else 1.0

    @property
    def shorter_us(self) -> float:
        """Of the two calls: the duration that margins go by."""
        return min(self.time_us, self.baseline_time_us)

    @property
    def tail_us(self) -> float | None:
        """Median of what passed between the end of a segment's last launch and its report, by the judge's clock."""
        return statistics.median(self.tails_us) if self.tails_us else None

    @property
    def wall_overhead_us(self) -> float | None:
        """Mean, a tenth trimmed at each end, of the judge's wall time of a launch, on a CPU from the opening of its
        window, less the time reported for it. Not the median: a lie about every third launch would not move it.
        """
        return trimmed_mean(self.wall_less_time_us, OVERHEAD_TRIM) if self.wall_less_time_us else None

    @property
    def typical_overhead_us(self) -> float | None:
        """What a call takes by the judge's clock, from the opening of its window on, less what it says it takes, both the mean
        of the middle half: a lie about some of the launches counts as much as it gains.

        Where its queue could not be gated the host is in that time, as it is in all of the launch, which then counts.
        """
        known = self._known_less_us
        return typical_us([time_us + less_us for time_us, less_us in known]) - self.time_us if known else None

    @property
    def overhead_reach_us(self) -> float:
        """Half the width of the 99 % interval of that."""
        less_us = [less_us for _, less_us in self._known_less_us]
        return tukey_mclaughlin(less_us, trim=_QUARTER).half_width if len(less_us) > 1 else 0.0

    @property
    def _known_less_us(self) -> list[tuple[float, float]]:
        """The times of the launches that the judge saw begin and end, and what its clock had beyond each."""
        less_us = self.wall_less_time_us if self.launch_hidden is False else self.window_less_time_us
        return [(time_us, less) for time_us, less in zip(self.candidate_us, less_us) if less is not None]

    @property
    def flush_overhead_us(self) -> float | None:
        """The like mean of what passed on a CPU before a launch's window was opened: inputs copied, the cache flushed."""
        return trimmed_mean(self.flush_us, OVERHEAD_TRIM) if self.flush_us else None
