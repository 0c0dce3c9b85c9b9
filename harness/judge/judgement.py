"""What is judged, and what was found out about it: an entry before, a judgement after. `entry_judge` decides the verdict."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.attribution.kernel_ownership import Provenance
from harness.judge.extras import Extras
from harness.model.verdict import OK, Verdict
from harness.reference.accuracy.classes import ErrorFigures, classify, worst
from harness.reference.evidence import Evidence
from harness.reference.memory_plan import MemoryPlan
from harness.sandbox.spawn import Child
from harness.timing.stats import Interval
from harness.timing.three_clocks import ThreeClocks
from harness.timing.timings import Timing

Start = Callable[[], Child]  # of a fresh worker process for an entry
Tell = Callable[[str], None]  # the user, of what is being done


@dataclass(frozen=True)
class Prepared:
    """A candidate or baseline ready to be tried. `manifest` names its built extensions by content key, `refused` are
    the keys of those that no compiler takes; it `may_ask` for others as it runs. `origin` is the author's own file,
    where `path` may be a copy with its tuned values. `stand_in_gpu` is for a candidate that Triton's interpreter runs on
    the CPU: the properties of the GPU that it is told of; None for every other. One that is `check_only` is not timed.
    `unproven` says why nobody knows whether its extensions are what its sources say, where that is so.
    """

    name: str
    path: str
    manifest: Mapping[str, Any]
    extensions: tuple[Path, ...]
    triton_cache: Path | None
    precision_class: str
    language: str
    is_baseline: bool = False
    origin: str | None = None
    refused: frozenset[str] = frozenset()
    may_ask: bool = False
    stand_in_gpu: Mapping[str, Any] | None = None
    check_only: bool = False
    unproven: str = ""

    @property
    def is_control(self) -> bool:
        """Whether it is eager itself, in a worker."""
        return self.is_baseline and self.name == "eager"


@dataclass
class Judgement:
    """Everything found out about an entry, as far as it got. `timings` has one entry per worker; `evidence` is on
    the launch that failed; `launched` how many kernels, copies and fills a call is on a GPU, 0 where nobody knows;
    `beside_control` is whether the verdict rests on what the control left behind. `memory` is the plan by which it had
    room, `lacked_room` whether that was still too much for the judge, `peak_bytes` the most that was seen in use.
    `state_moved` is whether a call moved the model's state as the reference's does, None where that moves none;
    `unbuilt` are calls of `load_inline` and `load` that the build had not seen, as the worker told them. `ends_s` is
    when its row's budget ends, by time.monotonic().
    """

    verdict: Verdict = OK
    figures: list[ErrorFigures] = field(default_factory=list)
    truth: str | None = None
    terms: float | None = None
    timings: list[Timing] = field(default_factory=list)
    speedup: Interval | None = None
    word: str | None = None
    provenance: Provenance | None = None
    launched: int = 0
    warnings: list[str] = field(default_factory=list)
    extras: Extras | None = None
    clocks: ThreeClocks | None = None
    evidence: Evidence | None = None
    beside_control: bool = False
    memory: MemoryPlan | None = None
    lacked_room: bool = False
    peak_bytes: int | None = None
    state_moved: bool | None = None
    unbuilt: list[dict[str, Any]] = field(default_factory=list)
    ends_s: float = math.inf
    traceback: str | None = None  # of an exception of this software's own

    @property
    def timing(self) -> Timing | None:
        return self.timings[0] if self.timings else None

    @property
    def precision_class(self) -> str | None:
        """The class that explains all errors: the one that was asked for when all are within its bounds."""
        return classify(self.figures, self.terms) if self.figures else None

    @property
    def worst(self) -> ErrorFigures | None:
        return worst(self.figures) if self.figures else None
