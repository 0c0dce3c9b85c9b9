"""The packed-accessor gradients of tril(A @ B) are there for float and for double, and right in both."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from harness.build.toolchain import arch_of
from harness.model.candidate import read_candidate
from harness.model.paths import REPOSITORY
from harness.model.verdict import Status

from .conftest import needs_nvcc

pytestmark = pytest.mark.processes

PATH = REPOSITORY / "candidates" / "tril_matmul_backward" / "packed_accessor.py"
KERNELS = ("forward_kernel", "gradient_of_A_kernel", "gradient_of_B_kernel")
# A worker's own way to a candidate, in a process of its own; what it returns beside autograd of the reference.
COMPARES = """
import json, sys
import torch
from pathlib import Path
from harness.worker import extensions
from harness.protocol.source_import import import_source
path, folder, manifest = sys.argv[1:]
extensions.install(json.loads(manifest), folder)
call = import_source(Path(path)).ModelNew()
torch.manual_seed(0)
for dtype in (torch.float32, torch.float64):
    for size in (1, 17, 100):
        made = [torch.randn(size, size, dtype=dtype, device="cuda").tril() for _ in "ABG"]
        found = []
        for forward, cast in ((call, dtype), (lambda a, b: torch.tril(a @ b), torch.float64)):
            a, b = (each.detach().clone().to(cast).requires_grad_() for each in made[:2])
            c = forward(a, b)
            c.backward(made[2].to(cast))
            assert c.dtype == a.grad.dtype == cast
            found.append((c.detach(), a.grad, b.grad))
        terms = size * torch.finfo(dtype).eps
        for got, expected in zip(*found):
            assert (got.double() - expected).abs().max() <= terms * max(1.0, expected.abs().max().item()), (dtype, size)
print("right")
"""


@needs_nvcc
@pytest.mark.slow
def test_each_kernel_is_compiled_for_both_types(build_pool):
    (build,) = build_pool.build(read_candidate(PATH))
    assert build.verdict.status is Status.COMPILED, build.verdict.reason
    names = [kernel.kernel for kernel in build.kernels]
    for kernel in KERNELS:
        assert sorted(name.partition("<")[2].partition(">")[0] for name in names if kernel in name) == ["double", "float"]


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_forward_and_both_gradients_are_autograds_in_float_and_in_double(build_pool):
    import torch

    build_pool.device_arch = arch_of(torch.cuda.get_device_capability())
    candidate = read_candidate(PATH)
    (build,) = build_pool.build(candidate)
    assert build.verdict is None, build.verdict
    arguments = [str(PATH), str(PATH.parent), json.dumps(build.manifest)]
    ran = subprocess.run([sys.executable, "-c", COMPARES, *arguments], capture_output=True, text=True, cwd=REPOSITORY)
    assert ran.stdout == "right\n", ran.stderr
