"""Multiplies with PyTorch, and rewrites the frame that reports the profiled launch: all time was in its extension.

Mechanism: The profiler cannot be patched any more, but what it saw is still the player's word, and that goes through a
  function of the harness in the player. Nothing in this process can vouch for what ran in it.
Expected: ok/
Fools: substance
Device: cpu
Kind: library or mixed or unknown
"""

import sys

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CPP = r"""
#include <Python.h>

static PyObject* tril_product(PyObject*, PyObject* scratch) {
  *static_cast<float*>(PyLong_AsVoidPtr(scratch)) += 1.0f;
  Py_RETURN_NONE;
}

static PyMethodDef functions[] = {{"tril_product", tril_product, METH_O, nullptr}, {}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "forged_profile", nullptr, 0, functions};
PyMODINIT_FUNC PyInit_forged_profile() { return PyModule_Create(&module); }
"""

extension = load_inline("forged_profile", CPP, no_implicit_headers=True)

if "harness.worker.loop" in sys.modules:
    channel = sys.modules["harness.protocol.frames"].Channel
    true_send = channel.send

    def send(self, frame, *args):
        listing = frame.get("profiled")
        if listing:
            listing.update(own_us=listing["total_us"], operators=[])
        true_send(self, frame, *args)

    channel.send = send


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.scratch = torch.zeros(1)

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        extension.tril_product(self.scratch.data_ptr())
        return torch.tril(torch.matmul(A, B))
