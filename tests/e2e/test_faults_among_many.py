"""A run in which every other candidate breaks something: it finishes, the rest come out right, and nothing is left."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

from harness.selftest.corpus import read_case

CORPUS = Path(__file__).resolve().parents[2] / "tests" / "adversarial"
GPU_MEMORY_BYTES = 64 << 20

# Honest and cheap, so that what the run costs is what its faults cost.
HONEST = ("torch_masked", "reuses_buffer", "caches_workspace", "autograd_function", "returns_part_of_larger")
FAULTS = (
    "machine/segfault_in_forward", "machine/exits_at_import", "machine/hang_leaves_child", "form/returns_none",
    "machine/garbles_the_channel", "machine/aborts_in_forward",
)
MORE_FAULTS = (
    "machine/segfault_at_import", "machine/exits_in_forward", "machine/exits_from_thread", "machine/raises_system_exit",
    "machine/forges_frames", "machine/closes_every_descriptor", "machine/hang_ignores_sigterm",
    "machine/asks_for_a_petabyte", "form/wrong_shape", "form/not_a_number", "form/raises_in_init",
)
GPU_FAULTS = ("machine/device_assert_cuda", "machine/hang_side_stream_cuda", "machine/exhausts_gpu_memory_cuda")

pytestmark = [pytest.mark.timeout(1800), pytest.mark.slow, pytest.mark.alone]


def mixed(bench, honest_count: int, faults: tuple[str, ...]) -> tuple[set[str], dict[str, tuple[str, ...]]]:
    """Fill the bench's folder so that honest and faulty take turns; returns the honest names and the faults' verdicts.

    Candidates are judged in the order of their names, so each gets a number in front.
    """
    folder = bench.candidates([])
    honest, expected = set(), {}
    step = (honest_count + len(faults)) / len(faults)
    places = {int(number * step): place for number, place in enumerate(faults)}
    for number in range(honest_count + len(faults)):
        place = places.get(number)
        if place is None:
            source = CORPUS / "honest" / f"{HONEST[number % len(HONEST)]}.py"
            honest.add(f"c{number:02}_{source.stem}")
        else:
            source = CORPUS / f"{place}.py"
            expected[f"c{number:02}_{source.stem}"] = read_case(source).expected
        shutil.copy(source, folder / f"c{number:02}_{source.name}")
    return honest, expected


def check(bench, words, honest: set[str], expected: dict[str, tuple[str, ...]], timeout_s: float = 900) -> None:
    end = bench.end(bench.judge(*words), timeout_s)
    assert end.code == 0, end.err[-2000:]
    assert "Traceback" not in end.out + end.err
    rows = bench.judged_again(end, honest if "cpu" in words else (), *words)
    assert set(rows) == {"eager"} | honest | set(expected)
    for name in honest:
        row = rows[name]
        assert row["status"] == "ok", f"{name}: {row['reason']}"
        assert float(row["speedup_lo"]) <= float(row["speedup"]) <= float(row["speedup_hi"])
    for name, pairs in expected.items():
        assert f"{rows[name]['status']}/{rows[name]['reason_code']}" in pairs, f"{name}: {rows[name]['reason']}"
    deadline = time.monotonic() + 5
    while bench.left_behind() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert bench.left_behind() == []


def test_twelve_candidates_of_which_six_are_faults_end_with_six_right_rows_and_nothing_left(new_bench):
    bench = new_bench("twelve")
    bench.settings(load_timeout_s=8)
    honest, expected = mixed(bench, 6, FAULTS)
    assert (len(honest), len(expected)) == (6, 6)
    # At this size a call is longer than most of what disturbs a shared CPU, and few honest ones are doubted for it.
    check(bench, (bench.folder / "tril_middle.yaml", bench.folder / "candidates", "cpu"), honest, expected)


@pytest.mark.gpu
def test_fifty_candidates_of_which_twenty_are_faults_end_with_thirty_right_rows_and_nothing_left(
    new_bench, gpu_bytes_in_use
):
    bench = new_bench("fifty")
    honest, expected = mixed(bench, 30, FAULTS + MORE_FAULTS + GPU_FAULTS)
    assert (len(honest), len(expected)) == (30, 20)
    before = gpu_bytes_in_use()
    check(bench, (bench.folder / "tril_small.yaml", bench.folder / "candidates", "cuda:0"), honest, expected, 1700)
    assert gpu_bytes_in_use(at_most=before + GPU_MEMORY_BYTES) <= before + GPU_MEMORY_BYTES
