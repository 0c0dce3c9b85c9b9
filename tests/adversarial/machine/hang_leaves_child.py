"""Starts a child process in a session of its own, then never comes back.

Mechanism: killing the player, or its process group, would leave the child. Everything that a player
  started ends with its namespace, or is found as its descendant.
Expected: timed_out/launch_timeout
Fools: nothing
Device: any
"""

import subprocess
import sys
import time

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
        while True:
            time.sleep(1)
