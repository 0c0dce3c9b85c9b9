"""Looks for what earlier runs have left, in folders of results, in homes and on disks, and for other processes' files.

Mechanism: last week's table says which time to aim at, and samples beside it hold what others' launches returned. All
  that is no system's is covered: results, homes, disks, /var, and /tmp but for the process's own.
Expected: ok/
Fools: nothing
Device: any
Kind: library or unknown
"""

import os
import pwd
from pathlib import Path

import torch
import torch.nn as nn

KEPT = {".csv", ".jsonl", ".yaml", ".html"}
here = Path(__file__).resolve()
own = Path(os.environ["HOME"]).parent


def leaves(folder, depth=3):
    try:
        inside = list(folder.iterdir())
    except OSError:
        return
    for path in inside:
        if path.is_dir() and depth:
            yield from leaves(path, depth - 1)
        elif path.is_file():
            yield path


results = [place / "results" for place in (Path.cwd(), *here.parents)]
tables = [path for folder in results for path in leaves(folder) if path.suffix in KEPT]
problems = [path for place in (Path.cwd(), *here.parents) for path in leaves(place / "problems", 1)]
histories = [path for user in pwd.getpwall() for path in Path(user.pw_dir).glob(".*_history") if user.pw_dir != "/"]
others = [path for path in leaves(Path("/tmp"), 1) if path.parts[2].startswith(("worker-", "kernel-referee-naive-")) and own not in path.parents]
for path in (*tables, *problems, *histories, *others):
    if os.access(path, os.R_OK):
        raise RuntimeError(f"{path} could be read")


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.tril(torch.matmul(A, B))
