"""The text of a KernelBench module for a foreign reference, whose own text is a constant in it and runs unchanged.

The module imports nothing of this package: it is run by the judge and by the workers of the baselines alike. An input that
is a mapping {"empty": shape, "dtype": name} stands for an output that the candidate writes to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness.model.formats.workloads import Case

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
    """Return the module that begins with the sizes of the first of `cases`.

    `files` are the foreign modules, by name, each with its file's name and its text; `body` has `Model` and `get_inputs`,
    and may use the `constants`, which are plain values.
    """
    sizes = "\n".join(f"{name} = {value}" for name, value in cases[0].sizes.items())
    known = [(dict(case.sizes), dict(case.values), dict(case.inputs)) for case in cases]
    head = _HEAD.format(sizes=sizes, files=dict(files), cases=known)
    return "\n".join([head, *(f"{name} = {value!r}" for name, value in constants.items()), body])
