"""What the two timing benchmarks can be asked: their flags, what these come to on the device at hand, and the file of
JSON that is rewritten with each figure.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY))

from harness.cli.flags.verb_flags import add_devices  # noqa: E402
from harness.device.choice import check_device_name, check_device_names, device_kind, devices_of  # noqa: E402
from harness.model.errors import HarnessError, InputError  # noqa: E402
from harness.model.settings import load_settings  # noqa: E402


@dataclass(frozen=True)
class Usual:
    """What is done without flags, on a GPU and on a CPU. `processes_are` says what --processes counts."""

    processes_are: str
    processes: tuple[int, int]
    minutes: tuple[float, float]
    sizes: tuple[tuple[int, ...], tuple[int, ...]]


@dataclass(frozen=True)
class Asked:
    """What was asked for, as it came out on this machine. `devices` are as this process counts them."""

    utc: str
    command: str
    device: str
    torch: str
    devices: tuple[str, ...]
    is_cpu: bool
    config: str
    processes: int
    minutes: float
    sizes: tuple[int, ...]
    json: Path | None

    def for_process(self, device: str) -> dict[str, Any]:
        """What a process of timing_peers.py is told."""
        return {"sizes": list(self.sizes), "device": device, "config": self.config, "is_cpu": self.is_cpu}

    def write(self, figures: Sequence[dict[str, Any]], **more: Any) -> None:
        """Put all `figures` into the file that --json names, if it does; an end in the middle leaves the one before."""
        if self.json is None:
            return
        head = {name: value for name, value in asdict(self).items() if name != "json"}
        lines = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in {**head, **more}.items()]
        lines.append(f'"harness_hash": {json.dumps(software())}')
        told = ",\n ".join(map(json.dumps, figures))  # a line for each
        part = self.json.with_name(f".{self.json.name}.part")
        part.write_text("{" + ",\n".join([*lines, f'"figures": [\n {told}\n]']) + "}\n", encoding="utf-8")
        os.replace(part, self.json)


def software() -> str:
    """What says which state of this software measured."""
    from harness.results.assembly import harness_hash

    return harness_hash()


def flags(description: str, usual: Usual, *, several_devices: bool = False) -> argparse.ArgumentParser:
    """The parser with what both take; a benchmark adds its own."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="auto", metavar="auto|cuda:0|cpu", help="where to run (default: auto)")
    gpu, cpu = usual.processes
    parser.add_argument("--processes", type=int, help=f"{usual.processes_are} (default: {gpu}; {cpu} on a CPU)")
    gpu, cpu = usual.minutes
    told = f"begin nothing after so long (default: {gpu:g}; {cpu:g} on a CPU)"
    parser.add_argument("--minutes", type=float, help=told)
    parser.add_argument("--sizes", type=int, nargs="+", metavar="M", help="sizes of the product")
    parser.add_argument("--config", help="how long ours measures (default: default; quick on a CPU)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too, as they come")
    parser.set_defaults(devices=None)
    if several_devices:
        add_devices(parser)
    return parser


def asked_by(options: argparse.Namespace, usual: Usual) -> Asked:
    """What `options` come to here; imports PyTorch. Raises HarnessError for what cannot be done."""
    check_device_name(options.device)
    names = check_device_names(options.devices, options.device) if options.devices else ()
    load_settings(options.config or "default")
    for flag in ("processes", "minutes", "controls", "each", *(("sizes",) if options.sizes else ())):
        value = getattr(options, flag, None)
        if value is not None and min(value if isinstance(value, list) else [value]) <= 0:
            raise InputError(f"--{flag} cannot be {value if flag != 'sizes' else min(value)}", hint="Give more than 0")
    if options.json and not options.json.absolute().parent.is_dir():
        raise InputError("there is no folder for --json", options.json.parent)
    import torch

    devices = devices_of(names, lambda text: print(text, file=sys.stderr)) if names else (options.device,)
    kinds = {device_kind(each) for each in devices}
    if len(kinds) > 1:
        raise InputError(f"--devices {options.devices}: GPUs and the CPU make no one table", hint="Leave the CPU out")
    is_cpu = kinds == {"cpu"}
    known = ["cpu" if is_cpu else f"cuda:{_index(each)}" for each in devices]
    devices = devices_of(known, lambda text: None)  # raises for one that is not there
    return Asked(
        utc=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        command=_command(sys.argv),
        device="this CPU" if is_cpu else torch.cuda.get_device_name(_index(devices[0])), torch=torch.__version__,
        devices=tuple(devices), is_cpu=is_cpu, config=options.config or ("quick" if is_cpu else "default"),
        processes=options.processes or usual.processes[is_cpu], minutes=options.minutes or usual.minutes[is_cpu],
        sizes=tuple(options.sizes or usual.sizes[is_cpu]), json=options.json,
    )


def _command(words: Sequence[str]) -> str:
    """What was typed, without where the figures went."""
    files = ("--json", "--add")
    kept = [word for at, word in enumerate(words) if not word.startswith(files) and words[at - 1] not in files]
    return shlex.join(["python", f"benchmarks/{Path(kept[0]).name}", *kept[1:]])


def _index(device: str) -> int:
    return int(device.partition(":")[2] or 0)


def carried_out(main: Callable[[], None]) -> None:
    """Call `main`; an error of ours is its sentence on stderr and its exit code."""
    try:
        main()
    except HarnessError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        print("interrupted before anything was measured", file=sys.stderr)
        sys.exit(130)
