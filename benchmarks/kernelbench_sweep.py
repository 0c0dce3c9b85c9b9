"""All of KernelBench through this harness: what becomes of an exact copy of each reference, of zeros, and of copies that
are narrower inside.

    python benchmarks/kernelbench_sweep.py PATH/KernelBench --out sweep.jsonl [--levels 1 2 3] [--only 1/37 2/64 …]
                                       [--variants honest zeros bf16 tf32] [--devices cuda:0 cuda:1 …] [--share 1/2]
                                       [--config quick] [--memory-gb 48] [--minutes 9] [--retry unsure died …] [--shrink]

PATH is a checkout of https://github.com/ScalingIntelligence/KernelBench; nothing of it is kept. The candidates are made
from each problem's own file, in a temporary folder. One process on each device judges problem after problem, with eager
as the only baseline, and each verdict is a line of --out as soon as it is there. The same command goes on where the last
one was stopped, by --minutes, by Ctrl-C or by a kill; with --retry it judges again what ended with one of these statuses.
--share 2/3 takes the second third of the problems, for several machines: their files are merged by
`python benchmarks/kernelbench_table.py *.jsonl`.

Beside the harness's own statuses a line may say `refused` (nothing of this problem can be judged, and why), `timed_out`
(longer than --each-minutes), `died` (the process that judged), or `harness_error` (a defect of this software).
--memory-gb says how much memory the harness and its workers may use; where that is little each launch moves gigabytes, and
`--config benchmarks/kernelbench/short.yaml` has fewer rounds than quick. With --shrink the problems' sizes are halved until
they can be tried on a CPU. The exit code is 0 when all was judged, 4 when the time was over before.
"""

from __future__ import annotations

import argparse
import re
import signal
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(REPOSITORY), str(REPOSITORY / "benchmarks")]

from judged_lines import LineFile, key_of, read_lines  # noqa: E402
from kernelbench_variants import VARIANTS, KernelBenchTask  # noqa: E402
from sweeping import Sweep, built_ahead  # noqa: E402
from timing_flags import carried_out  # noqa: E402
from warm_referee import Setup, settings_of  # noqa: E402

from harness.device.choice import check_device_name, check_device_names  # noqa: E402
from harness.model.errors import InputError  # noqa: E402
from harness.runs.suite.children import devices_here  # noqa: E402

LEVELS = (1, 2, 3)
EXIT_NOT_ALL = 4


def problem_files(checkout: Path, levels: Sequence[int]) -> dict[str, Path]:
    """The problems below a checkout, as `level/number`, in their order. Raises InputError where there are none."""
    found: dict[str, Path] = {}
    for level in levels:
        folders = [checkout / "KernelBench" / f"level{level}", checkout / f"level{level}"]
        folder = next((each for each in folders if each.is_dir()), None)
        if folder is None:
            said = f"has no folder level{level}"
            raise InputError(said, checkout, hint="Give the path of a checkout of KernelBench, or of its KernelBench/")
        numbered = {int(match[1]): path for path in folder.glob("*.py") if (match := re.match(r"(\d+)_", path.name))}
        found |= {f"{level}/{number}": numbered[number] for number in sorted(numbered)}
    return found


def chosen(files: dict[str, Path], only: Sequence[str], share: tuple[int, int]) -> dict[str, Path]:
    """Those of `files` that are named, or all, and of these every n-th. Raises InputError for a name that is not there."""
    for name in only:
        if name not in files:
            raise InputError(f"--only {name}: there is no such problem", hint="As in --only 1/37: level and number")
    kept = {key: path for key, path in files.items() if not only or key in only}
    number, of = share
    return {key: kept[key] for place, key in enumerate(kept) if place % of == number - 1}


def tasks_left(
    files: dict[str, Path], variants: Sequence[str], earlier: Sequence[dict[str, Any]], retried: Sequence[str],
    memory_gb: float | None, is_shrunk: bool,
) -> list[KernelBenchTask]:
    """What is still to be judged, where `earlier` lines say what has been; what has a status of `retried` has not."""
    done = {key_of(line) for line in earlier if line["status"] not in retried}
    tasks = [
        KernelBenchTask(key, path, tuple(name for name in variants if (key, name, memory_gb, is_shrunk) not in done), is_shrunk)
        for key, path in files.items()
    ]
    return [task for task in tasks if task.candidates]


def share_of(text: str) -> tuple[int, int]:
    """`2/3` as (2, 3)."""
    match = re.fullmatch(r"(\d+)/(\d+)", text)
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise argparse.ArgumentTypeError(f"'{text}' is no share; the second of three is 2/3")
    return int(match[1]), int(match[2])


def add_sweep_flags(parser: argparse.ArgumentParser, *, is_out_required: bool = True) -> None:
    """What every sweep over problems can be told."""
    parser.add_argument(
        "--out", type=Path, required=is_out_required, metavar="FILE", help="JSON lines; what is there is not judged again"
    )
    parser.add_argument("--device", default="auto", metavar="auto|cuda:0|cpu", help="where to judge (default: auto)")
    parser.add_argument("--devices", nargs="+", default=[], metavar="DEVICE", help="several, or all")
    parser.add_argument("--config", default="quick", help="settings by name or path (default: quick)")
    parser.add_argument("--minutes", type=float, default=60.0, help="stop after so long (default: 60)")
    parser.add_argument("--each-minutes", type=float, default=3.0, help="give a problem up after so long (default: 3)")
    parser.add_argument("--retry", nargs="+", default=[], metavar="STATUS", help="judge again what ended with these")


def devices_asked(options: argparse.Namespace) -> Sequence[str]:
    """The devices by name. Raises HarnessError for what is none, or not there."""
    check_device_name(options.device)
    if not options.devices:
        return (options.device,)
    return devices_here(check_device_names(",".join(options.devices), options.device), lambda text: print(text, file=sys.stderr))


def interrupt_by_sigterm() -> None:
    """Have SIGTERM do what Ctrl-C does."""
    def end(*_: object) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, end)


def main() -> None:
    """Judge what is left, and say how many ended how."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path, metavar="PATH/KernelBench")
    add_sweep_flags(parser)
    parser.add_argument("--levels", type=int, nargs="+", choices=LEVELS, default=list(LEVELS))
    parser.add_argument("--only", nargs="+", default=[], metavar="LEVEL/NUMBER", help="these problems alone")
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=list(VARIANTS))
    parser.add_argument("--share", type=share_of, default=(1, 1), metavar="1/2", help="every n-th problem")
    parser.add_argument("--memory-gb", type=float, help="memory that the harness and its workers may use")
    parser.add_argument("--shrink", action="store_true", help="halve the sizes until a CPU can be used")
    options = parser.parse_args()
    setup = Setup(options.config, options.memory_gb)
    settings_of(setup)
    files = chosen(problem_files(options.checkout, options.levels), options.only, options.share)
    devices = devices_asked(options)
    out = LineFile(options.out)
    earlier = read_lines([options.out])
    tasks = tasks_left(files, options.variants, earlier, options.retry, options.memory_gb, options.shrink)
    print(f"{len(tasks)} of {len(files)} problems are left", file=sys.stderr)
    interrupt_by_sigterm()
    with built_ahead(tasks, devices[0], setup):
        is_all = not tasks or Sweep(
            tasks, devices, setup, out, seconds=60 * options.minutes, each_s=60 * options.each_minutes,
        ).run()
    print(counts_text(read_lines([options.out])))
    sys.exit(0 if is_all else EXIT_NOT_ALL)


def counts_text(lines: Sequence[dict[str, Any]]) -> str:
    """How many lines ended how, for each candidate."""
    counts: dict[str, Counter[str]] = {}
    for line in lines:
        counts.setdefault(line["candidate"], Counter())[line["status"]] += 1
    return "\n".join(
        f"{name}: {', '.join(f'{count} {status}' for status, count in counts[name].most_common())}" for name in counts
    )


if __name__ == "__main__":
    carried_out(main)
