"""Forward and backward as one timed call, through the real command line: gradients are held to what forward is."""

from __future__ import annotations

import pytest

from harness.reference.accuracy.bounds import representation_u

PROBLEM = """
title: Lower triangular product and its gradients, small
reference: tril_small.py
mode: forward_backward
sizes: {timed: {M: 512}, check: [{M: 1}, {M: 31}], cpu: {M: 512}}
accuracy: {class: fp32, scale: abs_inputs, terms: M, contracted: [1, 0]}
baselines: [eager]
kinds: [custom, library]
"""
CANDIDATE = """
import torch


def rounded(x):
    return x.bfloat16().float()


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, A, B):
        ctx.save_for_backward(A, B)
        return torch.tril(A @ B)

    @staticmethod
    def backward(ctx, G):
        A, B = ctx.saved_tensors
        G = torch.tril(G)
        return {gradients}


class ModelNew(torch.nn.Module):
    def forward(self, A, B):
        return {result}
"""
RIGHT = "G @ B.t(), A.t() @ G"
CALL = "Product.apply(A, B)"
CANDIDATES = {
    "right": (RIGHT, CALL, "ok/"),
    "triangle_only": ("torch.tril(G @ B.t()), A.t() @ G", CALL, "incorrect/wrong_values"),
    "gradients_swapped": ("A.t() @ G, G @ B.t()", CALL, "incorrect/wrong_values"),
    "one_gradient_in_bf16": ("G @ B.t(), rounded(A).t() @ rounded(G)", CALL, "imprecise/reduced_precision"),
    "hands_back_its_vector": ("G, A.t() @ G", CALL, "incorrect/wrong_values"),
    "without_a_graph": (RIGHT, "torch.tril(A.detach() @ B.detach())", "incorrect/raised"),
    "one_gradient_is_none": ("G @ B.t(), None", CALL, "incorrect/wrong_values"),
}
DEVICES = ["cpu", pytest.param("cuda:0", marks=pytest.mark.gpu)]

pytestmark = [pytest.mark.timeout(900), pytest.mark.slow, pytest.mark.alone]


@pytest.fixture(scope="module")
def judged(new_bench):
    """`judged(device)`: (how the run ended, its rows)."""
    made = {}

    def run(device: str):
        if device not in made:
            bench = new_bench(f"gradients-{device[:4]}")
            problem = bench.folder / "gradients.yaml"
            problem.write_text(PROBLEM, encoding="utf-8")
            folder = bench.candidates([])
            for name, (gradients, result, _) in CANDIDATES.items():
                source = CANDIDATE.format(gradients=gradients, result=result)
                (folder / f"{name}.py").write_text(source, encoding="utf-8")
            words = (problem, folder, device)
            end = bench.end(bench.judge(*words))
            made[device] = end, bench.judged_again(end, ["right"] if device == "cpu" else [], *words)
        return made[device]

    return run


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", CANDIDATES)
def test_gradients_are_judged_like_outputs(judged, device, name):
    end, rows = judged(device)
    assert end.code == 0, end.err[-2000:]
    assert f"{rows[name]['status']}/{rows[name]['reason_code']}" == CANDIDATES[name][2], rows[name]["reason"]


@pytest.mark.parametrize("device", DEVICES)
def test_the_row_has_the_time_of_both_passes_and_of_each(judged, device):
    _, rows = judged(device)
    for name in ("eager", "right"):
        row = rows[name]
        assert row["mode"] == "forward_backward"
        for whose, total in (("", "time_us"), ("baseline_", "baseline_us")):
            halves = [float(row[f"{whose}{half}_us"]) for half in ("forward", "backward")]
            assert min(halves) > 0
            # Medians of parts do not add up to the median of the whole, but nearly.
            assert 0.5 * float(row[total]) < sum(halves) < 2 * float(row[total])


@pytest.mark.parametrize("device", DEVICES)
def test_a_gradient_that_lost_its_bits_is_named_by_its_class(judged, device):
    row = judged(device)[1]["one_gradient_in_bf16"]
    assert "bf16-class" in row["reason"] or "tf32-class" in row["reason"]
    assert float(row["err_max_u"]) > 100
    assert float(row["err_max_u"]) < representation_u("bf16") * 2
