"""Writes a table of results in which it is first into the folders of results.

Mechanism: the next comparison would read it as a run. The repository and the folder of results are read-only to
  builder and player; had a file been made, it would be taken back, and the row would say that it could be.
Expected: ok/
Fools: nothing
Device: any
Kind: library or unknown
"""

from pathlib import Path

import torch
import torch.nn as nn

TABLE = "schema_version,problem,candidate,status,rank,time_us\n1,tril_matmul,forges_results,ok,1,0.001\n"

for parent in (Path.cwd(), *Path(__file__).resolve().parents):
    for folder in parent.glob("results/*/*"):
        try:
            (folder / "99991231T235959Z.csv").write_text(TABLE)
            (folder / "99991231T235959Z.csv").unlink()
        except OSError:
            continue
        raise RuntimeError(f"a table of results could be forged in {folder}")


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.tril(torch.matmul(A, B))
