"""Products without their blocks of zeros: what is left out, that the result is the same, and when PyTorch's is used."""

from __future__ import annotations

import math
import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F

from harness.reference.block_sparse_models import MOST_APART, Search, without
from harness.reference.block_sparse_product import apart, block_of, held_by, product, worth_leaving_out
from harness.reference.inputs.families import one_hot_along
from harness.reference.reduction_length import WatchedRun

pytestmark = pytest.mark.usefixtures("one_thread")

BLOCK = 8
INFINITE, NAN = math.inf, math.nan


def normal(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64)


def lower(rows: int, columns: int | None = None) -> torch.Tensor:
    return torch.tril(normal(rows, columns or rows))


def banded(size: int, width: int) -> torch.Tensor:
    return torch.triu(torch.tril(normal(size, size), width), -width)


def block_diagonal(*sizes: int) -> torch.Tensor:
    """Full blocks along the diagonal, every second of them left empty."""
    return torch.block_diag(*[normal(size, size) * (number % 2 == 0) for number, size in enumerate(sizes)])


def without_zero_blocks(a: torch.Tensor, b: torch.Tensor, block: int) -> torch.Tensor | None:
    held = worth_leaving_out(a, b, block)
    return None if held is None else product(a, b, held.pieces)


def with_element(matrix: torch.Tensor, value: float) -> torch.Tensor:
    matrix = matrix.clone()
    matrix[-1, 0] = value
    return matrix


SPARSE = {
    "lower by lower": lambda: (lower(64), lower(64)),
    "upper by upper": lambda: (lower(64).t(), lower(64).t()),
    "lower by full": lambda: (lower(64), normal(64, 40)),
    "full by lower": lambda: (normal(40, 64), lower(64)),
    "transposed copies": lambda: (lower(64).t().contiguous(), lower(64).t().contiguous()),
    "ragged": lambda: (lower(61, 45), lower(45, 51)),
    "one short of a block, one over": lambda: (lower(63, 65), lower(65, 57)),
    "banded": lambda: (banded(70, 5), banded(70, 9)),
    "banded by full": lambda: (banded(70, 5), normal(70, 33)),
    "block-diagonal with holes": lambda: (block_diagonal(16, 24, 11, 5, 20), normal(76, 30)),
    "a masked half": lambda: (normal(48, 64) * (torch.arange(64) < 30), normal(64, 48)),
    "all zeros": lambda: (torch.zeros(64, 64, dtype=torch.float64), normal(64, 64)),
    "negative zeros": lambda: (lower(64) * 1.0, -torch.zeros(64, 64, dtype=torch.float64)),
    "an identity": lambda: (lower(64), torch.eye(64, dtype=torch.float64)),
    "one-hot lines": lambda: (lower(64), one_hot_along(lower(64).tril(), 0)),
    "magnitudes apart": lambda: (torch.ldexp(lower(64), torch.randint(-20, 21, (64, 64))), lower(64)),
    "every second row": lambda: (lower(128)[::2], lower(128)[:, ::2]),
    "every second term": lambda: (lower(64, 128)[:, ::2], lower(128)[::2]),
    "a window": lambda: (lower(90)[3:73, 3:73], lower(90)[3:73, 3:73]),
    "tiny elements": lambda: (lower(64) * 1e-300, lower(64)),
}


@pytest.mark.parametrize("make", SPARSE.values(), ids=SPARSE)
def test_the_product_is_the_same_without_its_zeros(make):
    a, b = make()
    made = without_zero_blocks(a, b, BLOCK)
    assert made is not None and made.is_contiguous() and made.dtype == torch.float64
    assert apart(made, a, b) <= MOST_APART
    assert torch.allclose(made, a @ b, rtol=0, atol=float(1e-13 * (a.abs() @ b.abs()).max()))


@pytest.mark.parametrize(("make", "blocks"), [
    (lambda: (lower(64), lower(64)), sum((8 - k) * (k + 1) for k in range(8))),
    (lambda: (lower(64).t(), lower(64).t()), sum((8 - k) * (k + 1) for k in range(8))),
    (lambda: (lower(64), normal(64, 64)), 36 * 8),
    (lambda: (block_diagonal(16, 16, 16, 16), normal(64, 64)), 2 * 2 * 2 * 8),
    (lambda: (torch.eye(64, dtype=torch.float64), lower(64)), 36),
    (lambda: (torch.zeros(64, 64, dtype=torch.float64), lower(64)), 0),
    (lambda: (normal(64, 64), normal(64, 64)), 512),
])
def test_the_work_is_what_the_blocks_leave(make, blocks):
    assert sum(each.work for each in held_by(*make(), BLOCK).pieces) == blocks * BLOCK**3


def test_integers_come_out_equal_to_the_bit():
    a, b = (torch.tril(torch.randint(-9, 10, (61, 61))).double() for _ in range(2))
    assert torch.equal(without_zero_blocks(a, b, BLOCK), a @ b)


def test_neighbours_with_the_same_rows_and_columns_are_multiplied_at_once():
    assert len(held_by(normal(20, 64), normal(64, 20), BLOCK).pieces) == 1
    assert len(held_by(block_diagonal(16, 8, 32), normal(56, 20), BLOCK).pieces) == 2


@pytest.mark.parametrize("make", [
    lambda: (normal(64, 64), normal(64, 64)),
    lambda: (banded(64, 50), normal(64, 64)),
    lambda: (normal(64, 64).triu(-40), normal(64, 64)),
    lambda: (normal(64, 64), torch.ones(64, 64, dtype=torch.float64).tril(56)),
], ids=["full", "a wide band", "a corner", "the corner of the last"])
def test_where_little_is_zero_the_plain_product_is_used(make):
    assert without_zero_blocks(*make(), BLOCK) is None


@pytest.mark.parametrize("value", [INFINITE, -INFINITE, NAN])
@pytest.mark.parametrize("change", [
    lambda a, b, value: (with_element(a, value), b), lambda a, b, value: (a, with_element(b, value)),
], ids=["first", "last"])
def test_zero_times_infinity_is_left_to_pytorch(value, change):
    a, b = change(lower(61), lower(61), value)
    assert held_by(a, b, BLOCK) is None and without_zero_blocks(a, b, BLOCK) is None
    assert not held_by(lower(61), lower(61), BLOCK).holds_all_of(a, b)


@pytest.mark.parametrize("make", SPARSE.values(), ids=SPARSE)
def test_what_a_product_holds_is_all_of_it_and_of_others_that_hold_no_more(make):
    a, b = make()
    held = held_by(a, b, BLOCK)
    assert held.holds_all_of(a, b) and held.holds_all_of(-3 * a, b) and held.holds_all_of(torch.zeros_like(a), b)
    made = product(a, b, held.pieces)
    assert apart(made, a, b) <= MOST_APART


def test_an_element_in_a_block_that_was_empty_is_seen_wherever_it_is():
    a, b = lower(64), lower(64)
    held = held_by(a, b, BLOCK)
    for row in range(64):
        for column in range(64):
            more = a.clone()
            more[row, column] += 1e-300
            added_to_a, added_to_b = held.holds_all_of(more, b), held.holds_all_of(a, more)
            in_an_empty_block = column // BLOCK > row // BLOCK
            assert bool(added_to_a) is bool(added_to_b) is not in_an_empty_block


def test_a_wrong_product_is_apart():
    a, b = lower(64), lower(64)
    right = a @ b
    assert apart(right, a, b, strip=24) == 0
    pieces = held_by(a, b, BLOCK).pieces
    assert apart(product(a, b, pieces[:-1]), a, b, strip=24) > 0.1
    above, lost = right.clone(), right.clone()
    above[0, 63], lost[40, 3] = 1e-300, NAN
    assert apart(above, a, b, strip=24) == INFINITE
    assert math.isnan(apart(lost, a, b, strip=24))


@pytest.mark.parametrize(
    ("inner", "block"), [(1, 128), (1000, 128), (2048, 256), (3000, 320), (4096, 512), (65536, 512)]
)
def test_a_block_is_an_eighth_of_the_sum_within_limits(inner, block):
    assert block_of(inner) == block


SIZE = 512
LINEAR = torch.nn.Linear(SIZE, SIZE).double().requires_grad_(False)
CALLS = {
    "@": lambda a, b: a @ b,
    "transposed": lambda a, b: a.T @ b.T,
    "linear": F.linear,
    "a layer with a bias": lambda a, b: LINEAR(a),
    "einsum": lambda a, b: torch.einsum("ik,kj->ij", a, b),
    "one in a batch": lambda a, b: torch.bmm(a[None], b[None]),
    "a batch of rows": lambda a, b: a.view(4, -1, SIZE) @ b,
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_whatever_call_makes_the_product(call, small_counts, watched):
    a, b = lower(SIZE), lower(SIZE)
    expected = call(a, b)
    with torch.no_grad(), Search() as search:
        assert torch.equal(call(a, b), expected)
    assert set(search.held) == {((SIZE, SIZE, SIZE), 0)}
    sound = []
    with torch.no_grad(), watched() as seen, without(search.held, sound):
        made = call(a, b)
    assert list(map(bool, sound)) == [True]
    assert "aten.addmm_.default" in seen.names
    assert not {"aten.mm.default", "aten.addmm.default", "aten.bmm.default"} & set(seen.names)
    assert made.shape == expected.shape and made.stride() == expected.stride()
    assert torch.allclose(made, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("call", [
    lambda: normal(SIZE, SIZE) @ normal(SIZE, SIZE),
    lambda: lower(256) @ lower(256),
    lambda: lower(2 * SIZE) @ normal(2 * SIZE, 16),
    lambda: lower(SIZE).float() @ lower(SIZE).float(),
    lambda: torch.addmm(lower(SIZE), lower(SIZE), lower(SIZE), beta=0.5),
    lambda: torch.sparse.mm(lower(SIZE).to_sparse(), lower(SIZE)),
    lambda: with_element(lower(SIZE), INFINITE) @ lower(SIZE),
    lambda: lower(SIZE).sum(),
], ids=["full", "small", "narrow", "fp32", "with a factor", "sparse tensors", "infinite", "no product"])
def test_nothing_is_found_where_there_is_nothing_to_win(call, small_counts):
    with Search() as search:
        call()
    assert search.held == {}


def test_a_product_that_takes_no_time_is_not_looked_at():
    with Search() as search:
        lower(SIZE) @ lower(SIZE)
    assert search.held == {}


def test_each_draw_is_looked_at_again(small_counts):
    with Search() as search:
        for _ in range(4):
            lower(SIZE) @ lower(SIZE)
    sound = []
    with without(search.held, sound):
        lower(SIZE) @ lower(SIZE)
        lower(SIZE) @ normal(SIZE, SIZE)
        with_element(lower(SIZE), NAN) @ lower(SIZE)
        banded(SIZE, 20).tril() @ lower(SIZE)
    assert list(map(bool, sound)) == [True, False, False, True]


def test_products_of_one_shape_are_told_apart_by_their_order(small_counts, watched):
    def model(a, b):
        return a @ b, b @ a, a.t() @ b.t()

    a, b = lower(SIZE), normal(SIZE, SIZE)
    with Search() as search:
        model(a, a), model(b, b), model(a, b)
    assert [number for _, number in search.held] == [0, 1, 2, 6, 7, 8]
    with Search() as search:
        expected = model(a, b)
    sound = []
    with watched() as seen, without(search.held, sound):
        made = model(a, b)
        again = a @ b  # one more than there were
    assert seen.names.count("aten.mm.default") == 1 and list(map(bool, sound)) == [True] * 3
    assert all(torch.allclose(each, other, rtol=0, atol=1e-11) for each, other in zip(made, expected))
    assert torch.allclose(again, expected[0], rtol=0, atol=1e-11)


def test_without_a_product_worth_it_nothing_is_watched(small_counts, watched):
    sound = []
    with watched() as seen, without({}, sound):
        lower(SIZE) @ lower(SIZE)
    assert "aten.mm.default" in seen.names and not sound


@pytest.mark.filterwarnings("ignore:.*torch.jit.trace.*:DeprecationWarning")
def test_who_watches_the_model_sees_its_own_calls_only(small_counts):
    a, b = lower(SIZE), lower(SIZE)
    scripted = torch.jit.trace(lambda a, b: torch.tril(a @ b), (a, b))
    with torch.no_grad(), WatchedRun() as alone:
        scripted(a, b)
    with torch.no_grad(), WatchedRun() as watch, Search() as search:
        scripted(a, b)
    assert search.held and watch.longest_sum == alone.longest_sum


@pytest.mark.gpu
def test_on_a_gpu_too(watched):
    a, b = (torch.tril(torch.randn(2800, 2600, device="cuda", dtype=torch.float64)) for _ in range(2))
    b = b.t()
    with torch.no_grad(), Search() as search:
        expected = a @ b
    assert set(search.held) == {((2800, 2600, 2800), 0)}
    sound = []
    with watched() as seen, without(search.held, sound):
        made = a @ b
    assert "aten.addmm_.default" in seen.names and list(map(bool, sound)) == [True]
    assert torch.allclose(made, expected, rtol=0, atol=1e-10)
    for value in (INFINITE, -INFINITE, NAN):
        assert held_by(with_element(a, value), b, 256) is None
        assert held_by(a, with_element(b, value), 256) is None
        assert not search.held[(2800, 2600, 2800), 0].holds_all_of(with_element(a, value), b)


@pytest.mark.processes
def test_the_search_does_not_import_pytorchs_compiler():
    code = (
        "import sys, torch\n"
        "from harness.reference.block_sparse_models import Search, without\n"
        "with Search(), without({(1, 1, 1): None}, []):\n"
        "    torch.ones(2, 2) @ torch.ones(2, 2)\n"
        "print('torch._dynamo' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "False"
