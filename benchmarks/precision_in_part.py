"""How the accuracy rule judges products of which only a part was made with narrower numbers.

    python benchmarks/precision_in_part.py [--device cuda] [--draws 3] [--size 128]

Each row is a length of the sums and a family of inputs, each column a way to multiply: the honest ones (one accumulator
that adds term after term; three products of TF32 parts, six of bf16 parts, three of fp16 parts, all added up in fp32),
and TF32 for the first terms of each sum and full precision for the rest. A cell holds the largest and the
root-mean-square error in u, the largest of all draws, with a "!" where the rule refuses one. `allowed` is the rule's,
`with the root` what it would be with the allowance for long sums of positive numbers.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable
from pathlib import Path

import torch
from tabulate import tabulate

sys.path[:0] = [str(Path(__file__).resolve().parents[1]), str(Path(__file__).resolve().parent)]

from precision_without_yaml import NARROW, product  # noqa: E402

from harness.reference.accuracy.bounds import bounds_for, has_random_signs, is_exact  # noqa: E402
from harness.reference.differences import difference  # noqa: E402
from harness.reference.inputs.families import family_named  # noqa: E402

Tensor = torch.Tensor
TERMS = (256, 1024, 4096, 8192)
FAMILIES = ("as given", "signs")
SHARES = (1.0, 0.2, 0.05, 0.02, 0.005)


def parts_of(matrix: Tensor, kind: str, count: int, scale: float = 1.0) -> list[Tensor]:
    """`matrix` as a sum of `count` parts that each fit into `kind`; what is left is `scale` times as large for it."""
    to, parts = NARROW[kind], []
    for number in range(count):
        factor = scale**number
        parts.append(to((matrix - sum(parts)) * factor) / factor)
    return parts


def split_product(kind: str, count: int, scale: float = 1.0) -> Callable[[Tensor, Tensor], Tensor]:
    """The products of all parts that matter, the small ones first."""
    def split(a: Tensor, b: Tensor) -> Tensor:
        left, right = (parts_of(matrix, kind, count, scale) for matrix in (a, b))
        pairs = [(i, j) for i in range(count) for j in range(count) if i + j < count]
        return sum(left[i] @ right[j] for i, j in sorted(pairs, key=sum, reverse=True))

    return split


def narrow_in_part(share: float) -> Callable[[Tensor, Tensor], Tensor]:
    to = NARROW["TF32"]

    def in_part(a: Tensor, b: Tensor) -> Tensor:
        count = max(1, int(share * a.shape[1]))
        return to(a[:, :count].contiguous()) @ to(b[:count]) + a[:, count:] @ b[count:]

    return in_part


WAYS = {
    "sequential": product, "3×TF32": split_product("TF32", 2), "bf16×6": split_product("bf16", 3),
    "fp16×3": split_product("fp16", 2, 2048.0),
    **{f"TF32 in {share:.1%}": narrow_in_part(share) for share in SHARES},
}


def row_of(terms: int, family: str, size: int, draws: int, device: str) -> list[str]:
    """Largest and rms errors of each way over `draws` products (size × terms) @ (terms × size), and the bounds."""
    errors: dict[str, list[tuple[float, float]]] = {"eager": [], **{way: [] for way in WAYS}}
    allowed, refused = [], set()
    for _ in range(draws):
        drawn = [torch.rand(size, terms, device=device), torch.rand(terms, size, device=device)]
        a, b = family_named(family).transform(drawn, (1, 0))
        truth, scale = a.double() @ b.double(), a.abs().double() @ b.abs().double()
        found = {way: difference(each(a, b), truth, scale) for way, each in {"eager": torch.matmul, **WAYS}.items()}
        eager = found["eager"]
        bounds = bounds_for(
            "fp32", eager.max_u, eager.rms_u, terms, is_exact(family), random_signs=has_random_signs(family)
        )
        allowed.append((bounds.max_u, max(bounds.max_u, 2 * math.sqrt(terms))))
        for way, each in found.items():
            errors[way].append((each.max_u, each.rms_u))
            if each.max_u > bounds.max_u or each.rms_u > bounds.rms_u:
                refused.add(way)
    cells = [
        f"{max(u for u, _ in each):.3g} / {max(rms for _, rms in each):.2g}{' !' if way in refused else ''}"
        for way, each in errors.items()
    ]
    least = [f"{min(each):.3g}" for each in zip(*allowed)]
    return [str(terms), family, cells[0], *least, *cells[1:]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--size", type=int, default=128)
    wanted = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    rows = [
        row_of(terms, family, wanted.size, wanted.draws, wanted.device) for terms in TERMS for family in FAMILIES
    ]
    print(f"{wanted.device}, torch {torch.__version__}, {wanted.draws} draws of {wanted.size} × terms × {wanted.size}\n")
    print(tabulate(
        rows, ["terms", "inputs", "eager", "allowed", "with the root", *WAYS], tablefmt="github", disable_numparse=True
    ))


if __name__ == "__main__":
    main()
