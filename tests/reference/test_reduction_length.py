"""The longest sum of a reference, found by watching what it calls."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from harness.reference.reduction_length import WatchedRun

A, B = torch.ones(6, 40), torch.ones(40, 5)
IMAGE = torch.ones(2, 8, 9, 9)


def longest(call) -> int:
    with torch.no_grad(), WatchedRun() as watch:
        call()
    return watch.longest_sum


@pytest.mark.parametrize(("call", "terms"), [
    (lambda: A @ B, 40),
    (lambda: torch.matmul(A, B), 40),
    (lambda: torch.mm(A, B).sum(), 40),
    (lambda: torch.addmm(torch.ones(5), A, B), 40),
    (lambda: torch.bmm(torch.ones(3, 4, 17), torch.ones(3, 17, 2)), 17),
    (lambda: torch.einsum("bik,kj->bij", torch.ones(3, 4, 17), torch.ones(17, 2)), 17),
    (lambda: torch.einsum("abc,abc->a", torch.ones(3, 4, 5), torch.ones(3, 4, 5)), 20),
    (lambda: F.linear(A, torch.ones(3, 40)), 40),
    (lambda: nn.Linear(40, 3)(A), 40),
    (lambda: F.conv2d(IMAGE, torch.ones(4, 8, 3, 3)), 72),
    (lambda: nn.ConvTranspose2d(8, 4, 3)(IMAGE), 72),
    (lambda: A.sum(), 240),
    (lambda: A.sum(dim=1), 40),
    (lambda: A.mean(-1, keepdim=True), 40),
    (lambda: torch.logsumexp(A, 0), 6),
    (lambda: F.softmax(A, dim=-1), 40),
    (lambda: torch.cumsum(A, 1), 40),
    (lambda: F.layer_norm(A, (40,)), 40),
    (lambda: nn.LayerNorm([6, 40])(A), 240),
    (lambda: F.group_norm(IMAGE, 2), 4 * 81),
    (lambda: nn.BatchNorm2d(8)(IMAGE), 2 * 81),
    (lambda: F.avg_pool2d(IMAGE, 3), 9),
    (lambda: F.mse_loss(A, A), 240),
    (lambda: F.scaled_dot_product_attention(*[torch.ones(1, 2, 7, 16)] * 3), 16),
])
def test_the_longest_sum_of_a_call_is_found(call, terms):
    assert longest(call) == terms


@pytest.mark.parametrize("call", [
    lambda: torch.relu(A), lambda: A + A, lambda: A.t().contiguous(), lambda: F.gelu(A), lambda: A.amax(1), lambda: A[:2],
    lambda: torch.ones(0, 4).sum(),
])
def test_what_sums_nothing_has_sums_of_one(call):
    assert longest(call) == 1


@pytest.mark.parametrize(("call", "narrow"), [
    (lambda wide: wide.float().double(), True), (lambda wide: torch.softmax(wide, 0, dtype=torch.float32), True),
    (lambda wide: torch.cat([wide, wide]).half(), True), (lambda wide: wide * 2, False),
    (lambda wide: torch.min(wide, torch.tensor(0.5)), False), (lambda wide: wide + torch.ones(3), False),
])
def test_a_cast_inside_is_seen_and_a_constant_is_none(call, narrow):
    with WatchedRun() as watch:
        call(torch.ones(3, dtype=torch.float64))
    assert watch.narrow is narrow


@pytest.mark.parametrize(("call", "products"), [
    (lambda: A @ B, True), (lambda: nn.Conv2d(8, 4, 3)(IMAGE), True), (lambda: torch.einsum("ij,jk->ik", A, B), True),
    (lambda: F.mse_loss(A, A), False), (lambda: torch.softmax(A, 1), False),
])
def test_whether_there_is_a_product_is_seen(call, products):
    with torch.no_grad(), WatchedRun() as watch:
        call()
    assert watch.has_products is products
