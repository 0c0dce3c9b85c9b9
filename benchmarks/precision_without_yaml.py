"""How the accuracy rule judges operators that come without a YAML: honest kernels, and each precision class.

    python benchmarks/precision_without_yaml.py [--device cuda] [--draws 10] [--only LogSumExp]

A KernelBench file says neither how long its sums are nor what their error scale is. Each row is an operator and one way to
compute it. `now` is the share of runs that the harness accepts, a run being a launch on inputs as given and one on those
that are to show TF32, where there are such; `before` the share that an older rule accepted (ten times eager's error and
eight, or for outputs of 32 elements the bounds of a YAML with the longest sum). Then come the largest error and the root
mean square of the launch that was nearest to its bounds, over what was allowed, on either kind of inputs.
"""

from __future__ import annotations

import argparse
import copy
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import torch
import torch.nn.functional as F

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness.model.problem import load_problem  # noqa: E402
from harness.protocol import tree  # noqa: E402
from harness.reference.accuracy.bounds import ROW_ELEMENTS, fp32_bounds  # noqa: E402
from harness.reference.accuracy.classes import ErrorFigures, excess, within  # noqa: E402
from harness.reference.differences import difference  # noqa: E402
from harness.reference.error_figures import judge_outputs  # noqa: E402
from harness.reference.error_figures import noisy_outputs  # noqa: E402
from harness.reference.inputs.families import GIVEN  # noqa: E402
from harness.reference.inputs.one_way_rounding import to_tf32  # noqa: E402
from harness.reference.reference_model import Reference  # noqa: E402

Tensor = torch.Tensor
Way = Callable[..., Tensor]
SOURCE = """
import torch
import torch.nn.functional as F


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        {layers}

    def forward(self, *x):
        return {result}


def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return []
"""


def chain(values: Tensor, dim: int = -1) -> Tensor:
    """One accumulator that adds term after term, as one thread does."""
    total = torch.zeros_like(values.select(dim, 0))
    for index in range(values.shape[dim]):
        total = total + values.select(dim, index)
    return total


def blocks(values: Tensor) -> Tensor:
    """A tree in each block of 256 threads, and the blocks one after the other, as atomics come."""
    parts = F.pad(values.flatten(), (0, -values.numel() % 256)).view(-1, 256)
    while parts.shape[1] > 1:
        parts = parts[:, : parts.shape[1] // 2] + parts[:, parts.shape[1] // 2 :]
    return chain(parts.flatten())


def rows(values: Tensor) -> Tensor:
    """One thread a row, and their results one after the other."""
    return chain(chain(values))


def product(a: Tensor, b: Tensor) -> Tensor:
    """One thread an element, over all terms."""
    total = torch.zeros(a.shape[0], b.shape[1], dtype=a.dtype, device=a.device)
    for k in range(a.shape[1]):
        total = torch.addcmul(total, a[:, k : k + 1], b[k : k + 1])
    return total


def running(values: Tensor) -> Tensor:
    total, parts = torch.zeros_like(values[:, 0]), []
    for index in range(values.shape[1]):
        total = total + values[:, index]
        parts.append(total)
    return torch.stack(parts, dim=1)


def linear(x: Tensor, layer: torch.nn.Linear) -> Tensor:
    return product(x, layer.weight.detach().t()) + layer.bias.detach()


def log_sum_exp(x: Tensor) -> Tensor:
    largest = x.amax(1, keepdim=True)
    return torch.log(chain(torch.exp(x - largest))) + largest[:, 0]


def cross_entropy(x: Tensor, targets: Tensor) -> Tensor:
    return chain(log_sum_exp(x) - x.gather(1, targets[:, None])[:, 0]) / len(x)


def huber(a: Tensor, b: Tensor) -> Tensor:
    apart = (a - b).abs()
    return torch.where(apart < 1, 0.5 * apart * apart, apart - 0.5)


def distance(a: Tensor, b: Tensor) -> Tensor:
    return torch.sqrt(chain((a - b + 1e-6) ** 2))


def softmax(x: Tensor) -> Tensor:
    powers = torch.exp(x - x.amax(-1, keepdim=True))
    return powers / chain(powers).unsqueeze(-1)


def normalised(x: Tensor, mean: Tensor, square_mean: Tensor) -> Tensor:
    return (x - mean) * torch.rsqrt(square_mean + 1e-5)


def layer_norm(x: Tensor) -> Tensor:
    mean = chain(x).unsqueeze(-1) / x.shape[-1]
    return normalised(x, mean, chain((x - mean) ** 2).unsqueeze(-1) / x.shape[-1])


def batch_norm(x: Tensor) -> Tensor:
    """256 threads a channel, each with a chain of its own."""
    by_channel = x.transpose(0, 1).reshape(x.shape[1], 256, -1)
    count = by_channel.shape[1] * by_channel.shape[2]
    mean = (chain(by_channel).sum(1) / count).view(1, -1, 1, 1)
    square = ((x - mean) ** 2).transpose(0, 1).reshape(x.shape[1], 256, -1)
    return normalised(x, mean, (chain(square).sum(1) / count).view(1, -1, 1, 1))


def unfolded(x: Tensor, layer: torch.nn.Conv2d) -> Tensor:
    """A convolution by one thread an element."""
    columns = F.unfold(x, layer.kernel_size).transpose(1, 2)
    made = product(columns.flatten(0, 1), layer.weight.detach().flatten(1).t()) + layer.bias.detach()
    size = x.shape[-1] - layer.kernel_size[0] + 1
    return made.view(len(x), -1, made.shape[1]).transpose(1, 2).reshape(len(x), -1, size, size)


@dataclass(frozen=True)
class Operator:
    """A reference that returns `result` of its inputs `x`; each honest way is called with the model and the inputs."""

    result: str
    inputs: str
    honest: dict[str, Way] = field(default_factory=dict)
    layers: str = "pass"


TWO = "torch.rand(128, 4096), torch.rand(128, 4096)"
OPERATORS = {
    "MSE 128×4096": Operator("((x[0] - x[1]) ** 2).mean()", TWO, {
        "blocks, atomics": lambda m, a, b: blocks((a - b) ** 2) / a.numel(),
        "thread a row": lambda m, a, b: rows((a - b) ** 2) / a.numel(),
    }),
    "Huber 128×4096": Operator("F.smooth_l1_loss(x[0], x[1])", TWO, {
        "blocks, atomics": lambda m, a, b: blocks(huber(a, b)) / a.numel(),
    }),
    "cross entropy 4096×10": Operator(
        "F.cross_entropy(x[0], x[1])", "torch.rand(4096, 10), torch.randint(0, 10, (4096,))",
        {"thread a row": lambda m, x, t: cross_entropy(x, t)},
    ),
    "KL divergence 128×4096": Operator(
        "F.kl_div(x[0].log(), x[1], reduction='batchmean')",
        "torch.rand(128, 4096).softmax(-1), torch.rand(128, 4096).softmax(-1)",
        {"blocks, atomics": lambda m, p, t: blocks(t * (t.log() - p.log())) / len(p)},
    ),
    "triplet margin 128×4096": Operator("F.triplet_margin_loss(*x)", TWO + ", torch.rand(128, 4096)", {
        "thread a row": lambda m, a, p, n: chain((distance(a, p) - distance(a, n) + 1).clamp(min=0)) / len(a),
    }),
    "hinge 64×16384": Operator(
        "(1 - x[0] * x[1]).clamp(min=0).mean()", "torch.rand(64, 16384), torch.randint(0, 2, (16384,)) * 2.0 - 1",
        {"thread a row": lambda m, p, t: rows((1 - p * t).clamp(min=0)) / p.numel()},
    ),
    "mean of 64×16384": Operator("x[0].mean()", "torch.rand(64, 16384)", {
        "blocks, atomics": lambda m, x: blocks(x) / x.numel(), "thread a row": lambda m, x: rows(x) / x.numel(),
    }),
    "sum of 64 rows of 16384": Operator("x[0].sum(1)", "torch.rand(64, 16384)", {"chain": lambda m, x: chain(x)}),
    "cumsum of 64 rows of 16384": Operator("x[0].cumsum(1)", "torch.rand(64, 16384)", {"chain": lambda m, x: running(x)}),
    "matmul 64×4096×64": Operator("x[0] @ x[1]", "torch.rand(64, 4096), torch.rand(4096, 64)", {
        "chain": lambda m, a, b: product(a, b),
    }),
    "matvec 256×4096×1, normal": Operator("x[0] @ x[1]", "torch.randn(256, 4096), torch.randn(4096, 1)", {
        "chain": lambda m, a, b: product(a, b),
    }),
    "Linear 2048, LogSumExp": Operator(
        "torch.logsumexp(self.first(x[0]), 1)", "torch.rand(64, 2048)",
        {"chain": lambda m, x: log_sum_exp(linear(x, m.first))}, "self.first = torch.nn.Linear(2048, 2048)",
    ),
    "Linear, sigmoid, Linear, LogSumExp": Operator(
        "torch.logsumexp(self.second(torch.sigmoid(self.first(x[0]))), 1)", "torch.rand(64, 1024)",
        {"chain": lambda m, x: log_sum_exp(linear(torch.sigmoid(linear(x, m.first)), m.second))},
        "self.first, self.second = torch.nn.Linear(1024, 2048), torch.nn.Linear(2048, 1024)",
    ),
    "conv 3×3, ReLU (rows nearly zero)": Operator(
        "torch.relu(self.first(x[0]) - 0.3)", "torch.rand(16, 8, 34, 34)",
        {"chain": lambda m, x: torch.relu(unfolded(x, m.first) - 0.3)}, "self.first = torch.nn.Conv2d(8, 64, 3)",
    ),
    "softmax of 64 rows of 4096, normal": Operator("x[0].softmax(1)", "torch.randn(64, 4096)", {
        "chain": lambda m, x: softmax(x),
    }),
    "layer norm of 64 rows of 4096": Operator("F.layer_norm(x[0], (4096,))", "torch.rand(64, 4096)", {
        "chain": lambda m, x: layer_norm(x),
    }),
    "batch norm, 2 M a channel": Operator("F.batch_norm(x[0], None, None, training=True)", "torch.rand(32, 2, 256, 256)", {
        "256 chains a channel": lambda m, x: batch_norm(x),
    }),
    "Frobenius norm of 4 M": Operator("x[0] / torch.norm(x[0])", "torch.rand(4 << 20)", {
        "blocks, atomics": lambda m, x: x * torch.rsqrt(blocks(x * x)),
    }),
    "sigmoid, normal": Operator("torch.sigmoid(x[0])", "torch.randn(64, 4096)", {
        "1 / (1 + exp(-x))": lambda m, x: 1 / (1 + torch.exp(-x)),
    }),
    "softplus, normal": Operator("F.softplus(x[0])", "torch.randn(64, 4096)", {
        "log(1 + exp(x))": lambda m, x: torch.log(1 + torch.exp(x)),
    }),
    "GELU, normal": Operator("F.gelu(x[0])", "torch.randn(64, 4096)", {
        "by erf": lambda m, x: 0.5 * x * (1 + torch.erf(x * 0.5**0.5)),
        "tanh formula (another function)": lambda m, x: F.gelu(x, approximate="tanh"),
    }),
    "layer norm in bf16": Operator("F.layer_norm(x[0].bfloat16(), (4096,)).float()", "torch.randn(64, 4096)", {
        "in fp32": lambda m, x: F.layer_norm(x, (4096,)), "in fp8": lambda m, x: F.layer_norm(
            x.to(torch.float8_e4m3fn).float(), (4096,)),
    }),
    "mean of a group norm": Operator("F.group_norm(x[0], 4).mean(dim=(1, 2))", "torch.rand(64, 16, 1024)"),
}
NARROW = {"TF32": to_tf32, "fp16": lambda x: x.to(torch.float16).float(), "bf16": lambda x: x.to(torch.bfloat16).float()}


def reference_of(operator: Operator, device: str) -> Reference:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "operator.py"
        path.write_text(SOURCE.format(result=operator.result, inputs=operator.inputs, layers=operator.layers))
        return Reference(load_problem(path), {}, torch.device(device), seed=1)


def ways_of(operator: Operator, reference: Reference) -> dict[str, Callable[[list[Tensor]], Tensor]]:
    """Each honest way, eager on inputs and parameters in each narrower type, and nothing but zeros."""
    def honest(way: Way) -> Callable[[list[Tensor]], Tensor]:
        return lambda inputs: way(reference.model, *inputs)

    def narrow(to: Callable[[Tensor], Tensor]) -> Callable[[list[Tensor]], Tensor]:
        model = copy.deepcopy(reference.model)
        for parameter in model.parameters():
            parameter.data = to(parameter.data)
        return lambda inputs: model(*[to(each) if each.dtype is torch.float32 else each for each in inputs])

    return {
        **{f"honest: {name}": honest(way) for name, way in operator.honest.items()},
        **{name: narrow(to) for name, to in NARROW.items()},
        "zeros": lambda inputs: torch.zeros(reference.output_specs[0].shape, device=reference.device),
    }


def accepted_before(reference: Reference, truth: Tensor, scale: Tensor, eager: Tensor, made: Tensor) -> bool:
    """Ten times eager's error and eight; or, of 32 elements and more, the bounds of a YAML with the longest sum."""
    own, of_eager = difference(made, truth, scale), difference(eager, truth, scale)
    long = fp32_bounds(of_eager.max_u, of_eager.rms_u, float(reference.longest_sum), exact=False)
    by_sum = made.numel() >= ROW_ELEMENTS and own.max_u <= long.max_u and own.rms_u <= long.rms_u
    return own.max_u <= 10 * of_eager.max_u + 8 or by_sum


def row_of(reference: Reference, way: Callable[[list[Tensor]], Tensor], draws: int) -> list[str]:
    before = now = 0
    nearest: dict[bool, ErrorFigures] = {}
    for _ in range(draws):
        is_right = True
        for family in reference.families:
            inputs = reference.draw(family)
            truth = reference.truth(inputs)
            with torch.no_grad():
                _, made = tree.flatten(way(inputs.arguments()))
            figures = judge_outputs(reference, inputs, truth, made, "fp32")
            is_right &= within(figures)
            key = family is GIVEN
            nearest[key] = max(figures, nearest.get(key, figures), key=excess)
            if key:
                before += accepted_before(reference, truth.outputs[0], truth.scales[0], truth.eager[0], made[0])
        now += is_right
    return [f"{before / draws:.0%}", f"{now / draws:.0%}", _cell(nearest.get(True)), _cell(nearest.get(False))]


def _cell(figures: ErrorFigures | None) -> str:
    if figures is None:
        return ""
    bounds = figures.bounds
    rms = "" if bounds.rms_u is None else f", rms {figures.rms_u:.3g} / {bounds.rms_u:.3g}"
    return f"{figures.max_u:.3g} / {bounds.max_u:.3g}{rms}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--only", default="", help="operators whose name has this in it")
    wanted = parser.parse_args()
    lines = []
    for name, operator in OPERATORS.items():
        if wanted.only not in name:
            continue
        reference = reference_of(operator, wanted.device)
        families = " ".join(family.name for family in reference.families if family is not GIVEN)
        noise = " (rounding noise: nothing is ranked)" if noisy_outputs(reference) else ""
        for way, make in ways_of(operator, reference).items():
            lines.append([name + noise, families, way, *row_of(reference, make, wanted.draws)])
            print(f"{name}: {way}", file=sys.stderr)
    columns = ["operator", "other inputs", "way", "before", "now", "as given: u / allowed", "on the others: u / allowed"]
    print(f"{wanted.device}, torch {torch.__version__}, {wanted.draws} draws\n")
    for cells in (columns, ["---"] * len(columns), *lines):
        print(f"| {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
