"""Stand-ins for `load_inline` and `load` that open what the builder produced and compile nothing. The manifest maps the
content key of each call to one shared object, whose hash the judge verified before this process started. A call that it
does not have is kept as asked for: the judge may have it built, and start another process that finds it.
"""

from __future__ import annotations

import ctypes
import importlib.machinery
import importlib.util
import inspect
import json
import os
import sys
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from types import BuiltinFunctionType, ModuleType
from typing import Any

import torch
import torch.utils.cpp_extension as cpp_extension

from harness.protocol.extension_call import call_as_json
from harness.protocol.extension_key import extension_key
from harness.worker import address_use


# The functions of all modules opened so far, by their identity: a profiled launch tells calls of them from others. The
# module that a function names as its own is anybody's to write.
opened_functions: dict[int, BuiltinFunctionType] = {}
# The operators that came with them, as "namespace::name". Marks, and operators written in Python, can have such names
# too, so that only what runs inside a call of one of the functions above counts as theirs.
opened_operators: set[str] = set()
_operator_names = torch._C._dispatch_get_all_op_names
_word, _word_at = ctypes.c_size_t, ctypes.c_size_t.from_address


# The calls for which there was nothing to open, as they are told to the judge, each once.
_asked: dict[str, dict[str, Any]] = {}
# The most that is told of them; what is more is not built.
_MOST_ASKED_CHARACTERS = 1 << 20


class NotBuilt(RuntimeError):
    """Raised inside a candidate that asks here for an extension that its build did not produce."""


class _NotYetBuilt:
    """What a candidate gets for an extension that is going to be built: whatever it wants of it, it cannot have here."""

    def __init__(self, why: str) -> None:
        self._why = why

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise NotBuilt(self._why)


def install(
    manifest: dict[str, dict[str, Any]], folder: str | os.PathLike[str], refused: Collection[str] = (), *,
    may_ask: bool = False,
) -> None:
    """Replace the two compile calls of a candidate that lies in `folder`. `manifest[key]` holds module_name, path and
    is_python_module; `refused` are the keys of calls that no compiler takes. Where it `may_ask`, a call with another
    key is kept for `asked`, and what it returns is of no use; else it raises.
    """
    for kind in ("load_inline", "load"):
        setattr(cpp_extension, kind, _loader(kind, manifest, folder, refused, may_ask=may_ask))


def asked() -> list[dict[str, Any]]:
    """The calls that were kept since this was asked last, as JSON has them."""
    calls = list(_asked.values())
    _asked.clear()
    return calls


def _loader(
    kind: str, manifest: dict[str, dict[str, Any]], folder: str | os.PathLike[str], refused: Collection[str], *,
    may_ask: bool,
) -> Callable[..., Any]:
    original = getattr(cpp_extension, kind)
    opened: dict[str, Any] = {}

    def open_built(*positional: Any, **named: Any) -> Any:
        arguments = dict(inspect.signature(original).bind(*positional, **named).arguments)
        key, call = extension_key(kind, arguments, folder), f"{kind}(name={arguments.get('name')!r})"
        if key in refused:
            raise NotBuilt(f"{call} could not be built")
        if key in manifest:
            if key not in opened:
                opened[key] = _open(manifest[key], arguments.get("name"))
            return opened[key]
        why = (
            f"{call} was not called with these arguments when the candidate was built; sources and flags may not depend on "
            "the process that runs them"
        )
        if not may_ask or not _keep_asked(key, kind, arguments):
            raise NotBuilt(why)
        return _NotYetBuilt(why)

    return open_built


def _keep_asked(key: str, kind: str, arguments: dict[str, Any]) -> bool:
    """Whether there is room to tell the judge of this call."""
    call = call_as_json(kind, arguments)
    if len(json.dumps([*_asked.values(), call])) > _MOST_ASKED_CHARACTERS:
        return False
    _asked[key] = call
    return True


def _open(entry: dict[str, Any], asked_name: Any = None) -> ModuleType | None:
    before = set(_operator_names())
    module = load_entry(entry)
    remember_operators(before)
    _name_operators(entry["module_name"], asked_name)
    if module is not None:
        remember(module, address_use.memory_of(entry["path"]))
    return module


def load_entry(entry: Mapping[str, Any]) -> ModuleType | None:
    """Load what an `entry` of a manifest names: a module, or None for a library of operators."""
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


def _name_operators(built: str, name: Any) -> None:
    """Have operators in the extension's own namespace found under the name that this process gave it, too."""
    has_own = any(each.startswith(f"{built}::") for each in opened_operators)
    if has_own and isinstance(name, str) and name != built and name not in vars(torch.ops):
        setattr(torch.ops, name, getattr(torch.ops, built))


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


def remember(module: ModuleType, memory: Collection[range] = ()) -> None:
    """Take the functions of `module` and those inside it for an extension's, whose code lies in `memory` if known."""
    waiting, seen = [module], set()
    while waiting:
        current = waiting.pop()
        seen.add(id(current))
        for value in list(vars(current).values()):
            if isinstance(value, BuiltinFunctionType) and _is_of(value, current) and _is_code_in(value, memory):
                opened_functions[id(value)] = value
            elif isinstance(value, ModuleType) and id(value) not in seen:
                if value.__name__.startswith(f"{module.__name__}."):
                    waiting.append(value)


def _is_code_in(function: BuiltinFunctionType, memory: Collection[range]) -> bool:
    """Whether what Python calls for `function` lies in `memory`: what it says of itself, an extension can write into it."""
    if not memory:
        return True
    # Behind what every object has comes the function's definition, of which the second word is what is called.
    definition = _word_at(id(function) + object.__basicsize__).value
    address = _word_at(definition + ctypes.sizeof(_word)).value
    return any(address in stretch for stretch in memory)


def _is_of(function: BuiltinFunctionType, module: ModuleType) -> bool:
    """Whether `function` was made for `module`, which may hold others' too: bound to it or to pybind11's record."""
    bound_to = function.__self__
    return bound_to is module or (function.__module__ == module.__name__ and _is_pybinds(bound_to))


def _is_pybinds(bound_to: Any) -> bool:
    kind = type(bound_to).__name__
    return kind == "PyCapsule" or kind.startswith("pybind11")
