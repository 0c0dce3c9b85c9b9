"""Candidates made from a KernelBench problem's own file: an exact copy, zeros, and copies that are narrower inside.

Each is the text of the problem with `ModelNew` in it. `honest` must be `ok`; `zeros` only where the true output is
zero; `bf16` and `tf32` only where the problem's own arithmetic is no wider, or its output does not depend on the bits
that they lose.
"""

from __future__ import annotations

import io
import tokenize
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

# What wraps the unchanged model; names begin with an underscore so that none meets one of the problem's.
_MAPPED = '''

import torch as _torch


def _mapped(change, value):
    """`value` with `change` made to each tensor in it, through lists, tuples and dicts."""
    if isinstance(value, _torch.Tensor):
        return change(value)
    if isinstance(value, dict):
        return type(value)((key, _mapped(change, each)) for key, each in value.items())
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_mapped(change, each) for each in value))
    if isinstance(value, (list, tuple)):
        return type(value)(_mapped(change, each) for each in value)
    return value
'''

_ZEROS = _MAPPED + '''

class ModelNew(Model):
    """Zeros in the form of the output, which the model is run for once for each form of its inputs."""

    def forward(self, *arguments, **named):
        form = []
        _mapped(lambda tensor: form.append((tuple(tensor.shape), tensor.dtype)), [list(arguments), named])
        known = self.__dict__.setdefault("_known_forms", {})
        key = tuple(form)
        if key not in known:
            with _torch.no_grad():
                outputs = super().forward(*arguments, **named)
            # One element in the form of all: PyTorch takes seconds to get its meta tensors ready.
            known[key] = _mapped(lambda tensor: tensor.new_zeros(()).expand(tensor.shape), outputs)
        return _mapped(_torch.zeros_like, known[key])
'''

_NARROWED = _MAPPED + '''

def _narrow(tensor):
{rounding}


class ModelNew(Model):
    """The unchanged model on inputs, parameters and buffers that were rounded before."""

    def forward(self, *arguments, **named):
        with _torch.no_grad():
            for tensor in (*self.parameters(), *self.buffers()):
                if tensor.is_floating_point():
                    tensor.copy_(_narrow(tensor))
            arguments, named = _mapped(_narrow, list(arguments)), _mapped(_narrow, named)
        return super().forward(*arguments, **named)
'''

_TO_BF16 = '''    """Rounded to bfloat16's 8 significant bits, in the dtype that it had."""
    return tensor.to(_torch.bfloat16).to(tensor.dtype) if tensor.is_floating_point() else tensor'''

# What TF32's tensor cores read of an fp32 number: to the nearest, ties to even, by the bits of the number.
_TO_TF32 = '''    """Rounded to TF32's 11 significant bits; what is no float32 stays as it is."""
    if tensor.dtype != _torch.float32:
        return tensor
    bits = tensor.view(_torch.int32)
    return ((bits + 0xFFF + ((bits >> 13) & 1)) & ~0x1FFF).view(_torch.float32)'''


def renamed(source: str) -> str:
    """The source with the name `Model` as `ModelNew` wherever it is a name; nothing else is touched."""
    lines = source.splitlines(keepends=True)
    before = None
    found = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.NAME and token.string == "Model" and before != ".":
            found.append(token.start)
        before = token.string
    for row, column in reversed(found):
        line = lines[row - 1]
        lines[row - 1] = f"{line[:column]}ModelNew{line[column + len('Model'):]}"
    return "".join(lines)


def _wrapped(ending: str) -> Callable[[str], str]:
    return lambda source: f"{source.rstrip()}\n{ending}"


VARIANTS: dict[str, Callable[[str], str]] = {
    "honest": renamed,
    "zeros": _wrapped(_ZEROS),
    "bf16": _wrapped(_NARROWED.format(rounding=_TO_BF16)),
    "tf32": _wrapped(_NARROWED.format(rounding=_TO_TF32)),
}


@dataclass(frozen=True)
class KernelBenchTask:
    """One problem of KernelBench with the variants of it that are to be judged; `is_shrunk` makes it a small one first."""

    key: str
    path: Path
    candidates: tuple[str, ...]
    is_shrunk: bool = False

    def prepared(self, folder: Path, is_cpu: bool) -> tuple[Path, dict[str, Path]]:
        """The problem's file and those of its candidates, written below `folder` but for an unchanged problem.

        Raises HarnessError for a problem that cannot be made small.
        """
        path, source = self.path, self.path.read_text(encoding="utf-8")
        if self.is_shrunk:
            from kernelbench_shrink import shrunk

            source, path = shrunk(source, self.path), folder / self.path.name
            path.write_text(source, encoding="utf-8")
        written = {}
        for name in self.candidates:
            written[name] = folder / f"{name}.py"
            written[name].write_text(VARIANTS[name](source), encoding="utf-8")
        return path, written
