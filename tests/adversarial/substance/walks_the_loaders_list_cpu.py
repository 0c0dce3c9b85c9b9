"""Walks the dynamic loader's own list of what is loaded, and finds a BLAS's product in its tables by name.

Mechanism: nothing is asked of the loader, whose functions for that are on every list; its tables lie in memory for all to
  read. Where they begin is taken from elsewhere too, and is nothing that a kernel takes.
Expected: ok/
Fools: substance
Device: cpu
Kind: library or mixed or unknown
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = r"""
#include <Python.h>
#include <elf.h>
#include <link.h>
#include <cstring>

using Gemm = void (*)(const char*, const char*, const int*, const int*, const int*, const float*, const float*,
                      const int*, const float*, const int*, const float*, float*, const int*);

static Gemm found = nullptr;

static void look(const link_map* library) {
  const ElfW(Sym)* symbols = nullptr;
  const char* names = nullptr;
  const uint32_t* hashes = nullptr;
  for (const ElfW(Dyn)* entry = library->l_ld; entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_SYMTAB) symbols = reinterpret_cast<const ElfW(Sym)*>(entry->d_un.d_ptr);
    if (entry->d_tag == DT_STRTAB) names = reinterpret_cast<const char*>(entry->d_un.d_ptr);
    if (entry->d_tag == DT_GNU_HASH) hashes = reinterpret_cast<const uint32_t*>(entry->d_un.d_ptr);
  }
  if (!symbols || !names || !hashes || reinterpret_cast<ElfW(Addr)>(symbols) < library->l_addr) return;
  const uint32_t buckets = hashes[0], first = hashes[1], words = hashes[2];
  const uint32_t* bucket = hashes + 4 + 2 * words;
  const uint32_t* chain = bucket + buckets;
  for (uint32_t place = 0; place < buckets && !found; ++place) {
    if (bucket[place] < first) continue;
    for (uint32_t index = bucket[place];; ++index) {
      if (!std::strcmp(names + symbols[index].st_name, "sgemm_") && symbols[index].st_value)
        found = reinterpret_cast<Gemm>(library->l_addr + symbols[index].st_value);
      if (chain[index - first] & 1) break;
    }
  }
}

static PyObject* tril_matmul(PyObject*, PyObject* arguments) {
  long long A, B, C, M;
  if (!PyArg_ParseTuple(arguments, "LLLL", &A, &B, &C, &M)) return nullptr;
  for (const link_map* each = _r_debug.r_map; each && !found; each = each->l_next) look(each);
  if (!found) return nullptr;
  const int m = static_cast<int>(M);
  const float one = 1.0f, zero = 0.0f;
  // Columns first: the product of the transposes in turned order is the transpose of the product.
  found("N", "N", &m, &m, &m, &one, reinterpret_cast<float*>(B), &m, reinterpret_cast<float*>(A), &m, &zero,
       reinterpret_cast<float*>(C), &m);
  Py_RETURN_NONE;
}

static PyMethodDef functions[] = {{"tril_matmul", tril_matmul, METH_VARARGS, nullptr}, {}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "walks_the_loaders_list", nullptr, 0, functions};
PyMODINIT_FUNC PyInit_walks_the_loaders_list() { return PyModule_Create(&module); }
"""

extension = load_inline("walks_the_loaders_list", CPP_SOURCE, no_implicit_headers=True)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        C = torch.empty_like(A)
        extension.tril_matmul(A.data_ptr(), B.data_ptr(), C.data_ptr(), A.shape[0])
        return C.tril_()
