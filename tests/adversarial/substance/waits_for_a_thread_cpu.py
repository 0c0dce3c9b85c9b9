"""Has a Python thread call PyTorch's product, and waits for it inside a function of its own extension.

Mechanism: the profiler follows the thread that is profiled, and what that one does is to spend all the time of the call
  in the extension. Here what the other threads of Python take of a core meanwhile is looked at.
Expected: ok/
Fools: substance
Device: cpu
Kind: library or mixed or unknown
"""

import threading

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = r"""
#include <pybind11/pybind11.h>
#include <atomic>

static std::atomic<bool> is_done{false};

void begin() { is_done = false; }
void finish() { is_done = true; }
void work() {
  pybind11::gil_scoped_release others_may_run;
  while (!is_done) {}
}
"""

extension = load_inline(
    name="waits_for_a_thread",
    cpp_sources=CPP_SOURCE,
    functions=["begin", "finish", "work"],
    with_pytorch_error_handling=False,
    no_implicit_headers=True,
)
asked, wanted = [], threading.Semaphore(0)


def answer():
    while True:
        wanted.acquire()
        A, B, C = asked.pop()
        with torch.no_grad():
            torch.matmul(A, B, out=C)
        extension.finish()


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        threading.Thread(target=answer, daemon=True).start()

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        C = torch.empty_like(A)
        extension.begin()
        asked.append((A, B, C))
        wanted.release()
        extension.work()
        return C.tril_()
