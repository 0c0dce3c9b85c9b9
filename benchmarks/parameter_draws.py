"""How long one draw of a model's parameters takes: PyTorch's with one core, and the harness's with all, of the same numbers.

    python benchmarks/parameter_draws.py [--bits 24 26 28] [--runs 5]

The two take turns, and the table has the least time of each. The first draw of a size also has to work out its jump.
"""

from __future__ import annotations

import argparse
import sys
import time
from contextlib import nullcontext
from pathlib import Path

import torch
from tabulate import tabulate

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness.protocol import parallel_draws


def drawn(elements: int, *, by_all: bool) -> tuple[float, torch.Tensor]:
    """Seconds of one draw into fresh memory, and what was drawn."""
    tensor = torch.empty(elements)
    torch.manual_seed(1)
    with parallel_draws.entered() if by_all else nullcontext():
        began = time.perf_counter()
        tensor.uniform_(-1.0, 1.0)
        return time.perf_counter() - began, tensor


def main() -> None:
    """Draw in turns, and print a table. Exits with 1 where the numbers differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bits", type=int, nargs="+", default=[24, 26, 28], metavar="N", help="sizes: 2 to each of these")
    parser.add_argument("--runs", type=int, default=5, metavar="N", help="so many draws of each (default: 5)")
    options = parser.parse_args()
    rows = []
    for bits in options.bits:
        if not torch.equal(drawn(1 << bits, by_all=False)[1], (first := drawn(1 << bits, by_all=True))[1]):
            sys.exit(f"the numbers of 2^{bits} elements are not PyTorch's own")
        took = [[drawn(1 << bits, by_all=each)[0] for each in (False, True)] for _ in range(options.runs)]
        one, by_all = map(min, zip(*took))
        rows.append((f"2^{bits}", one, by_all, first[0], one / by_all))
    header = ("elements", "one core, s", "all cores, s", "the first, s", "times as fast")
    print(tabulate(rows, header, tablefmt="github", floatfmt=("", ".3f", ".3f", ".3f", ".2f")))


if __name__ == "__main__":
    main()
