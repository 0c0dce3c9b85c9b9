"""Brings its product as machine code in the source, under the name of a kernel that its build has compiled and that never runs.

Mechanism: a kernel is told to be the build's by its name; machine code of another text, loaded while it runs, bears
  the same name. Of a source that carries bytes nobody knows whose its kernels are.
Expected: ok/
Fools: substance
Device: cuda
Kind: library or mixed or unknown
"""

import base64
import lzma

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUBIN = lzma.decompress(base64.b64decode(
    "/Td6WFoAAATm1rRGAgAhARwAAAAQz1jM4BmHBqNdAD+RRYRoPYmv2/G7y/KieK7m/PvQt8OVLiWXagIOVFCiEujZQvy/NngPgauBAnjitle1QT"
    "JfCa6bYt0beb3wKrjE/3bvTPoqKiZ4+pxoIvUkNH2fVQGLM1GpcvmSNrEhLhiSQoVde61w56sUea9789HbMUA7NVEedIxjyH+jsmTe8S+OiYMf"
    "gpoOS7O/RzzDsCHkG4KfHMHTlcudkiUQThPa+bWCCh10dYzrV1bJooYSHnFeiHqUXmqMbNEo0NRk5dRc1M/nib1R75KXimMNs+betTLqk7P4FE"
    "TZzQSYguSLXW8baTztcJM074ofv9AIUErACO0+f8bbaPBpBpWzXBBprxr7+SY7TAY+uGOzp2GudeQtcre97EPOeeZy3CRnDvuHkV8ANWPZTxVU"
    "uA5sDHCgVzvNAo9jlpPgagC5Qbmbzpn0h2X5n00l/duD786Qbeowo8SVQGXQKnD0U9Z1g0e9VyyA1nV2Gh8WO7s6nMCRMWqBQIV78CgtyBoMzF"
    "7oxO/IHUdvYmzKKxwn/LrmCgZ2XWZCTLEeyfKBWYvAxAnO+YZ2NpzB3lN+ZJzKMk941ARbr4uqhjsRbzkp8CevI1YooTba4BL4WkpBAiBcfEHN"
    "SbXZgV+rMEgx0rp1um2fGqDN9RzBrOE5JWyTiXy0ZtCtA5DgloAO3zWnyDznbPd2zBO7JQmNPxjqX4iPTOBeJ7C1zXPFcS+gKwCRWd8irXX65m"
    "nmFHg7ar3lz1de5/ZVJ+KH9zqKGSXXNyVKikPb/8vZ7RJsvQ3Cof6m6elu329Wfq3KCm7rY4VHcuPlusTtIQ8EI3AlvfODeFo70JWum8HWrFwC"
    "RVWnvJ8HgWsBVZCgACjYUr/bY2PKjHsxawC7zJ1CbMq223EAcHwhStq3D/k7IUV8OdKobfFXL5jIbWhOA+MFvkQvu/xwS7f7KAiDiyXm/ygQId"
    "AnjvCmVmJvwhIok5cegAhwxB73N7GRsWRItmLgqN/H4tu/5VggWT4lVjb/EfjOYX/RHk8vPv7oNZ7nGX9hcqNI2NcGlZebCG7XzByHNeDbBxoC"
    "0M7p4hPptJ8SimkqWnMpDBR/7+yX9Dz6EjMhI0fklQClAZG2S4bykv9hxaydeA86njbjUXdYMMqnlK7qgPkIiJnqRTKM3ie3deeu4ury+qSNDN"
    "2VTmPbWsxtWag5cbGVlnXGl68kS82l2BuOIaxTiGeYFMuCImNmpam6iGr8outtdIvaIUjmRKkVy0wO8Th+KBxbF9eLdvDQ4yv1w8iSf2WZkxze"
    "SvE0XDrvkt8tmCqZsE2TBQbBHjmkAdyKtmw3cxO8HxYBf/n6erOlu2qivW3Pjun2s4DdDwbG5br8Vvnq1sDhz5GUXGLmkFDIkKPr4C39Nftz7p"
    "KRiVRnmuFBHFZmn4miBzEiIDbpKWnfvQd0HqcWQBVNrhOEymA9SB+dQTqyzjxBJCKbYICYMRKigqfGp4VEaaYHpSO0G86zYTtke1XMV9PE6Dro"
    "i/PNBhHwVXxCa3lsz08OWHIJErY/3PBjNPE6V0ibiIsWLuXwXrGTBeQM9JCcwArZpnHg6qrlcs6WsxS2pNaKdamkZX/DcYREBO5/uU2ryrgtI0"
    "NFK/pX2iJLXr2PaI2ReUelNbzeJflnDvUPnBE19WaK26AxiNIohVaj1TrZkTW4OuCtVaFX3qsEwCkXINH2Qqig9A6pWFJpvm5AYaGuypDF7C8k"
    "Yi4eGuAYkkFeivsPujuOI/JYy6tpsNIbjrMqMs05i79Xc7RWQ2EKhK/moiqZORdV//yF2hteKYhhxr06PMkJZky/WBch6R9IsEPnGhAqHuC5rh"
    "yfXzbp/h+aZ+ayNJuO4xJ5qqcFG5Z76qg9SiY5dUGeEYV+s9CW9g48GhSL3vp/DKMkpmLrCJvXBztyKthSo5X5WbIstdFCHJOy1YWTC4dRFlaK"
    "fut5U5e0BAoxortog7YL61liIGR4bk/rZTmzSK7FPIjwtqD0wAKqWCljCJLZH7CM5OXbHmfAkq8bkCEp4dAJ0mZabGZs6xvDmot2ECvjj2zMqs"
    "buLTT7eKUu/JSmfgn5aoB7aRkdkQbSHyuBEOnCID6+vgA97A1+CBBbHxiTxsg+lVXJ/Tn7pUKlwssC0IkQdC0nctf0InO1plpl1ecO8iHXc4eL"
    "mwUNwwztTnoVRXZKAdiW+qMflm/R9dX9D1kBllrv6jQTsJmpdYxxB96Y9cGeNzB88Qt7dXPPJRiRWcgcgZFTFsCSSdg09KTKraEF987h2GwAAF"
    "ayrULE9Vu9AAG/DYgzAADRdJnescRn+wIAAAAABFla"
))
CUDA_SOURCE = r"""
#include <cuda_runtime.h>

extern "C" long long load(long long code) {
  cudaLibrary_t library;
  cudaKernel_t kernel = nullptr;
  if (cudaLibraryLoadData(&library, reinterpret_cast<const void*>(code), nullptr, nullptr, 0, nullptr, nullptr, 0)) return 0;
  cudaLibraryGetKernel(&kernel, library, "tril_matmul_tiles");
  return reinterpret_cast<long long>(kernel);
}

extern "C" void run(long long kernel, long long A, long long B, long long C, int M) {
  const unsigned tiles = (M + 31) / 32;
  void* arguments[] = {&A, &B, &C, &M};
  cudaLaunchKernel(reinterpret_cast<const void*>(kernel), dim3(tiles, tiles), dim3(32, 32), arguments, 0, 0);
}
extern "C" __global__ void tril_matmul_tiles(const float* A, const float* B, float* C, int M) {
  if (M < 0) C[0] = A[0] * B[0];
}
"""

extension = load_inline(
    name="cubin_named_like_the_build",
    cpp_sources=r"""
#include <pybind11/pybind11.h>
extern "C" long long load(long long);
extern "C" void run(long long, long long, long long, long long, int);
""",
    cuda_sources=CUDA_SOURCE,
    functions=["load", "run"],
    with_pytorch_error_handling=False,
    no_implicit_headers=True,
)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.code = torch.frombuffer(bytearray(CUBIN), dtype=torch.uint8)
        self.kernel = None

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        self.kernel = self.kernel or extension.load(self.code.data_ptr())
        if not self.kernel:
            raise RuntimeError("the machine code cannot be loaded")
        C = torch.empty_like(A)
        extension.run(self.kernel, A.data_ptr(), B.data_ptr(), C.data_ptr(), A.shape[0])
        return C
