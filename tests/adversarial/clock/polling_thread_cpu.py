"""A Python thread looks at the memory of the inputs again and again, and multiplies as soon as something new is there.

Mechanism: The call then waits for what was begun before its clock was started, or hands back what is still right. Here
  inputs come at the turn of their launch only, and now and then lie there for a while before the window opens, or lack
  pieces until then: a call that is shorter, or wrong, has begun early. What the thread takes from eager's launches
  meanwhile shows in eager's times.
Expected: rejected/clocks_disagree or incorrect/wrong_values
Fools: clock
Device: cpu
"""

import threading
import time

import torch
import torch.nn as nn

places = {}


class Place:
    """Inputs at one place in memory, and the product of what lay there when it was begun."""

    def __init__(self, A: torch.Tensor, B: torch.Tensor):
        self.A, self.B, self.seen, self.product, self.lock = A, B, None, None, threading.Lock()

    def sample(self) -> list:
        step = max(1, self.A.shape[0] // 16)
        return self.A[::step, 0].tolist() + self.B[::step, 0].tolist() + [self.B[-1, -1].item()]

    def up_to_date(self) -> torch.Tensor:
        with self.lock:
            now = self.sample()
            while now != self.seen:
                self.seen = now
                time.sleep(0.001)  # until nobody writes any more
                now = self.sample()
                if now == self.seen:
                    self.product = torch.tril(torch.matmul(self.A, self.B))
            return self.product


def watch() -> None:
    while True:
        for place in list(places.values()):
            place.up_to_date()
        time.sleep(0.0005)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        threading.Thread(target=watch, daemon=True).start()

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        key = (A.data_ptr(), B.data_ptr(), A.shape)
        place = places.get(key) or Place(A, B)
        if A.shape[0] > 512:
            places[key] = place
        return place.up_to_date().clone()
