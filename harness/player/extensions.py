"""Stand-ins for `load_inline` and `load` that open what the builder produced and compile nothing.

The manifest maps the content key of each call to one shared object, whose hash the referee verified before this
process started.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from types import BuiltinFunctionType, ModuleType
from typing import Any

import torch
import torch.utils.cpp_extension as cpp_extension

from harness.wire.extension_key import extension_key


# The functions of all modules opened so far, by their identity: a profiled launch tells calls of them from others. The
# module that a function names as its own is anybody's to write.
opened_functions: dict[int, BuiltinFunctionType] = {}
# The operators that came with them, as "namespace::name". Marks, and operators written in Python, can have such names
# too, so that only what runs inside a call of one of the functions above counts as theirs.
opened_operators: set[str] = set()
_operator_names = torch._C._dispatch_get_all_op_names


class NotBuilt(RuntimeError):
    """Raised inside a candidate that asks here for an extension that its build did not produce."""


def install(manifest: dict[str, dict[str, Any]], folder: str | os.PathLike[str]) -> None:
    """Replace the two compile calls of a candidate that lies in `folder`. `manifest[key]` holds module_name, path and
    is_python_module.
    """
    cpp_extension.load_inline = _loader("load_inline", manifest, folder)
    cpp_extension.load = _loader("load", manifest, folder)


def _loader(kind: str, manifest: dict[str, dict[str, Any]], folder: str | os.PathLike[str]) -> Callable[..., Any]:
    original = getattr(cpp_extension, kind)
    opened: dict[str, Any] = {}

    def open_built(*positional: Any, **named: Any) -> Any:
        arguments = _bind(original, positional, named)
        key = extension_key(kind, arguments, folder)
        if key not in manifest:
            raise NotBuilt(
                f"{kind}(name={arguments.get('name')!r}) was not called with these arguments when the candidate was "
                "built; sources and flags may not depend on the process that runs them"
            )
        if key not in opened:
            opened[key] = _open(manifest[key])
        return opened[key]

    return open_built


def _bind(function: Callable[..., Any], positional: tuple, named: dict[str, Any]) -> dict[str, Any]:
    import inspect

    return dict(inspect.signature(function).bind(*positional, **named).arguments)


def _open(entry: dict[str, Any]) -> ModuleType | None:
    before = set(_operator_names())
    module = _opened(entry)
    remember_operators(before)
    if module is not None:
        remember(module)
    return module


def _opened(entry: dict[str, Any]) -> ModuleType | None:
    if not entry["is_python_module"]:
        torch.ops.load_library(entry["path"])
        return None
    name, path = entry["module_name"], entry["path"]
    loader = importlib.machinery.ExtensionFileLoader(name, path)
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(name, module)
    loader.exec_module(module)
    return module


def remember_operators(before: set[str]) -> None:
    """Take the operators that were not there `before` for those of an extension, unless their namespace was."""
    own_namespaces = {name.partition("::")[0] for name in opened_operators}
    others = {name.partition("::")[0] for name in before} - own_namespaces
    for full_name in sorted(set(_operator_names()) - before):
        namespace, _, name = full_name.partition("::")
        name = name.partition(".")[0]
        if namespace in others:
            continue
        inside = getattr(torch.ops, namespace)
        vars(inside).pop(name, None)  # what was looked up before knows nothing of an overload that has come since
        with suppress(AttributeError, RuntimeError):
            packet = getattr(inside, name)
            for function in (packet._op, *(getattr(packet, overload)._op for overload in packet.overloads())):
                if isinstance(function, BuiltinFunctionType) and _is_pybinds(function.__self__):
                    opened_functions[id(function)] = function
            opened_operators.add(f"{namespace}::{name}")


def remember(module: ModuleType) -> None:
    """Take the functions that `module` and the modules inside it have for those of an extension."""
    waiting, seen = [module], set()
    while waiting:
        current = waiting.pop()
        seen.add(id(current))
        for value in list(vars(current).values()):
            if isinstance(value, BuiltinFunctionType) and _is_of(value, current):
                opened_functions[id(value)] = value
            elif isinstance(value, ModuleType) and id(value) not in seen:
                if value.__name__.startswith(f"{module.__name__}."):
                    waiting.append(value)


def _is_of(function: BuiltinFunctionType, module: ModuleType) -> bool:
    """Whether `function` was made for `module`, which may hold others' too: bound to it or to pybind11's record."""
    bound_to = function.__self__
    if bound_to is module:
        return True
    return function.__module__ == module.__name__ and _is_pybinds(bound_to)


def _is_pybinds(bound_to: Any) -> bool:
    kind = type(bound_to).__name__
    return kind == "PyCapsule" or kind.startswith("pybind11")
