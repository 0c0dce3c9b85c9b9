"""The figures of recorded kernels, and what is said of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.cli.counter_page import by_time, kernels_json, render
from harness.tools.counters import metrics
from harness.tools.counters.figures import _STALLS, figures_of, time_us
from harness.tools.counters.measurement import read_log

RECORDED = Path(__file__).parent / "recorded"


def kernels(name: str):
    return read_log((RECORDED / f"{name}.txt").read_text(encoding="utf-8")).kernels


def figures(name: str, place: int = 0):
    return {each.key: each for each in figures_of(kernels(name)[place].values)}


def test_a_tiled_kernel_waits_for_shared_memory_and_not_for_dram():
    found = figures("tiled_shared")
    assert found["dram_percent"].value == 1.26 and "not what limits it" in found["dram_percent"].sentence
    assert found["dram_percent"].sentence.startswith("61 GB/s")
    [first, *_] = [key for key in found if key.startswith("stall_")]
    assert first == "stall_mio_throttle" and found[first].value == pytest.approx(49.2, abs=0.1)
    assert found["bank_conflict_percent"].value == pytest.approx(0.8, abs=0.05)
    assert found["occupancy_percent"].sentence == "of 100 % that is possible"


def test_what_keeps_occupancy_low_is_named():
    assert "registers allow 2 blocks at a time" in figures("triton_ieee")["occupancy_percent"].sentence
    assert "registers and shared memory allow 1 block at a time" in figures("library_kernels", 2)["occupancy_percent"].sentence


def test_tensor_cores_at_their_limit_and_fma_units_in_use_are_told_apart():
    half, single = figures("library_kernels", 2), figures("library_kernels", 0)
    assert "at its limit" in half["tensor_percent"].sentence and "hardly" in half["fma_percent"].sentence
    assert "hardly" in single["tensor_percent"].sentence and "busy" in single["fma_percent"].sentence


def test_a_ready_warp_is_no_stall_and_every_other_reason_has_its_words():
    assert set(metrics.STALLS.values()) - set(_STALLS) == {"not_selected"}
    assert not any("not_selected" in key for key in figures("triton_ieee"))


def test_without_counters_there_are_no_figures():
    assert figures_of({}) == [] and time_us({}) is None
    assert [each.key for each in figures_of({metrics.OCCUPANCY: 50.0})] == ["occupancy_percent"]


def test_the_clock_is_of_the_counted_call():
    [found] = figures_of({metrics.DURATION: 160_000.0, metrics.CYCLES: 249_600.0})
    assert (found.key, found.value, found.unit) == ("sm_mhz", 1560.0, "MHz")


def test_conflicts_that_matter_name_their_side():
    values = {metrics.CONFLICTS_LOAD: 10.0, metrics.CONFLICTS_STORE: 40.0, metrics.WAVEFRONTS_LOAD: 60.0,
              metrics.WAVEFRONTS_STORE: 40.0}
    [found] = figures_of(values)
    assert found.value == 50.0 and "most of them of stores: pad or swizzle" in found.sentence


def test_the_page_shows_the_longest_kernels_first_and_fits_the_terminal():
    page = render("title", kernels("library_kernels"), width=90)
    assert max(map(len, page.splitlines())) <= 90
    assert page.index("xmma_gemm") < page.index("nvjet") < page.index("triu_tril")
    assert "92 % of the call" in page


def test_of_many_kernels_the_short_ones_are_named_alone():
    page = render("title", kernels("library_kernels") + kernels("triton_ieee") + kernels("tiled_shared"), width=100)
    assert "2 shorter ones: nvjet_sm90_hsh_256x128_64x4_1x2_h_bz_coopA_NNT, triu_tril_kernel" in page


def test_json_has_every_kernel_with_its_figures_and_counters():
    [first, *_] = found = kernels_json(kernels("library_kernels"))
    assert [each["name"] for each in found] == [each.name for each in by_time(kernels("library_kernels"))]
    assert first["time_us"] == pytest.approx(2680.0, abs=0.1)
    assert {each["key"] for each in first["figures"]} >= {"dram_percent", "l2_percent", "occupancy_percent"}
    assert first["counters"][metrics.REGISTERS] == 254.0
    assert all(name in metrics.ASKED_FOR for name in first["counters"])
