"""How this software's numbers keep their targets: eager against itself, many times over, for each class of durations.

    python benchmarks/against_itself.py [--devices all] [--processes 10] [--controls 20] [--each 200] [--minutes 40]
                                       [--sizes 4096 …] [--beside triton_ieee …]
    python benchmarks/against_itself.py --add FILE [--minutes 10 …]
    python benchmarks/against_itself.py --from FILE

One control is eager in a fresh worker against eager in the judge, judged as a run judges its rows. Each of several
judge processes times a number of them at each size; with --devices one process at a time on each GPU. For each size
the table has, beside its target: the 95th percentile of the distance from 1; largest over smallest speedup less 1 over
the processes (of the first control of each, of the second, …: the median of these, and the largest); how many were
called FASTER or SLOWER; how many intervals hold the mean of all, and how many hold 1; and the seconds from record to
record. What comes out is printed whatever it is, with its n, and each target that is missed in a sentence. --json keeps
it from the first figure on; --from prints the table of such a file again. --add goes on with one, where device, PyTorch,
this software and --config are the same, at these sizes or at some of them: the table is of all, and the file gets all.
Processes are compared with those of their own run. With --each a size that has so many, those of the file counted, gets
no more, and the others have its time. With --beside each control is followed by these candidates of
candidates/tril_matmul/, in workers of their own, over eager as a run's rows are: what their speedup really is is the
mean of all, and a second table says how far they are from that, and how many intervals hold it.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from tabulate import tabulate

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(REPOSITORY), str(REPOSITORY / "benchmarks")]

from itself_table import HEADS, beside_table, is_control, row_of, sentences  # noqa: E402
from timing_peers import CANDIDATES  # noqa: E402
from timing_flags import Asked, Usual, asked_by, carried_out, flags, software  # noqa: E402
from timing_process import Died, Timed, interrupt_once  # noqa: E402

from harness.model.candidate import find_candidates  # noqa: E402
from harness.model.errors import InputError  # noqa: E402
from harness.runs.fleet.judge_process import visible_alone  # noqa: E402

# One size of each class of durations.
USUAL = Usual("judge processes", (10, 2), (40.0, 2.0), ((4096, 2048, 256), (1024, 256)))
_CONTROLS = (20, 2)
# Of a run what is kept beside its figures, and what must be the same for another to be added to it.
_RUN = ("utc", "command", "minutes", "processes")
_SAME = ("device", "torch", "is_cpu", "config", "harness_hash")
_LONGEST_S = 600.0  # one process, where --minutes leaves it so long
_POLL_S = 0.2


class _Turns:
    """Hands each process its number and its share of the time: as much as the others that its device will have."""

    def __init__(self, processes: int, devices: int, deadline: float) -> None:
        self._left, self._number, self._devices, self._deadline = processes, 0, devices, deadline
        self._lock = threading.Lock()

    def take(self) -> tuple[int, float, int] | None:
        """The next number, from 0, its seconds, and how many processes there are from it on; None when there is none, or
        no time for it.
        """
        with self._lock:
            left_s = self._deadline - time.monotonic()
            if not self._left or (self._number >= self._devices and left_s <= 0):
                return None
            rounds_left = -(-self._left // self._devices)
            self._left, self._number = self._left - 1, self._number + 1
            return self._number - 1, min(left_s / rounds_left, _LONGEST_S), self._left + 1

    def follows(self) -> bool:
        """Whether a device that begins one now may have another after it."""
        return self._left > 0


class _Measuring:
    """Processes one after the other on each device; what they say, as it comes."""

    def __init__(
        self, asked: Asked, controls: int, before: Mapping[str, Any] | None = None, each: int | None = None,
        beside: Sequence[str] = (),
    ) -> None:
        """`before` is what earlier runs left, which is kept; a size with `each` controls in all gets no more. `beside` are the
        candidates that follow each.
        """
        self._asked, self._controls, self._each, self._beside = asked, controls, each, list(beside)
        self._earlier = [*before["earlier"], {name: before[name] for name in _RUN}] if before else []
        self._run = len(self._earlier)
        self.sizes = list(dict.fromkeys([*(before["sizes"] if before else []), *asked.sizes]))
        self._turns = _Turns(asked.processes, len(asked.devices), time.monotonic() + 60 * asked.minutes)
        self._running: set[Timed] = set()
        self._lock = threading.Lock()
        self._ended = False
        self.figures: list[dict[str, Any]] = list(before["figures"]) if before else []

    def write(self) -> None:
        """Put what there is so far where --json or --add says."""
        self._asked.write(self.figures, sizes=self.sizes, controls=self._controls, earlier=self._earlier)

    def run(self) -> None:
        """Until all has been measured, the time is over, or an interrupt comes."""
        threads = [threading.Thread(target=self._on, args=(each,), daemon=True) for each in self._asked.devices]
        for thread in threads:
            thread.start()
        try:
            while any(thread.is_alive() for thread in threads):
                time.sleep(_POLL_S)
        except KeyboardInterrupt:
            print("interrupted: this is what there is", file=sys.stderr)
        with self._lock:
            self._ended, left = True, list(self._running)
        for each in left:
            each.interrupt()
        for each in left:
            each.end()
        for thread in threads:
            thread.join()

    def _on(self, device: str) -> None:
        visible, inside = visible_alone(device, os.environ), "cpu" if device == "cpu" else "cuda:0"
        waiting: list[Timed] = []
        while (turn := self._turns.take()) is not None:
            number, seconds, processes = turn
            wanted = self._wanted(processes)
            if not wanted:
                break
            # The next one imports PyTorch meanwhile, but not on a CPU, whose cores are being timed.
            ahead = 2 if self._turns.follows() and not self._asked.is_cpu else 1
            while len(waiting) < ahead:
                process = self._begin(visible)
                if process is None:
                    return
                waiting.append(process)
            now = waiting.pop(0)
            told = {
                **self._asked.for_process(inside), "sizes": list(wanted), "controls": list(wanted.values()),
                "seconds": seconds, "beside": self._beside,
            }
            try:
                for figure in now.ask(told):
                    self._keep({**figure, "run": self._run, "process": number, "device": device})
            except Died as died:
                if not self._ended:
                    print(f"process {number + 1} died: {died}", file=sys.stderr)
            self._end(now)
        for each in waiting:
            self._end(each)

    def _wanted(self, processes: int) -> dict[int, int]:
        """How many controls the next of so many processes is to make at each size, where there are to be any."""
        if self._each is None:
            return dict.fromkeys(self._asked.sizes, self._controls)
        with self._lock:
            there = Counter(figure["size"] for figure in self.figures if is_control(figure))
        missing = {size: self._each - there[size] for size in self._asked.sizes}
        return {size: min(self._controls, -(-many // processes)) for size, many in missing.items() if many > 0}

    def _begin(self, visible: dict[str, str]) -> Timed | None:
        with self._lock:
            if self._ended:
                return None
            process = Timed("controls", visible)
            self._running.add(process)
            return process

    def _end(self, process: Timed) -> None:
        process.end()
        with self._lock:
            self._running.discard(process)

    def _keep(self, figure: dict[str, Any]) -> None:
        if "note" in figure:
            print(f"process {figure['process'] + 1}: {figure['note']}", file=sys.stderr, flush=True)
            return
        with self._lock:
            if self._ended:
                return
            first = _place_of(figure) not in map(_place_of, self.figures)
            self.figures.append({**figure, "first": first})
            self.write()
        said = f"{figure['ratio']:.4f}" if "ratio" in figure else figure["failed"]
        where = f" on {figure['device']}" if len(self._asked.devices) > 1 else ""
        what = "" if is_control(figure) else f"{figure['name']}, "
        print(f"process {figure['process'] + 1} of {self._asked.processes}{where}: {what}M={figure['size']}: {said}, "
              f"{figure['seconds']:.1f} s", file=sys.stderr, flush=True)


def _place_of(figure: Mapping[str, Any]) -> tuple[int, int, int, str]:
    return figure["run"], figure["process"], figure["size"], figure["name"]


def table(figures: Sequence[dict[str, Any]], sizes: Sequence[int], is_cpu: bool) -> str:
    """The tables with their words, as they are printed."""
    rows = [row_of(figures, size, not is_cpu) for size in sizes]
    lines = [tabulate([list(map(str, row)) for row in rows], HEADS, tablefmt="github", disable_numparse=True)]
    if not is_cpu:
        lines += ["", "In brackets the target on an H200, and ! where it is missed; the mean is the geometric one of all n."]
        lines += ["", *sentences(rows)]
    others = beside_table(figures, not is_cpu)
    if others:
        lines += ["", others]
    return "\n".join(lines)


def main() -> None:
    """Measure, and print the table."""
    parser = flags(__doc__, USUAL, several_devices=True)
    gpu, cpu = _CONTROLS
    parser.add_argument("--controls", type=int, help=f"in each process and size (default: {gpu}; {cpu} on a CPU)")
    parser.add_argument("--each", type=int, metavar="N", help="no more than about so many at each size in all")
    parser.add_argument("--beside", nargs="+", default=[], metavar="NAME", help="candidates that follow each control")
    parser.add_argument("--add", type=Path, metavar="FILE", help="go on with an earlier --json, and put all there")
    parser.add_argument("--from", type=Path, metavar="FILE", dest="earlier", help="print the table of an earlier --json")
    options = parser.parse_args()
    if options.earlier:
        body = read(options.earlier)
        for each in (*body["earlier"], body):
            print(f"On {body['device']}, {each['utc']}: {each['command']}")
        print()
        print(table(body["figures"], body["sizes"], body["is_cpu"]))
        return
    before = read(options.add) if options.add else None
    asked = asked_by(options, USUAL)
    if before:
        check_same(before, asked, options.add)
        asked = replace(asked, json=asked.json or options.add)
    controls = options.controls or _CONTROLS[asked.is_cpu]
    where = asked.device if len(asked.devices) == 1 else f"{len(asked.devices)} of {asked.device}"
    print(f"On {where}, PyTorch {asked.torch}, --config {asked.config}: up to {asked.processes} processes of {controls} "
          "controls at each size.\n", flush=True)
    if options.beside:
        find_candidates(CANDIDATES, only=options.beside)  # raises for one that is not there
    measuring = _Measuring(asked, controls, before, options.each, options.beside)
    measuring.write()
    interrupt_once()
    measuring.run()
    if not measuring.figures:
        sys.exit("nothing was measured")
    print(table(measuring.figures, measuring.sizes, asked.is_cpu))


def read(path: Path) -> dict[str, Any]:
    """What --json left there, of one run or more. Raises InputError."""
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
        body.setdefault("earlier", [])
        for each in body["figures"]:
            each.setdefault("run", 0)
            each.setdefault("name", "eager")
            each["size"], each["process"], each["first"], each["seconds"]
        for name in (*_SAME, "sizes"):
            body[name]
        for name in _RUN:
            [each[name] for each in (*body["earlier"], body)]
    except (OSError, ValueError, KeyError, TypeError) as error:
        said = error.strerror if isinstance(error, OSError) else "it is no file that --json of this benchmark wrote"
        raise InputError(f"cannot be read: {said}", path) from None
    return body


def check_same(before: Mapping[str, Any], asked: Asked, path: Path) -> None:
    """Raise InputError where what is asked for now could not stand in one table with what there is."""
    now = {**asdict(asked), "harness_hash": software()}
    for name in _SAME:
        if before[name] != now[name]:
            said = f"{name} was {before[name]} there, and is {now[name]} here: that is another table"
            raise InputError(said, path, hint="Begin one with --json FILE")


if __name__ == "__main__":
    carried_out(main)
