"""Nested inputs and outputs as a JSON skeleton plus a flat list of tensors.

A KernelBench model may take and return tensors, numbers, strings and None in tuples, lists and dicts. The skeleton
crosses the sandbox as JSON, the tensors as raw bytes; nothing is pickled. Tensors in a dict are counted in the order of
its keys, so that two results with the same keys compare whichever was put in first.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import torch

_CONTAINERS = (list, tuple, dict, OrderedDict, torch.Size)
_SCALARS = (bool, int, float, str, type(None))


def flatten(value: Any) -> tuple[Any, list[torch.Tensor]]:
    """Return (skeleton, tensors). Raises TypeError, naming the type, for what JSON and raw bytes cannot carry."""
    tensors: list[torch.Tensor] = []
    return _walked(value, tensors), tensors


def _walked(item: Any, tensors: list[torch.Tensor]) -> Any:
    """The skeleton of `item`, whose tensors are added to the list.

    No function within `flatten`: one that calls itself is in a cycle with what it sees, and would keep the tensors, and
    gigabytes of a device with them, until somebody collects garbage.
    """
    if isinstance(item, torch.Tensor):
        tensors.append(item)
        return {"tensor": len(tensors) - 1}
    if isinstance(item, _SCALARS):
        return {"value": item}
    if isinstance(item, (list, tuple)) and _holds_what_it_shows(item):
        return {"tuple" if isinstance(item, tuple) else "list": [_walked(part, tensors) for part in item]}
    # A key of a class of its own may compute something when it is hashed or sorted.
    if isinstance(item, dict) and _holds_what_it_shows(item) and all(type(key) is str for key in item):
        made = {key: _walked(item[key], tensors) for key in sorted(item)}
        return {"dict": {key: made[key] for key in item}}
    raise TypeError(f"a {type(item).__name__} cannot cross to the candidate's process")


def _holds_what_it_shows(item: Any) -> bool:
    """Whether a container is a plain one, or of a class (a named tuple) that leaves to Python how it is gone through.

    One that has its own way may compute its parts when it is looked at, and others each time.
    """
    kind = type(item)
    ways = {"__iter__", "__getitem__", "__len__", *(("items", "keys", "values") if isinstance(item, dict) else ())}
    return kind in _CONTAINERS or (type(kind) is type and not any(
        ways & vars(each).keys() for each in kind.__mro__ if each not in (*_CONTAINERS, object)
    ))


def rebuild(skeleton: Any, tensors: list[torch.Tensor]) -> Any:
    """The inverse of `flatten`. Raises ValueError for a skeleton that `flatten` would not have made."""
    if not isinstance(skeleton, dict) or len(skeleton) != 1:
        raise ValueError("not a skeleton")
    ((kind, body),) = skeleton.items()
    if kind == "tensor":
        return tensors[body]
    if kind == "value":
        return body
    if kind == "list":
        return [rebuild(part, tensors) for part in body]
    if kind == "tuple":
        return tuple(rebuild(part, tensors) for part in body)
    if kind == "dict":
        return {key: rebuild(part, tensors) for key, part in body.items()}
    raise ValueError(f"not a skeleton: {kind!r}")


def shape_of(skeleton: Any) -> Any:
    """The skeleton without its values and with tuples as lists: what two results must have in common."""
    ((kind, body),) = skeleton.items()
    if kind in ("tensor", "value"):
        return kind
    if kind in ("list", "tuple"):
        return [shape_of(part) for part in body]
    return {key: shape_of(part) for key, part in sorted(body.items())}


def values_of(skeleton: Any) -> list[Any]:
    """The plain values (not tensors) of a skeleton, in order."""
    ((kind, body),) = skeleton.items()
    if kind == "value":
        return [body]
    if kind in ("list", "tuple"):
        return [value for part in body for value in values_of(part)]
    if kind == "dict":
        return [value for _, part in sorted(body.items()) for value in values_of(part)]
    return []
