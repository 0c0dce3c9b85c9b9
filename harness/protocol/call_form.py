"""How a model is called and constructed: with a list of arguments, or with some by name, as `[[positional], {named}]`.
Only the reference's own signature decides which it is; that crosses the sandbox, so that a candidate is called alike.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import torch


def arguments_of(function: Callable[..., Any], returned: Any) -> tuple[list[Any], bool]:
    """What `returned` (by get_inputs or get_init_inputs) passes to `function`: a list, and whether some are by name.

    A dict has all by name. A list of a list and a dict has some by name where `function` can be called so, and either
    cannot be called with these two as they are, or has a parameter of each name. Raises TypeError for others.
    """
    if isinstance(returned, dict):
        return [[], returned], True
    if not isinstance(returned, (list, tuple)):
        raise TypeError(f"it returns a {type(returned).__name__}, not a list; write return [{_shown(returned)}]")
    return list(returned), _has_named(function, returned)


def called(function: Callable[..., Any], arguments: Sequence[Any], by_name: bool) -> Any:
    """`function` called with what `arguments_of` made."""
    if not by_name:
        return function(*arguments)
    positional, named = arguments
    return function(*positional, **named)


class ByName(torch.nn.Module):
    """`model` for callers that pass `[positional], {named}`."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, positional: Sequence[Any], named: Mapping[str, Any]) -> Any:
        return self.model(*positional, **named)


def _has_named(function: Callable[..., Any], values: Sequence[Any]) -> bool:
    if len(values) != 2 or not isinstance(values[0], (list, tuple)) or not isinstance(values[1], dict):
        return False
    positional, named = values
    if not _binds(function, positional, named):
        return False
    return not _binds(function, values, {}) or named.keys() <= _names_of(function)


def _binds(function: Callable[..., Any], positional: Sequence[Any], named: Mapping[str, Any]) -> bool:
    with suppress(TypeError, ValueError):  # the second where a function has no signature to be read
        inspect.signature(function).bind(*positional, **named)
        return True
    return False


def _names_of(function: Callable[..., Any]) -> set[str]:
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return {name for name, each in inspect.signature(function).parameters.items() if each.kind in kinds}


def _shown(returned: Any) -> str:
    return "x" if isinstance(returned, torch.Tensor) else str(returned)[:40]
