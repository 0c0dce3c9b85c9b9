"""Nested inputs and outputs, taken apart for the wire and put together again."""

from __future__ import annotations

import json
from collections import OrderedDict, namedtuple

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from harness.protocol import tree

SCALARS = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | st.text(max_size=8)
TENSORS = st.lists(st.integers(0, 3), max_size=3).map(torch.zeros)
NESTED = st.recursive(
    SCALARS | TENSORS,
    lambda inner: st.lists(inner, max_size=3)
    | st.lists(inner, max_size=3).map(tuple)
    | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


def alike(left: object, right: object) -> bool:
    if isinstance(left, torch.Tensor):
        return left is right
    if type(left) is not type(right):
        return False
    if isinstance(left, (list, tuple)):
        return len(left) == len(right) and all(map(alike, left, right))
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(alike(left[key], right[key]) for key in left)
    return left == right


@given(NESTED)
def test_what_is_flattened_and_sent_as_json_is_rebuilt_the_same(value):
    skeleton, tensors = tree.flatten(value)
    crossed = json.loads(json.dumps(skeleton))
    assert alike(value, tree.rebuild(crossed, tensors))


@given(NESTED)
def test_two_results_of_one_structure_have_one_shape_whatever_their_values(value):
    skeleton, tensors = tree.flatten(value)
    other, _ = tree.flatten(tree.rebuild(skeleton, [tensor + 1 for tensor in tensors]))
    assert tree.shape_of(skeleton) == tree.shape_of(other)


def test_a_list_and_a_tuple_of_the_same_tensors_have_the_same_shape():
    a, b = torch.zeros(1), torch.zeros(2)
    assert tree.shape_of(tree.flatten([a, b])[0]) == tree.shape_of(tree.flatten((a, b))[0])


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (torch.zeros(1), [torch.zeros(1)]),
        (torch.zeros(1), None),
        (torch.zeros(1), 1.0),
        ((torch.zeros(1), torch.zeros(1)), torch.zeros(2)),
        ({"a": torch.zeros(1)}, {"b": torch.zeros(1)}),
        ([torch.zeros(1), 1], [1, torch.zeros(1)]),
    ],
)
def test_results_of_different_structure_have_different_shapes(left, right):
    assert tree.shape_of(tree.flatten(left)[0]) != tree.shape_of(tree.flatten(right)[0])


def test_plain_values_are_found_in_order_and_dicts_in_the_order_of_their_keys():
    value = (1, torch.zeros(1), [True, "two"], {"z": 3.0, "a": None})
    assert tree.values_of(tree.flatten(value)[0]) == [1, True, "two", None, 3.0]


def test_one_tensor_given_twice_crosses_twice():
    same = torch.ones(2)
    skeleton, tensors = tree.flatten([same, same])
    assert len(tensors) == 2
    assert tree.rebuild(skeleton, tensors)[0] is same


def test_an_ordered_dict_is_carried_as_a_dict():
    skeleton, _ = tree.flatten(OrderedDict(b=1, a=2))
    assert tree.rebuild(skeleton, []) == {"a": 2, "b": 1}


def test_a_size_is_carried_as_a_tuple():
    assert tree.rebuild(tree.flatten([torch.rand(2, 3).shape])[0], []) == [(2, 3)]


@pytest.mark.parametrize(
    ("value", "named"),
    [({1: 2}, "dict"), ({1, 2}, "set"), (object(), "object"), (1j, "complex"), (b"raw", "bytes"), (len, "builtin")],
)
def test_what_cannot_cross_is_refused_by_the_name_of_its_type(value, named):
    with pytest.raises(TypeError, match=named):
        tree.flatten([value])


@pytest.mark.parametrize(
    "skeleton", [None, 3, [], {}, {"tensor": 0, "value": 1}, {"code": "import os"}, {"list": [7]}, "tensor"]
)
def test_a_skeleton_that_was_never_made_here_is_refused(skeleton):
    with pytest.raises(ValueError, match="not a skeleton"):
        tree.rebuild(skeleton, [torch.zeros(1)])


def test_a_container_that_has_its_own_way_of_being_gone_through_is_not_carried():
    """It may compute its parts when it is looked at, and give others each time."""
    class Lazy(tuple):
        def __iter__(self):
            return iter((torch.ones(1),))

    class LazyDict(dict):
        def items(self):
            return [("a", torch.ones(1))]

    class Meta(type):
        pass

    class Made(list, metaclass=Meta):
        pass

    for value in (Lazy((1,)), LazyDict(a=1), Made([1])):
        with pytest.raises(TypeError, match="cannot cross"):
            tree.flatten(value)


def test_a_named_tuple_is_carried_as_a_tuple():
    skeleton, tensors = tree.flatten(torch.max(torch.ones(2, 2), dim=1))
    assert list(skeleton) == ["tuple"] and len(tensors) == 2
    assert tree.flatten(namedtuple("Pair", "a b")(1, 2))[0] == {"tuple": [{"value": 1}, {"value": 2}]}
