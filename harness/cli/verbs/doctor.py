"""`run.py doctor`: what this machine has, what is missing, and how to get it."""

from __future__ import annotations

import argparse
import functools
import json
import sys
import textwrap
from collections.abc import Sequence

from harness import __version__
from harness.build.toolchain import find_toolchain
from harness.cli.diagnosis import gpu, host
from harness.cli.diagnosis.host import MISSING, NOTE, OK, Finding
from harness.model.paths import PROGRAM
from harness.report import terminal

EXIT_NOTHING_RUNS = 4
_STYLES = {OK: "green", MISSING: "red", NOTE: "yellow"}


def run(options: argparse.Namespace) -> int:
    """Print the findings. Returns 0, or 4 when nothing could run here because there is no PyTorch or no Linux."""
    findings = gather()
    device = runs_on(findings)
    if options.json:
        print(json.dumps({
            "harness_version": __version__, "runs_on": device, "findings": [each.to_json() for each in findings],
        }))
    else:
        print(report_text(findings, **terminal.fitting(sys.stdout)))
    return 0 if device else EXIT_NOTHING_RUNS


def gather() -> list[Finding]:
    """Every finding, in the order in which a run would come to need the things."""
    tried = gpu.examine()
    on_gpu = any(each.name.startswith("cuda:") for each in tried)
    toolchain = find_toolchain(None)
    findings = [
        host.python_finding(), *tried, host.bytecode_finding(), host.nvcc_finding(toolchain, on_gpu=on_gpu),
        host.cxx_finding(toolchain), host.ninja_finding(), host.triton_finding(on_gpu=on_gpu),
        host.cuobjdump_finding(on_gpu=on_gpu),
        host.sanitizer_finding(on_gpu=on_gpu), host.profiler_finding(on_gpu=on_gpu),
        host.core_watch_finding(on_gpu=on_gpu), host.sandbox_finding(), host.cache_finding(), host.disk_finding(),
    ]
    return [each for each in findings if each is not None]


def runs_on(findings: Sequence[Finding]) -> str | None:
    """Where a run without --device would work: "cuda", "cpu", or None when it could not run at all."""
    state = {each.name: each.state for each in findings}
    if state.get("PyTorch") != OK or sys.platform != "linux":
        return None
    of_gpus = [each for each in findings if each.name.startswith("cuda:0")]
    if not of_gpus:
        return "cpu"
    # `auto` takes a GPU that is there; one that fails its trial has to be got around with --device cpu.
    return "cuda" if all(each.state != MISSING for each in of_gpus) and "GPU trial" not in state else "cpu"


def report_text(findings: Sequence[Finding], width: int, color: bool) -> str:
    """The findings as aligned lines, each hint below its finding, and what to type next."""
    label_width = max(len(each.name) for each in findings)
    margin = " " * (len("missing") + label_width + 4)
    room = max(40, width - len(margin))
    wrapped = functools.partial(textwrap.wrap, width=room, break_long_words=False, break_on_hyphens=False)
    lines = [f"kernel-referee {__version__}"]
    for each in findings:
        first, *rest = wrapped(each.text) or [""]
        state = terminal.paint(f"{each.state:<7}", _STYLES[each.state], color)
        lines.append(f"{state}  {each.name:<{label_width}}  {first}")
        lines += [margin + line for line in (*rest, *(wrapped(f"→ {each.hint}") if each.hint else ()))]
    return "\n".join([*lines, "", _next_line(findings)])


def _next_line(findings: Sequence[Finding]) -> str:
    device = runs_on(findings)
    if device is None:
        return "Nothing can run here until what is missing is there."
    command = f"{PROGRAM} problems/tril_matmul.yaml"
    if device == "cpu" and any(each.name.startswith("cuda:") for each in findings):
        return f"The GPU cannot be used as it is. Next: {command} --device cpu"
    return f"Problems run on the {'GPU' if device == 'cuda' else 'CPU'} here. Next: {command}"
