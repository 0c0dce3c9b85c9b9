"""Has the compiler compute a table at compile time, for hours, with its limits on that taken off.

Mechanism: g++ neither fails nor ends, and asking Python to stop does not reach it. A build has a deadline, and with the
  builder ninja, g++ and cc1plus are killed.
Expected: timed_out/build_timeout
Fools: nothing
Device: any
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = """
constexpr unsigned entry(unsigned rounds) {
  unsigned x = 1;
  for (unsigned i = 0; i < rounds; ++i) x = x * 3u + i;
  return x;
}
extern const unsigned table[2] = {entry(2000000000u), entry(2000000001u)};
"""

extension = load_inline(
    "endless_table", SOURCE, no_implicit_headers=True,
    extra_cflags=["-fconstexpr-ops-limit=9223372036854775807", "-fconstexpr-loop-limit=2147483647"],
)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.tril(torch.matmul(A, B)) * extension.scale
