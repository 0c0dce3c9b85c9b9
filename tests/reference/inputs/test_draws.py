"""Draws are made to differ where a file has them repeat, and what still repeats is told."""

from __future__ import annotations

import random
import types

import numpy
import pytest
import torch

from harness.reference.inputs.draws import Drawing, Way
from harness.reference.inputs.sets import draw_set

CPU = torch.device("cpu")
HEAD = "import random\nimport numpy as np\nimport torch\nfrom torch import manual_seed\n"


def drawing_of(body: str) -> Drawing:
    def run():
        module = types.ModuleType("reference")
        exec(HEAD + body, module.__dict__)
        return module

    return Drawing(run(), run, list)


def settled(body: str):
    """The way that is chosen, whether anything differs, and two draws by it."""
    drawing = drawing_of(body)
    varies = drawing.settle(lambda: draw_set(drawing, CPU))
    return drawing.way, varies, [draw_set(drawing, CPU) for _ in range(2)]


FRESH = "def get_inputs():\n    return [torch.rand(8), 3]\n"
SEEDED = "def get_inputs():\n    torch.manual_seed(0)\n    return [torch.rand(8)]\n"
OWN_GENERATOR = "def get_inputs():\n    g = torch.Generator().manual_seed(3)\n    return [torch.rand(8, generator=g)]\n"
BY_NUMPY = "def get_inputs():\n    np.random.seed(0)\n    return [torch.from_numpy(np.random.rand(8))]\n"
BY_NUMPYS_GENERATOR = "def get_inputs():\n    return [torch.from_numpy(np.random.default_rng(5).random(8))]\n"
BY_RANDOM = "def get_inputs():\n    random.seed(0)\n    return [torch.tensor([random.random()])]\n"
AT_MODULE_LEVEL = "torch.manual_seed(0)\nKEPT = torch.rand(8)\ndef get_inputs():\n    return [KEPT]\n"
IMPORTED_SEED = "manual_seed(0)\nKEPT = torch.rand(8)\ndef get_inputs():\n    manual_seed(1)\n    return [KEPT, torch.rand(3)]\n"
CACHED = "KEPT = []\ndef get_inputs():\n    if not KEPT:\n        KEPT.append(torch.rand(8))\n    return KEPT\n"
WITH_A_MASK = "def get_inputs():\n    return [torch.rand(8), torch.tril(torch.ones(4, 4))]\n"
CONSTANT = "def get_inputs():\n    return [torch.arange(8.0)]\n"
NUMBERS = "def get_inputs():\n    return [random.random()]\n"
NOTHING = "def get_inputs():\n    return []\n"


@pytest.mark.parametrize(
    ("body", "way"),
    [(FRESH, Way.AS_WRITTEN), (SEEDED, Way.UNSEEDED), (OWN_GENERATOR, Way.UNSEEDED), (BY_NUMPY, Way.UNSEEDED),
     (BY_NUMPYS_GENERATOR, Way.UNSEEDED), (BY_RANDOM, Way.UNSEEDED), (AT_MODULE_LEVEL, Way.ANEW),
     (IMPORTED_SEED, Way.ANEW), (CACHED, Way.ANEW), (WITH_A_MASK, Way.AS_WRITTEN)],
    ids=["fresh", "seeded", "a generator", "numpy", "numpy's generator", "random", "at module level", "an imported seed",
         "cached", "a mask beside it"],
)
def test_the_first_way_is_taken_in_which_the_most_tensors_differ(body, way):
    chosen, varies, (first, second) = settled(body)
    assert (chosen, varies) == (way, True)
    assert first.digests()[0] != second.digests()[0]


@pytest.mark.parametrize("body", [SEEDED, OWN_GENERATOR, BY_NUMPY, BY_NUMPYS_GENERATOR, BY_RANDOM, AT_MODULE_LEVEL, CACHED])
def test_such_a_draw_too_is_what_its_seed_gives(body):
    drawing = drawing_of(body)
    drawing.settle(lambda: draw_set(drawing, CPU))
    first, second = (draw_set(drawing, CPU, seed=11) for _ in range(2))
    assert first.digest() == second.digest()


@pytest.mark.parametrize("body", [CONSTANT, NOTHING])
def test_what_repeats_in_every_way_is_drawn_as_it_is_written(body):
    way, varies, _ = settled(body)
    assert (way, varies) == (Way.AS_WRITTEN, False)


def test_numbers_that_differ_are_inputs_that_differ():
    assert settled(NUMBERS)[1]


def test_outside_a_draw_seeds_count_as_ever():
    settled(AT_MODULE_LEVEL)
    for seed in (torch.manual_seed, random.seed, numpy.random.seed):
        seed(4)
    first = torch.rand(1).item(), random.random(), numpy.random.rand(), torch.Generator().manual_seed(2).initial_seed()
    for seed in (torch.manual_seed, random.seed, numpy.random.seed):
        seed(4)
    assert first == (torch.rand(1).item(), random.random(), numpy.random.rand(), 2)


def test_a_draw_that_raises_leaves_the_seeds_as_they_were():
    drawing = drawing_of("def get_inputs():\n    raise ValueError\n")
    drawing.way = Way.UNSEEDED
    before = torch.manual_seed, torch.Generator, random.seed
    with pytest.raises(ValueError):
        drawing()
    assert before == (torch.manual_seed, torch.Generator, random.seed)
