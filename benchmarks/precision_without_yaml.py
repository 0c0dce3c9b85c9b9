"""How the accuracy rule judges operators that come without a YAML: honest kernels, and each precision class.

    python benchmarks/precision_without_yaml.py [--device cuda] [--draws 30]

A KernelBench file says neither how long its sums are nor what their error scale is. Each row here is an operator on
one kind of data, each column a way to compute it; a cell holds the share of draws that a rule accepts. The rules:
`10e+8` (no terms: ten times eager's error and eight, largest error only) and `terms` (the length of the longest sum as
the harness finds it in the reference, with the bounds of a YAML), each with the error scale D over the last dimension
alone (`row`) and over the last dimensions that together hold at least 32 elements (`row32`); and what the harness does,
`either row32`: one of the two, the second only for outputs of at least 32 elements.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import torch
from tabulate import tabulate

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness.accuracy.bounds import ROW_ELEMENTS, bounds_for  # noqa: E402
from harness.referee.differences import difference  # noqa: E402

Tensor = torch.Tensor


def row_scale(output: Tensor, fewest: int) -> Tensor:
    """The largest magnitude over the last dimensions that hold at least `fewest` elements together."""
    dims, count = [], 1
    for dim in range(output.dim() - 1, -1, -1):
        if dims and count >= fewest:
            break
        dims.append(dim)
        count *= output.shape[dim]
    return output.abs().amax(dim=dims, keepdim=True).expand_as(output) if dims else output.abs()


def narrowed(kind: torch.dtype | str) -> Callable[[Tensor], Tensor]:
    """Round to a 16-bit type and back, or to TF32's 11 significant bits."""
    def to(tensor: Tensor) -> Tensor:
        if kind != "tf32":
            return tensor.to(kind).to(tensor.dtype)
        bits = tensor.view(torch.int32)
        return ((bits + 0x1000) & ~0x1FFF).view(torch.float32)

    return to


def sequential_sum(parts: Tensor, dim: int) -> Tensor:
    """One accumulator that adds term after term, as one thread per output does."""
    total = torch.zeros_like(parts.select(dim, 0))
    for index in range(parts.shape[dim]):
        total = total + parts.select(dim, index)
    return total


def sequential_product(a: Tensor, b: Tensor) -> Tensor:
    total = torch.zeros(a.shape[0], b.shape[1], dtype=a.dtype, device=a.device)
    for k in range(a.shape[1]):
        total = torch.addcmul(total, a[:, k : k + 1], b[k : k + 1])
    return total


def softmax_by(total: Callable[[Tensor, int], Tensor]) -> Callable[[Tensor], Tensor]:
    def softmax(x: Tensor) -> Tensor:
        e = torch.exp(x - x.amax(dim=-1, keepdim=True))
        return e / total(e, -1).unsqueeze(-1)

    return softmax


def layer_norm_by(total: Callable[[Tensor, int], Tensor]) -> Callable[[Tensor], Tensor]:
    def norm(x: Tensor) -> Tensor:
        mean = total(x, -1).unsqueeze(-1) / x.shape[-1]
        variance = total((x - mean) ** 2, -1).unsqueeze(-1) / x.shape[-1]
        return (x - mean) * torch.rsqrt(variance + 1e-5)

    return norm


# name → (shapes, longest sum, eager, the sequential way)
OPERATORS = {
    "matmul 64×4096×64": ([(64, 4096), (4096, 64)], 4096, torch.matmul, sequential_product),
    "matvec 256×4096×1": ([(256, 4096), (4096, 1)], 4096, torch.matmul, sequential_product),
    "sum dim=1 of 16×4096×64": ([(16, 4096, 64)], 4096, lambda x: x.sum(1), lambda x: sequential_sum(x, 1)),
    "mean dim=-1, kept, of 256×4096": (
        [(256, 4096)], 4096, lambda x: x.mean(-1, True), lambda x: sequential_sum(x, -1).unsqueeze(-1) / 4096
    ),
    "mse of 64×1024 (a scalar)": (
        [(64, 1024), (64, 1024)], 65536, lambda a, b: ((a - b) ** 2).mean(),
        lambda a, b: sequential_sum(sequential_sum((a - b) ** 2, 1), 0) / 65536
    ),
    "softmax over 4096": ([(64, 4096)], 4096, lambda x: x.softmax(-1), softmax_by(sequential_sum)),
    "layer_norm over 4096": (
        [(64, 4096)], 4096, lambda x: torch.nn.functional.layer_norm(x, (4096,)), layer_norm_by(sequential_sum)
    ),
    "gelu": ([(64, 4096)], 1, torch.nn.functional.gelu, lambda x: 0.5 * x * (1 + torch.erf(x * 0.5**0.5))),
    "gelu, tanh formula": (
        [(64, 4096)], 1, torch.nn.functional.gelu, lambda x: torch.nn.functional.gelu(x, approximate="tanh")
    ),
}
DATA = {"normal": torch.randn, "uniform": torch.rand}
WAYS = ("sequential", "tf32", "fp16", "bf16")


def outputs_of(name: str, inputs: list[Tensor]) -> dict[str, Tensor]:
    _, _, eager, sequential = OPERATORS[name]
    made = {"eager": eager(*inputs), "sequential": sequential(*inputs)}
    for way, kind in (("tf32", "tf32"), ("fp16", torch.float16), ("bf16", torch.bfloat16)):
        made[way] = eager(*[narrowed(kind)(tensor) for tensor in inputs])
    return made


def accepted(errors: dict[str, tuple[float, float]], way: str, terms: int | None) -> bool:
    bounds = bounds_for("fp32", *errors["eager"], terms, False)
    largest, rms = errors[way]
    return largest <= bounds.max_u and (bounds.rms_u is None or rms <= bounds.rms_u)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--draws", type=int, default=30)
    wanted = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    rows = []
    for name, (shapes, terms, eager, _) in OPERATORS.items():
        for data, draw in DATA.items():
            counts: dict[tuple[str, str], int] = {}
            worst = dict.fromkeys(("eager", *WAYS), 0.0)
            for _ in range(wanted.draws):
                inputs = [draw(*shape, device=wanted.device) for shape in shapes]
                truth = eager(*[tensor.double() for tensor in inputs])
                made = outputs_of(name, inputs)
                for scale_name, fewest in (("row", 1), ("row32", ROW_ELEMENTS)):
                    scale = row_scale(truth, fewest)
                    found = {way: difference(output, truth, scale) for way, output in made.items()}
                    errors = {way: (each.max_u, each.rms_u) for way, each in found.items()}
                    if scale_name == "row32":
                        worst = {way: max(worst[way], errors[way][0]) for way in worst}
                    for rule, length in (("10e+8", None), ("terms", terms)):
                        for way in WAYS:
                            key = (f"{rule} {scale_name}", way)
                            counts[key] = counts.get(key, 0) + accepted(errors, way, length)
                for way in WAYS:
                    either = accepted(errors, way, None)
                    either |= truth.numel() >= ROW_ELEMENTS and accepted(errors, way, terms)
                    counts["either row32", way] = counts.get(("either row32", way), 0) + either
            for rule in ("10e+8 row", "10e+8 row32", "terms row", "terms row32", "either row32"):
                shares = [f"{counts[rule, way] / wanted.draws:.0%}" for way in WAYS]
                largest = ["", "", "", "", ""]
                if rule == "either row32":
                    largest = [f"{worst[way]:.3g}" for way in ("eager", *WAYS)]
                rows.append([name, data, rule, *shares, " / ".join(largest).strip(" /")])
    columns = ["operator", "data", "rule", *WAYS, f"largest u: eager / {' / '.join(WAYS)}"]
    print(f"{wanted.device}, torch {torch.__version__}, {wanted.draws} draws; share of draws accepted\n")
    print(tabulate(rows, columns, tablefmt="github", disable_numparse=True))


if __name__ == "__main__":
    main()
