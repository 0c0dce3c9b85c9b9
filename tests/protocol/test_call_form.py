"""Which lists of arguments are [[positional], {named}], by the signature of what they are for."""

from __future__ import annotations

import pytest
import torch

from harness.protocol.call_form import ByName, arguments_of, called
from harness.protocol.passes import FORWARD, FORWARD_BACKWARD, as_called


def of_two(x, y=None):
    return x, y


def of_named(x, *, scale=1.0):
    return x, scale


def of_list_and_dict(parts, options):
    return parts, options


def of_anything(*positional, **named):
    return positional, named


@pytest.mark.parametrize(
    ("function", "returned", "by_name"),
    [
        (of_two, [1, 2], False),
        (of_two, [[1], {"y": 2}], True),
        (of_two, [[1, 2], {}], True),
        (of_two, [[1], {"z": 2}], False),
        (of_two, [[1, 2, 3], {"y": 2}], False),
        (of_named, [[1], {"scale": 2.0}], True),
        (of_list_and_dict, [[1, 2, 3], {"n": 2}], False),
        (of_list_and_dict, [[1], {"n": 2}], False),
        (of_list_and_dict, [[[1]], {"options": {}}], True),
        (of_anything, [[1], {"n": 2}], False),
        (of_anything, [[1], {"n": 2}, 3], False),
        (len, [[1], {}], True),
        (dict.get, [[1], {"z": 2}], False),
    ],
    ids=["two", "one by name", "none by name", "a name it has not", "too many", "by name alone", "a list and a dict",
         "a list of one and a dict", "a list and a dict by name", "anything goes", "three", "none by name of C's",
         "a name that C's has not"],
)
def test_a_list_and_a_dict_are_arguments_by_name_where_the_function_can_only_mean_that(function, returned, by_name):
    assert arguments_of(function, returned) == (returned, by_name)


def test_a_dict_has_all_arguments_by_name_and_a_tuple_is_a_list():
    assert arguments_of(of_named, {"x": 1, "scale": 3.0}) == ([[], {"x": 1, "scale": 3.0}], True)
    assert called(of_named, *arguments_of(of_named, {"x": 1, "scale": 3.0})) == (1, 3.0)
    assert called(of_two, *arguments_of(of_two, (1, 2))) == (1, 2)


@pytest.mark.parametrize("returned", [None, 3.0, torch.ones(2)], ids=["nothing", "a number", "a tensor"])
def test_what_is_no_list_is_refused_with_what_to_write(returned):
    with pytest.raises(TypeError, match=r"it returns a \w+, not a list; write return \["):
        arguments_of(of_two, returned)


class Scaled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.tensor([2.0]))

    def forward(self, x, *, shift):
        return x * self.weight + shift


def test_a_model_is_called_by_name_in_each_mode_and_gradients_of_all_come_in_order():
    x, shift, vector = torch.tensor([3.0]), torch.tensor([4.0]), torch.tensor([10.0])
    forward = as_called(Scaled(), FORWARD, by_name=True)
    assert isinstance(forward, ByName) and forward([x], {"shift": shift}).item() == 10.0
    made, gradients = as_called(Scaled(), FORWARD_BACKWARD, ["weight"], by_name=True)([[x], {"shift": shift}], [vector])
    assert made.item() == 10.0
    assert [each.item() for each in gradients] == [20.0, 10.0, 30.0]
