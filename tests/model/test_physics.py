"""Speed of light, floor, rates, and the table of peaks they rest on."""

from __future__ import annotations

import math

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.model.errors import InputError
from harness.model.peaks import GPUS_YAML, load_peaks
from harness.model.physics import SpeedLimits, Peaks, best_rate_tflops, speed_limits, percent_of_sol, rates

H200 = Peaks(67, 989.5, 494.5, 4800, "datasheet")
V100 = Peaks(15.7, 125, None, 900, "datasheet")
WORK = st.floats(0, 1e16)
TRIL_FLOPS, TRIL_BYTES = 4096 * 4097 * 4098 / 3, 4 * (4096 * 4097 + 4096**2)


def test_tril_on_an_h200_is_bound_by_three_16_bit_products():
    limit = speed_limits(TRIL_FLOPS, TRIL_BYTES, 4280, H200, "fp32")
    assert limit.bound_by == "compute"
    assert limit.sol_us == pytest.approx(TRIL_FLOPS / (989.5e6 / 3))  # 69.5 µs; facts: 76 with 128² tiles
    assert limit.floor_us == pytest.approx(TRIL_BYTES / 4.28e6)  # 31 µs of memory beats 23 µs of tensor cores


def test_a_card_whose_tensor_cores_are_slow_is_bound_by_its_fp32_units():
    assert best_rate_tflops(Peaks(30, 60, None, 300, "x"), "fp32") == 30
    assert best_rate_tflops(V100, "fp32") == pytest.approx(125 / 3)


@pytest.mark.parametrize("precision_class, expected", [("tf32", 494.5), ("bf16", 989.5), ("fp16", 989.5)])
def test_a_wider_class_is_judged_by_its_own_tensor_rate(precision_class, expected):
    assert best_rate_tflops(H200, precision_class) == expected


def test_tf32_on_a_card_without_it_falls_back_to_fp32_units():
    assert best_rate_tflops(V100, "tf32") == 15.7


def test_an_elementwise_problem_is_bound_by_memory():
    limit = speed_limits(None, 4.28e9, 4280, None, "fp32")
    assert limit == SpeedLimits(pytest.approx(1000), "memory", pytest.approx(1000))


def test_the_floor_uses_16_bit_accumulation_where_that_is_faster():
    geforce = Peaks(82.6, 165.2, 82.6, 1008, "x", tensor16_acc16_tflops=330.3)
    limit = speed_limits(330.3e6, 0, None, geforce, "fp16")
    assert (limit.sol_us, limit.floor_us) == (pytest.approx(330.3 / 165.2), pytest.approx(1))


def test_without_a_measured_bandwidth_the_datasheets_is_used():
    assert speed_limits(None, 4.8e9, None, H200, "fp32").sol_us == pytest.approx(1000)


@pytest.mark.parametrize("flops, nbytes, bandwidth, peaks", [
    (1e9, 1e6, 4280, None),  # a matrix product on a card nobody knows
    (None, 1e6, None, None),
    (None, None, 4280, H200),
    (0, 0, 4280, H200),
])
def test_what_is_not_known_gives_no_limit_rather_than_half_of_one(flops, nbytes, bandwidth, peaks):
    assert speed_limits(flops, nbytes, bandwidth, peaks, "fp32") is None


@settings(deadline=None, derandomize=True)
@given(WORK, WORK, st.sampled_from(["fp32", "tf32", "bf16", "fp16"]), st.sampled_from([H200, V100]))
def test_the_floor_is_never_above_the_speed_of_light(flops, nbytes, precision_class, peaks):
    limit = speed_limits(flops, nbytes, 1000, peaks, precision_class)
    assert limit is None or 0 <= limit.floor_us <= limit.sol_us


@pytest.mark.parametrize("work", [-1, math.nan, math.inf])
def test_impossible_work_is_refused(work):
    with pytest.raises(ValueError):
        speed_limits(work, 1, 1, H200, "fp32")


def test_an_unknown_class_is_refused():
    with pytest.raises(ValueError, match="fp32, tf32"):
        best_rate_tflops(H200, "fp8")


def test_rates_are_useful_work_over_time():
    assert rates(137.4e9, 235e6, 2640) == (pytest.approx(52.05, abs=0.01), pytest.approx(89.0, abs=0.1))
    assert rates(None, None, 5) == (None, None)
    with pytest.raises(ValueError):
        rates(1, 1, 0)


def test_the_percentage_of_the_speed_of_light_is_empty_without_one():
    assert percent_of_sol(SpeedLimits(50, "memory", 40), 200) == 25
    assert percent_of_sol(None, 200) is None


@pytest.mark.parametrize("device, fp32, bandwidth", [
    ("NVIDIA H200", 67, 4800), ("NVIDIA H200 NVL", 60, 4800), ("NVIDIA H100 80GB HBM3", 67, 3350),
    ("NVIDIA H100 PCIe", 51, 2000), ("NVIDIA H100 NVL", 60, 3900), ("NVIDIA GH200 480GB", 67, 4000),
    ("NVIDIA A100-SXM4-40GB", 19.5, 1555), ("NVIDIA A100-SXM4-80GB", 19.5, 2039),
    ("NVIDIA A100 80GB PCIe", 19.5, 1935), ("NVIDIA A10", 31.2, 600), ("NVIDIA L4", 30.3, 300),
    ("NVIDIA L40S", 91.6, 864), ("NVIDIA B200", 80, 8000), ("Tesla T4", 8.1, 320),
    ("Tesla V100-SXM2-16GB", 15.7, 900), ("NVIDIA GeForce RTX 4090", 82.6, 1008),
    ("NVIDIA RTX 6000 Ada Generation", 91.1, 960), ("nvidia geforce rtx 3090", 35.6, 936),
])
def test_the_names_drivers_give_find_their_own_card(device, fp32, bandwidth):
    peaks = load_peaks(device)
    assert (peaks.fp32_tflops, peaks.bandwidth_gbytes_s) == (fp32, bandwidth)


@pytest.mark.parametrize("device", [
    "NVIDIA H20", "NVIDIA A100X", "NVIDIA A10G", "NVIDIA GeForce RTX 4090 Laptop GPU",
    "NVIDIA GeForce RTX 4090 D", "NVIDIA GeForce RTX 3090 Ti", "NVIDIA A100-SXM4-40GB MIG 1g.5gb",
    "NVIDIA GB200", "AMD EPYC 9654", "",
])
def test_a_card_that_only_resembles_a_known_one_has_no_peaks(device):
    assert load_peaks(device) is None


def test_every_entry_names_its_source_and_is_consistent_in_itself():
    for name, entry in yaml.safe_load(GPUS_YAML.read_text())["gpus"].items():
        peaks = load_peaks(f"NVIDIA {entry['match'][0]}")
        assert peaks is not None and peaks.source == entry["source"], name
        assert peaks.tensor16_tflops > peaks.fp32_tflops, name
        if peaks.tensor_tf32_tflops:  # sixteen-bit inputs run twice as fast as TF32 on every tensor core
            assert peaks.tensor16_tflops == pytest.approx(2 * peaks.tensor_tf32_tflops, rel=0.03), name


GOOD = "gpus:\n  X:\n    match: [X1]\n    fp32_tflops: 1\n    bandwidth_gbytes_s: 1\n    source: paper\n"


@pytest.mark.parametrize("text, where, what", [
    (GOOD.replace("fp32_tflops: 1", "fp32_tflops: fast"), ":2:", "positive number"),
    (GOOD.replace("fp32_tflops: 1", "fp32_tflops:"), ":2:", "cannot be empty"),
    (GOOD.replace("    source: paper\n", ""), ":2:", "source missing"),
    (GOOD.replace("fp32_tflops", "fp32_tflop"), ":2:", "unknown fp32_tflop"),
    (GOOD.replace("[X1]", "X1"), ":2:", "lists of texts"),
    (GOOD.replace("[X1]", "[X1"), ":3:", "the '[' that opens here is not closed"),
    ("", ": ", "is empty. Copy"),
    ("never: []\n", ":1:", "gpus:"),
    ("gpus:\n  X: 3\n", ":2:", "mapping"),
    (GOOD + "never: MIG\n", ":7:", "never"),
])
def test_a_mistake_in_the_table_is_named_with_its_line(tmp_path, text, where, what):
    path = tmp_path / "gpus.yaml"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        load_peaks("X1", path)
    assert where in str(caught.value) and what in str(caught.value)


def test_a_missing_table_is_an_input_error(tmp_path):
    with pytest.raises(InputError, match=r"none\.yaml: no such file"):
        load_peaks("X1", tmp_path / "none.yaml")


def test_the_users_own_entry_is_found(tmp_path):
    path = tmp_path / "gpus.yaml"
    path.write_text(GOOD)
    assert load_peaks("NVIDIA X1 80GB", path) == Peaks(1, None, None, 1, "paper")
