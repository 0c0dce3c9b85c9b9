"""Writes docs/rules.md: the words stand in rules_words.txt, every constant in them is the code's own.

`python docs/write_rules.py` writes it; tests/test_rules.py fails while it is not current. To change a rule's words, change
them there. To name another constant, give it a name in `constants`, which says where the code has it.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
import textwrap
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY))

import harness.judge  # noqa: E402
from harness.model.device_limits import CPU, CUDA  # noqa: E402
from harness.model.settings import load_settings  # noqa: E402
from harness.reference.accuracy.bounds import fp32_bounds, representation_u  # noqa: E402
from harness.reference.accuracy.bounds_without_terms import Spread, bounds_without_terms  # noqa: E402
from harness.sandbox.limits import default_limits  # noqa: E402

PATH = REPOSITORY / "docs" / "rules.md"

# Where the code has each constant that it names: below `harness`, and the attribute.
_NAMED = {
    "row_elements": "reference.accuracy.bounds.ROW_ELEMENTS",
    "chain": "reference.accuracy.bounds_without_terms.LONGEST_CHAIN",
    "chain_product": "reference.accuracy.bounds_without_terms.LONGEST_PRODUCT",
    "far_u": "reference.accuracy.bounds_without_terms.FAR_U",
    "noise_rms_u": "reference.accuracy.bounds_without_terms.NOISE_RMS_U",
    "split_u": "reference.accuracy.classes.SPLIT_CEILING_U",
    "mixed_tf32_u": "reference.accuracy.classes.MIXED_TF32_FLOOR_U",
    "binades": "reference.inputs.families.SPREAD_BINADES",
    "edge_times": "reference.ties_and_thresholds._MARGIN",
    "small_row": "reference.spreads._SMALLEST",
    "slow_truth_s": "reference.reference_model._SLOW_TRUTH_S",
    "longer": "reference.reference_model._LONGER",
    "near_eager": "reference.error_figures._NEAR_EAGER",
    "float64_least": "reference.reference_model._LEAST_ONE_OF",
    "float64_most": "reference.reference_model._MOST_ONE_OF",
    "same_draws": "reference.reference_checks._SAME_DRAWS",
    "same_u": "reference.reference_checks._SAME_U",
    "random_u": "reference.reference_checks._RANDOM_U",
    "state_share": "judge.loader._OFF_SHARE",
    "late_state_share": "judge.loader._LATE_OFF_SHARE",
    "confidence": "model.settings.Settings.confidence",
    "trim": "timing.stats.trimmed_mean.TRIM",
    "margins": "timing.stats.words.MARGINS",
    "gpu_cache_times": "protocol.gpu_cache_flush.L2_TIMES",
    "cpu_cache_bytes": "protocol.cpu_cache_flush._CPU_MOST_BYTES",
    "segment_ms": "model.settings.Settings.segment_ms",
    "segment_launches": "timing.segment_length.MOST_LAUNCHES",
    "lead_in_one_of": "timing.segments._LEAD_IN_ONE_OF",
    "gate_s": "launch.conversation.GATE_PATIENCE_S",
    "stream_takes": "timing.doubts.STREAM_TAKES",
    "by_chance": "timing.doubts._BY_CHANCE",
    "ungated_budgets": "timing.stopping_rule._UNGATED_BUDGETS",
    "longer_each_us": "judge.kernel_trace._EACH_US",
    "longer_each_ungated_us": "judge.kernel_trace._EACH_UNGATED_US",
    "fewest_rounds": "timing.stopping_rule._FEWEST_ROUNDS",
    "short_us": "timing.stopping_rule._SHORT_US",
    "short_share": "timing.stopping_rule._SHORT_SHARE",
    "far_slower": "timing.segment_length.FAR_SLOWER",
    "slower": "timing.segment_length.SLOWER",
    "brief_rounds": "timing.rounds._BRIEF_ROUNDS",
    "row_times": "judge.entry_judge._TIMES_CONTROLS_ROW",
    "wait_s": "device.lock.LONGEST_WAIT_S",
    "apart_share": "timing.stats.two_baselines.APART_SHARE",
    "apart_us": "timing.stats.two_baselines.APART_LEAST_US",
    "kernel_us": "timing.stats.process_spread._EACH_KERNEL_US",
    "pooled_us": "timing.stats.process_spread._SHORT_BELOW_US",
    "floor_share": "audit.clock_audit._FLOOR_SHARE",
    "less_share": "timing.control.LESS_SHARE",
    "flush_share": "audit.clock_audit._FLUSH_SHARE",
    "ungated_us": "audit.clock_audit._UNGATED_BLAMED_US",
    "probe_tries": "timing.probes.result._TRIES",
    "probe_often": "timing.probes.result._OFTEN",
    "probe_some": "timing.probes.result._SHARE_OF_SOME",
    "probe_chance": "timing.probes.schedule._CHANCE_OF",
    "late_wrong": "timing.probes.kinds._WRONG_EACH_TIME",
    "late_pieces": "reference.inputs.late_inputs.MOST_PIECES",
    "late_bytes": "reference.inputs.late_inputs.PIECE_BYTES",
    "snapshot_parts": "device.output_snapshots._PARTS",
    "snapshot_bytes": "device.output_snapshots._PIECE_BYTES",
    "long_table": "model.files.carried_code._LONG_TABLE",
    "codebook": "model.files.carried_code._MOST_BYTES_OF_A_CODEBOOK",
    "copy_us": "attribution.recording._COPY_US",
    "fill_us": "attribution.recording._FILL_US",
    "copy_to_fill": "attribution.recording._COPY_TO_FILL",
    "by_judge_us": "judge.kernel_trace._BY_JUDGE_US",
    "by_judge_share": "judge.kernel_trace._BY_JUDGE_SHARE",
    "fillings": "attribution.code_regions._FILLINGS",
    "met_least": "device.unmet_code._LEAST_SHARE",
    "fast_share": "timing.stability._FAST_SHARE",
    "fewest_fast": "timing.stability._FEWEST_FAST",
    "of_three": "judge.entry_judge._OF_THREE_ATTEMPTS",
    "own_share": "attribution.kernel_ownership.OWN_SHARE",
    "library_share": "attribution.kernel_ownership.LIBRARY_SHARE",
    "traced_idle_us": "judge.kernel_trace._IDLE_US",
    "traced_idle_each_us": "judge.kernel_trace._IDLE_EACH_US",
    "traced_nobodys": "judge.kernel_trace._NOBODYS_SHARE",
    "glue_share": "attribution.code_regions._GLUE_SHARE",
    "glue_us": "attribution.code_regions._GLUE_US",
    "traced_tries": "judge.kernel_trace._TRIES",
    "usable": "reference.memory_plan._USABLE_SHARE",
    "wide": "reference.memory_plan._WIDE_SHARE",
    "frame_bytes": "protocol.frames.MAX_FRAME_BYTES",
    "scratch_bytes": "sandbox.mounts.SCRATCH_BYTES",
    "source_bytes": "model.candidate._MOST_BYTES",
    "read_files": "build.outcome._MOST_FILES",
    "read_bytes": "build.outcome._MOST_FILE_BYTES",
    "extensions": "build.outcome.MOST_EXTENSIONS",
    "extension_bytes": "build.outcome._MOST_EXTENSION_BYTES",
    "built_anew": "judge.device_run._MOST_BUILT_ANEW",
    "interpreted": "judge.references.MOST_ELEMENTS",
    "sanitized_size": "judge.sanitize._LEAST_SIZE",
}
# What `harness.model.device_limits` has for each kind of device, and there for a probe of each clock.
_OF_DEVICES = {
    "in_worker_us": "in_worker_below_us",
    "clock_share": "wall_share",
    "clock_us": "wall_us",
    "streams_us": "streams_us",
    "long_call_us": "long_call_us",
    "unvouched_share": "unvouched_share",
    "unvouched_us": "unvouched_us",
    "certain": "certain_times",
    "tail_share": "tail_share",
    "tail_us": "tail_us",
    "tail_blamed_us": "tail_blamed_us",
    "slowed_share": "slowed_share",
    "slowed_us": "slowed_us",
    "slowed_blamed_us": "slowed_blamed_us",
    "known_to": "known_to",
    "traced_least": "traced_least",
    "traced_most": "traced_most",
    "traced_slack_us": "traced_slack_us",
}
_OF_PROBES = {
    "probe_share": "share",
    "probe_us": "least_us",
    "probe_blamed_us": "blamed_us",
}

PAGE = (REPOSITORY / "docs" / "rules_words.txt").read_text(encoding="utf-8")


def constants() -> dict[str, Any]:
    """Return every value that the page names, by the name it has there."""
    values = {name: _attribute(path) for name, path in _NAMED.items()}
    for name, of_limits in _OF_DEVICES.items():
        values[name] = {"cuda": getattr(CUDA, of_limits), "cpu": getattr(CPU, of_limits)}
    for name, of_probe in _OF_PROBES.items():
        values[name] = {
            probe.clock: getattr(probe, of_probe) for probe in (CUDA.probe, CUDA.ungated_probe, CPU.probe)
        }
    limits = default_limits()
    plain, sums = fp32_bounds(0, 0, 0, True), fp32_bounds(0, 0, 1e8, False)
    free = [bounds_without_terms(Spread(each, each), Spread(0, 0), None, 1000) for each in (0, 1)]
    return values | {
        "theory": inspect.cleandoc(harness.judge.__doc__ or "").partition("Theory of operation. ")[2],
        "offset": plain.max_u, "rms_offset": plain.rms_u, "factor": fp32_bounds(1, 1, 0, True).max_u - plain.max_u,
        "root": sums.max_u / 1e4, "rms_plus": fp32_bounds(0, 0, 0, False).rms_u,
        "rms_root": (sums.rms_u - fp32_bounds(0, 0, 0, False).rms_u) / 1e4,
        "free_offset": free[0].max_u, "free_factor": free[1].max_u - free[0].max_u, "free_rms": free[0].rms_u,
        "narrow_tf32": representation_u("tf32"), "narrow_bf16": representation_u("bf16"),
        "binades_up": str(values["binades"]).translate(_RAISED), "binades": str(values["binades"]).translate(_RAISED),
        "small_row": f"{values['small_row']:g}", "alone": _attribute("judge.check._ALONE"),
        "slow_truth_ms": 1e3 * values["slow_truth_s"],
        "cpu_cache_mib": values["cpu_cache_bytes"] / 2**20, "error": 1 - values["confidence"],
        "configs": "\n".join(map(_config, ("quick", "default", "rigorous"))), "margins": _margins(values["margins"]),
        "in_worker_ms": values["in_worker_us"]["cuda"] / 1e3, "wait_h": values["wait_s"] / 3600,
        "clock_cpu_ms": values["clock_us"]["cpu"] / 1e3, "tail_cpu_ms": values["tail_us"]["cpu"] / 1e3,
        "tail_blamed_ms": values["tail_blamed_us"]["cuda"] / 1e3,
        "tail_blamed_cpu_ms": values["tail_blamed_us"]["cpu"] / 1e3, "probe_cpu_ms": values["probe_us"]["cpu"] / 1e3,
        "probe_blamed_cpu_ms": values["probe_blamed_us"]["cpu"] / 1e3, "ungated_ms": values["ungated_us"] / 1e3,
        "traced_apart": values["traced_most"]["cuda"] - 1, "watched_ms": values["traced_slack_us"]["cpu"] / 1e3,
        "slowed_blamed_cpu_ms": values["slowed_blamed_us"]["cpu"] / 1e3,
        "snapshot_kib": values["snapshot_bytes"] / 2**10,
        "frame_mib": values["frame_bytes"] / 2**20, "scratch_gib": values["scratch_bytes"] / 2**30,
        "source_mib": values["source_bytes"] / 2**20, "read_mib": values["read_bytes"] / 2**20,
        "extension_gib": values["extension_bytes"] / 2**30, "file_gib": (limits.file_bytes or 0) / 2**30,
        "processes": limits.processes, "quick_segment_ms": load_settings("quick").segment_ms,
    }


_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def _attribute(path: str) -> Any:
    """Return what `path` names below `harness`: a module's attribute, or an attribute of a class in it."""
    parts = path.split(".")
    for length in range(len(parts) - 1, 0, -1):
        try:
            found = importlib.import_module(".".join(["harness", *parts[:length]]))
        except ModuleNotFoundError:
            continue
        for name in parts[length:]:
            found = getattr(found, name)
        return found
    raise AttributeError(f"harness has no {path}")


def _config(name: str) -> str:
    settings = load_settings(name)
    checks = ", ".join(map(str, settings.interim_checks))
    return (
        f"| `{name}` | {settings.half_width * 100:g} % | {settings.budget_s:g} s | {checks} | {settings.workers} | "
        f"{settings.row_budget_s:g} s |"
    )


def _margins(margins: tuple[tuple[float, float], ...]) -> str:
    (long_us, least), (middle_us, middle), (_, most) = margins
    return f"{least * 100:g} % from {long_us / 1e3:g} ms, {middle * 100:g} % from {middle_us:g} µs, and {most * 100:g} % below"


def text() -> str:
    """Return the whole page."""
    page = re.sub(r"(?<=\d)%", " %", PAGE.format(**constants()))
    return "\n\n".join(_wrapped(block) for block in page.rstrip("\n").split("\n\n")) + "\n"


def _wrapped(block: str) -> str:
    """Return a paragraph or a list in lines of at most 120 characters; a table and a heading as they are."""
    if block.startswith(("|", "#")):
        return block
    items = re.split(r"\n(?=- |\d+\. )", block)
    return "\n".join(
        textwrap.fill(
            " ".join(item.split()), 120, break_long_words=False, break_on_hyphens=False,
            subsequent_indent=re.match(r"(- |\d+\. )?", item).end() * " ",
        )
        for item in items
    )


if __name__ == "__main__":
    PATH.write_text(text(), encoding="utf-8")
