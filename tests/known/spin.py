import time

import torch
import torch.nn as nn

SPIN = 4000000


def wait(spin: int, on_gpu: bool) -> None:
    if on_gpu:
        torch.cuda._sleep(spin)
        return
    until = time.perf_counter_ns() + spin
    while time.perf_counter_ns() < until:
        pass


class Model(nn.Module):
    def __init__(self, spin: int) -> None:
        super().__init__()
        self.spin = spin

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        wait(self.spin, x.is_cuda)
        return x + 1


def get_inputs():
    return [torch.rand(1024)]


def get_init_inputs():
    return [SPIN]
