"""Reads a FlashInfer-Trace or SOL-ExecBench definition with its workloads, as one problem.

Workloads lie beside the definition, or where a trace set keeps them: `workloads/` beside `definitions/`.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from harness.model.errors import InputError
from harness.model.files.json_file import field, read_object
from harness.model.files.text_files import read_text
from harness.model.formats.foreign import Foreign, require_functions
from harness.model.formats.module_text import Case, module_text, with_sizes
from harness.model.formats.solution import SolutionForm, root_of, solutions_below

_DTYPES = ("float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "int64", "int32", "int16",
           "int8", "bool")
_ARITHMETIC = (ast.Expression, ast.BinOp, ast.UnaryOp, ast.Constant, ast.Name, ast.Load, ast.operator, ast.unaryop)

_BODY = '''
_STORED_DTYPES = {
    "F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "I64": torch.int64,
    "I32": torch.int32, "I16": torch.int16, "I8": torch.int8, "BOOL": torch.bool, "F8_E4M3": torch.float8_e4m3fn,
    "F8_E5M2": torch.float8_e5m2,
}


class Model(torch.nn.Module):
    def forward(self, *arguments):
        returned = _module("reference").run(*arguments[:len(_INPUTS)])
        if isinstance(returned, dict):
            returned = [returned[name] for name in _OUTPUTS]
        parts = returned if isinstance(returned, (tuple, list)) else [returned]
        if len(parts) != len(_OUTPUTS):
            raise ValueError(f"run returns {len(parts)} outputs, the definition names {len(_OUTPUTS)}")
        made = [_tensor(part, dtype) for part, (_, dtype) in zip(parts, _OUTPUTS.values())]
        return made[0] if len(made) == 1 else tuple(made)


def _tensor(part, dtype):
    return part if isinstance(part, torch.Tensor) else torch.tensor(part, dtype=getattr(torch, dtype))


def get_inputs():
    values, inputs = _case()
    axes = {**_CONSTANTS, **values}
    for name, text in _EXPRESSIONS.items():
        axes[name] = int(eval(text, {"__builtins__": {}}, axes))
    scalars = {name: each["value"] for name, each in inputs.items() if each["type"] == "scalar"}
    custom = {}
    if any(each["type"] == "custom" for each in inputs.values()):
        custom = getattr(_module("reference"), _CUSTOM)({**axes, **scalars}, torch.get_default_device())
    drawn = [
        scalars[name] if name in scalars else custom[name] if name in custom
        else _stored(name, [axes[axis] for axis in shape or ()], dtype, **inputs[name])
        if inputs.get(name, {}).get("type") == "safetensors" else _random(shape, axes, dtype)
        for name, (shape, dtype) in _INPUTS.items()
    ]
    outputs = [{"empty": [axes[axis] for axis in shape or ()], "dtype": dtype} for shape, dtype in _OUTPUTS.values()]
    return [*drawn, *outputs]


def _random(shape, axes, dtype):
    """Normal numbers; integers of -1024 to 1023, or of all that eight bits hold."""
    size, kind = [axes[axis] for axis in shape or ()], getattr(torch, dtype)
    if dtype.startswith("float8"):
        made = torch.randn(size).clamp_(-2, 2).to(kind)
    elif kind.is_floating_point:
        made = torch.randn(size, dtype=kind)
    else:
        low, high = {"bool": (0, 2), "int8": (-128, 128)}.get(dtype, (-1024, 1024))
        made = torch.randint(low, high, size, dtype=kind)
    return made.item() if shape is None else made


def _stored(name, shape, dtype, path, tensor_key, type):
    """A tensor of a safetensors file: eight bytes of length, a header in JSON, the bytes of all tensors."""
    import json

    with open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        if tensor_key not in header:
            raise ValueError(f"{path} has no tensor {tensor_key!r} for the input {name!r}")
        entry, begin = header[tensor_key], file.tell()
        start, end = entry["data_offsets"]
        file.seek(begin + start)
        content = bytearray(file.read(end - start))
    if entry["shape"] != shape or _STORED_DTYPES.get(entry["dtype"]) is not getattr(torch, dtype):
        raise ValueError(f"{path}: {tensor_key!r} is {entry['dtype']} {entry['shape']}, not {dtype} {shape} as {name!r}")
    kind = _STORED_DTYPES[entry["dtype"]]
    flat = torch.frombuffer(content, dtype=kind) if content else torch.empty(0, dtype=kind, device="cpu")
    return flat.reshape(shape).to(torch.get_default_device())
'''


def read_definition(path: Path) -> Foreign:
    """Return the problem that the definition in `path` is, at the sizes of its workloads. Raises InputError."""
    text = read_text(path, (".json",))
    values = read_object(text, path)
    name = field(values, "name", str, path)
    if not re.fullmatch(r"[\w.+-]+", name) or name[0] in ".-":
        raise InputError(f"'name' is to be the name of a folder of results, not '{name}'", path)
    axes = field(values, "axes", dict, path)
    inputs, outputs = (_tensors(field(values, key, dict, path), key, axes, path) for key in ("inputs", "outputs"))
    reference = field(values, "reference", str, path)
    custom = values.get("custom_inputs_entrypoint")
    require_functions(reference, ["run", *([custom] if custom else [])], path, "reference")
    workloads_path, workloads_text = _workloads_file(path, name)
    constants = {key: each["value"] for key, each in axes.items() if each["type"] == "const"}
    variable = [key for key, each in axes.items() if each["type"] == "var"]
    lines = _workload_lines(workloads_path, workloads_text, name)
    cases = with_sizes([_case(each, variable, inputs, custom, path, workloads_path, line) for line, each in lines])
    source = module_text(cases, {"reference": (f"{path}: reference", reference)}, _BODY, _INPUTS=inputs,
                         _OUTPUTS=outputs, _CONSTANTS=constants, _CUSTOM=custom,
                         _EXPRESSIONS={key: each["expression"] for key, each in axes.items() if each["type"] == "expr"})
    floating = [dtype for _, dtype in inputs.values() if dtype in ("float64", "float32", "float16", "bfloat16")]
    return Foreign(name, " ".join((values.get("description") or name.replace("_", " ")).split())[:100],
                   floating[0] if floating else "float32", source, text + workloads_text, dict(cases[0].sizes),
                   tuple(dict(case.sizes) for case in cases[1:]), solutions_below(path, name),
                   SolutionForm(name, len(inputs), len(outputs)))


def _tensors(tensors: Mapping[str, Any], key: str, axes: Mapping[str, Any], path: Path) -> dict[str, tuple[Any, str]]:
    """Return shape (names of axes, or None for a number) and dtype of each. Raises InputError."""
    _check_axes(axes, path)
    if key == "outputs" and not tensors:
        raise InputError("'outputs' names none, so there is nothing to compare", path)
    specs = {}
    for name, each in tensors.items():
        where = f"{key}.{name}"
        if not isinstance(each, dict):
            raise InputError(f"'{where}' must be an object with shape and dtype", path)
        dtype, shape = field(each, "dtype", str, path, where), each.get("shape")
        if dtype not in _DTYPES:
            hint = f"Known are {', '.join(_DTYPES)}"
            raise InputError(f"'{where}' is {dtype}, which cannot be judged here", path, hint=hint)
        unknown = next((axis for axis in shape or () if axis not in axes), None)
        if unknown is not None:
            raise InputError(f"the shape of '{where}' names the axis '{unknown}', which 'axes' has not", path)
        specs[name] = (shape, dtype)
    return specs


def _check_axes(axes: Mapping[str, Any], path: Path) -> None:
    for name, each in axes.items():
        kind = field(each if isinstance(each, dict) else {}, "type", str, path, f"axes.{name}")
        if kind not in ("const", "var", "expr"):
            raise InputError(f"'axes.{name}.type' is '{kind}'", path, hint="It is const, var or expr")
        if kind == "const":
            field(each, "value", int, path, f"axes.{name}")
        if kind == "expr" and not _is_arithmetic(text := field(each, "expression", str, path, f"axes.{name}")):
            raise InputError(f"'axes.{name}.expression' is no arithmetic of other axes: {text[:60]}", path)


def _is_arithmetic(text: str) -> bool:
    try:
        return all(isinstance(node, _ARITHMETIC) for node in ast.walk(ast.parse(text, mode="eval")))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False


def _workloads_file(path: Path, name: str) -> tuple[Path, str]:
    """Return the file of the workloads and its text. Raises InputError where there is none."""
    places = [path.parent / each for each in ("workload.jsonl", "workloads.jsonl", f"{path.stem}.jsonl")]
    if root := root_of(path):
        places += sorted((root / "workloads").rglob(f"{name}.jsonl"))
    workloads_path = next((each for each in places if each.is_file()), None)
    if workloads_path is None:
        raise InputError("there are no workloads for it", path, hint=f"Put workload.jsonl into {path.parent}")
    return workloads_path, read_text(workloads_path)


def _workload_lines(path: Path, text: str, name: str) -> list[tuple[int, dict[str, Any]]]:
    """Return (line, workload) for each line; in a trace set a workload lies in a trace. Raises InputError."""
    workloads = []
    for line, each in enumerate(text.splitlines(), 1):
        if each.strip():
            values = read_object(each, path, line)
            if values.get("definition") not in (None, name):
                raise InputError(f"is a workload of '{values['definition']}', not of '{name}'", path, line)
            workloads.append((line, values.get("workload") or values))
    if not workloads:
        raise InputError("has no workload", path, hint='Write a line {"uuid": "1", "axes": {…}, "inputs": {…}}')
    return workloads


def _case(
    workload: Mapping[str, Any], variable: list[str], inputs: Mapping[str, Any], custom: str | None, path: Path,
    workloads_path: Path, line: int,
) -> Case:
    axes = field(workload, "axes", dict, workloads_path, line=line)
    values = {name: field(axes, name, int, workloads_path, "axes", line) for name in variable}
    described = dict(_described(field(workload, "inputs", dict, workloads_path, line=line), inputs, path, workloads_path, line))
    if custom is None and any(each["type"] == "custom" for each in described.values()):
        raise InputError("has custom inputs, and the definition names no custom_inputs_entrypoint", workloads_path, line)
    return Case(values, described)


def _described(
    given: Mapping[str, Any], inputs: Mapping[str, Any], path: Path, workloads_path: Path, line: int
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield how each input is made, with the paths of files that are there. Raises InputError."""
    for name, each in given.items():
        where = (workloads_path, f"inputs.{name}", line)
        kind = field(each if isinstance(each, dict) else {}, "type", str, *where)
        if name not in inputs:
            raise InputError(f"'inputs.{name}' is no input of the definition ({', '.join(inputs)})", workloads_path, line)
        if kind == "safetensors":
            stored, key = field(each, "path", str, *where), field(each, "tensor_key", str, *where)
            yield name, {"type": kind, "path": str(_blob(stored, name, path, workloads_path, line)), "tensor_key": key}
        elif kind == "scalar" and isinstance(each.get("value"), (int, float)):
            yield name, {"type": kind, "value": each["value"]}
        elif kind in ("random", "custom"):
            yield name, {"type": kind}
        else:
            raise InputError(f"'inputs.{name}' is {json.dumps(each)[:60]}", workloads_path, line,
                             "Its type is random, scalar (with a value), safetensors or custom")


def _blob(stored: str, name: str, path: Path, workloads_path: Path, line: int) -> Path:
    """Return the safetensors file, which lies below the folder of the definition or one of those above it."""
    for folder in path.resolve().parents:
        if (folder / stored).is_file():
            return folder / stored
    raise InputError(f"the input '{name}' is kept in {stored}, which is not there", workloads_path, line,
                     f"Fetch that file of the data set, to {(root_of(path) or path.parent) / stored}")
