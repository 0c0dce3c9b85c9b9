"""Problems made small enough for a CPU, without a number being computed."""

from __future__ import annotations

import types
from pathlib import Path

import pytest

from harness.model.errors import HarnessError

HEAD = "import torch\nimport torch.nn as nn\n\n"
PRODUCT = HEAD + """
class Model(nn.Module):
    def forward(self, a, b):
        return a @ b

N = 2048 * 2
KERNEL = 3

def get_inputs():
    return [torch.rand(N, N), torch.rand(N, 8192)]
"""
NORM = HEAD + """
class Model(nn.Module):
    def __init__(self, groups, channels):
        super().__init__()
        self.norm = nn.GroupNorm(groups, channels)

    def forward(self, x):
        return self.norm(x)

batch_size = 64
channels = 512
num_groups = 128
side = 128

def get_inputs():
    return [torch.rand(batch_size, channels, side, side)]

def get_init_inputs():
    return [num_groups, channels]
"""


@pytest.fixture(scope="module")
def shrink(benchmark_named):
    return benchmark_named("kernelbench_shrink")


def module_of(source):
    module = types.ModuleType("problem")
    exec(source, module.__dict__)
    return module


def test_sizes_are_halved_until_a_call_is_cheap_wherever_they_stand(shrink):
    module = module_of(shrink.shrunk(PRODUCT, Path("1_Product.py")))
    a, b = module.get_inputs()
    assert 2 * a.shape[0] * a.shape[1] * b.shape[1] <= shrink.MOST_FLOPS
    assert a.shape[1] == b.shape[0] >= 16 and b.shape[1] >= 16
    assert module.KERNEL == 3, "what is small is no size"


def test_groups_keep_some_elements_each(shrink):
    module = module_of(shrink.shrunk(NORM, Path("2_Norm.py")))
    assert module.channels / module.num_groups >= 4
    (x,) = module.get_inputs()
    assert x.numel() <= shrink.MOST_ELEMENTS
    module.Model(*module.get_init_inputs())(x)


def test_a_problem_that_is_cheap_keeps_its_sizes(shrink):
    small = PRODUCT.replace("2048 * 2", "32").replace("8192", "64")
    assert [each.shape for each in module_of(shrink.shrunk(small, Path("3.py"))).get_inputs()] == [(32, 32), (32, 64)]


@pytest.mark.parametrize(("change", "words"), [
    (("return a @ b", "return a * a.sum().item()"), "on the meta device it raises"),
    (("return a @ b", "return a @ b @ torch.rand(8192, 200000)"), "still costs"),
])
def test_what_cannot_be_made_small_is_refused_in_words(shrink, change, words):
    with pytest.raises(HarnessError, match=f"4_Product.py cannot be shrunk: .*{words}"):
        shrink.shrunk(PRODUCT.replace(*change), Path("4_Product.py"))
