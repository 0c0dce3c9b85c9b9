"""A foreign problem as a KernelBench module: the sizes of its cases, and the text, in which the foreign one is unchanged.

A case is a workload or a benchmark. Its sizes are its whole numbers, by name, where these tell all cases apart.
Otherwise they are its number in the file. The module imports nothing of this package: it is run by the judge and by the
workers of the baselines alike. An input that is a mapping {"empty": shape, "dtype": name} stands for an output that the
candidate writes to.
"""

from __future__ import annotations

import keyword
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

_NUMBER = "case"
# By the modules that are written.
_TAKEN = frozenset({"torch", "types", "linecache", "builtins", "sys", "Model", "get_inputs"})


@dataclass(frozen=True)
class Case:
    """One entry: `values` by name, and the `inputs` that a workload describes; `sizes` tell it apart. Without
    `is_timed` it may only be checked.
    """

    values: Mapping[str, Any]
    inputs: Mapping[str, Any]
    is_timed: bool = True
    sizes: Mapping[str, int] | None = None

    @property
    def extent(self) -> int:
        """The product of its whole numbers, by which the largest case is found."""
        return math.prod(value for value in self.values.values() if _is_size(value))


def with_sizes(cases: Sequence[Case]) -> list[Case]:
    """Return the cases with their sizes, the largest that may be timed first, and none twice."""
    names = [name for name in cases[0].values if all(_is_size(case.values.get(name)) for case in cases) and _is_name(name)]
    by_name = [replace(case, sizes={name: case.values[name] for name in names}) for case in cases]
    by_number = [replace(case, sizes={_NUMBER: number}) for number, case in enumerate(cases, 1)]
    is_told_apart = bool(names) and len({tuple(case.sizes.values()) for case in by_name}) == len(_none_twice(cases))
    sized = by_name if is_told_apart else by_number
    return _none_twice([max((case for case in sized if case.is_timed), key=lambda case: case.extent), *sized])


def _none_twice(cases: Sequence[Case]) -> list[Case]:
    """Return the cases but for those whose values and inputs an earlier one has."""
    entries = [(case.values, case.inputs) for case in cases]
    return [case for index, case in enumerate(cases) if entries[index] not in entries[:index]]


def _is_size(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _is_name(name: str) -> bool:
    return name.isidentifier() and not keyword.iskeyword(name) and name not in _TAKEN and not name.startswith("_")


_HEAD = '''
import builtins
import linecache
import sys
import types

import torch

{sizes}

_FILES = {files!r}  # module: (file, text)
_CASES = {cases!r}  # (sizes, values, inputs), the timed one first
_loaded = {{}}


def _imported(name, globals=None, locals=None, fromlist=(), level=0):
    if level == 0 and name in _FILES:
        return _module(name)
    return builtins.__import__(name, globals, locals, fromlist, level)


def _module(name):
    """Run the text of a module once, with the name and the lines of its own file. torch.compile imports it by its name."""
    if name not in _loaded:
        file, text = _FILES[name]
        module = _loaded[name] = types.ModuleType(f"{{name}}_{{id(_loaded):x}}")
        sys.modules[module.__name__] = module
        module.__file__ = file
        module.__dict__["__builtins__"] = {{**vars(builtins), "__import__": _imported}}
        linecache.cache[file] = len(text), None, text.splitlines(True), file
        exec(compile(text, file, "exec"), module.__dict__)
    return _loaded[name]


def _case():
    here = {{name: globals()[name] for name in _CASES[0][0]}}
    for sizes, values, inputs in _CASES:
        if sizes == here:
            return values, inputs
    if "case" in here:
        raise ValueError(f"there is no case {{case}}, only {{sorted(sizes['case'] for sizes, *_ in _CASES)}}")
    return {{**_CASES[0][1], **here}}, _CASES[0][2]


def _is_output(value):
    return isinstance(value, dict) and value.keys() == {{"empty", "dtype"}}
'''


def module_text(cases: Sequence[Case], files: Mapping[str, tuple[str, str]], body: str, **constants: Any) -> str:
    """Return the module that begins with the sizes of the first of `cases`. `files` are the foreign modules, by name,
    each with its file's name and its text; `body` has `Model` and `get_inputs`, and may use the `constants`, which are
    plain values.
    """
    sizes = "\n".join(f"{name} = {value}" for name, value in cases[0].sizes.items())
    known = [(dict(case.sizes), dict(case.values), dict(case.inputs)) for case in cases]
    head = _HEAD.format(sizes=sizes, files=dict(files), cases=known)
    return "\n".join([head, *(f"{name} = {value!r}" for name, value in constants.items()), body])
