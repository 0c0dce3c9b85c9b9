"""Writes a solution of a FlashInfer-Trace or SOL-ExecBench definition as a candidate.

The text of a Python entry point stays as it is, with `ModelNew` below it. C++ and CUDA go through `load_inline`, with
their headers put in where they are included.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from harness.model.errors import InputError
from harness.model.files.json_file import field, read_object
from harness.model.formats.foreign import Written

_CPP, _CUDA = (".cpp", ".cc", ".cxx", ".c"), (".cu",)
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"[^\n]*$', re.MULTILINE)
_ONCE = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+once[^\n]*$", re.MULTILINE)

_RETURNS = '''

import torch as _torch


class ModelNew(_torch.nn.Module):
    def forward(self, *arguments):
        returned = {entry}(*arguments[:{inputs}])
        if isinstance(returned, dict):
            returned = tuple(returned.values())
        return returned[0] if isinstance(returned, (tuple, list)) and len(returned) == 1 else returned
'''

_WRITES = '''

import torch as _torch


class ModelNew(_torch.nn.Module):
    def forward(self, *arguments):
        device = next((each.device for each in arguments if isinstance(each, _torch.Tensor)), None)
        outputs = [
            _torch.empty(each["empty"], dtype=getattr(_torch, each["dtype"]), device=device)
            for each in arguments[{inputs}:]
        ]
        {entry}(*arguments[:{inputs}], *outputs)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)
'''

_COMPILED = '''
from torch.utils.cpp_extension import load_inline

_extension = load_inline(name={name!r}, cpp_sources={cpp!r}{rest})
'''


@dataclass(frozen=True)
class SolutionForm:
    """The solutions of the `definition` of that name, which has this many `inputs` and `outputs`."""

    definition: str
    inputs: int
    outputs: int
    suffix: str = ".json"
    wanted: str = "Put a solution for it there, a .json file with sources and spec"

    def holds(self, path: Path) -> bool:
        """Return whether the file is a solution of this definition; of others there may be thousands beside it."""
        return _is_solution(path, self.definition)

    def written(self, path: Path, text: str) -> Written:
        """Return the candidate that a solution is. Raises InputError for what cannot be run, and where."""
        name = Path(path.name)
        values = read_object(text, name)
        spec = field(values, "spec", dict, name)
        sources = _sources(field(values, "sources", list, name), name)
        file, colons, symbol = field(spec, "entry_point", str, name, "spec").partition("::")
        if not colons or not symbol.isidentifier():
            raise InputError(f"'spec.entry_point' is '{spec['entry_point']}'", name, hint="Write it as kernel.py::run")
        if file not in sources:
            raise InputError(f"'spec.entry_point' is in {file}, which 'sources' has not", name)
        ending = _WRITES if spec.get("destination_passing_style", True) else _RETURNS
        if file.endswith(".py"):
            others = [each for each in sources if each != file]
            if others:  # what looks for a source's kernels, and for what it reaches into, reads one file
                raise InputError(f"has {', '.join(others)} beside {file}, and a Python solution is one file", name,
                                 hint=f"Put what it needs into {file}, C++ and CUDA as texts for load_inline")
            return Written(sources[file] + ending.format(entry=symbol, inputs=self.inputs))
        # FlashInfer-Trace, which has `language`, binds by TVM unless something else is said.
        binding = spec.get("binding") or ("tvm-ffi" if "language" in spec else "torch")
        if binding != "torch":
            raise InputError(f"is bound by {binding}, which cannot be run", name,
                             hint='Bind it with PYBIND11_MODULE, and write "binding": "torch" in spec')
        ending = ending.format(entry=f"_extension.{symbol}", inputs=self.inputs)
        return Written(_compiled(path.stem, symbol, sources, spec, name) + ending)


def root_of(path: Path) -> Path | None:
    """Return the trace set that a definition lies in: the folder that has `definitions/`."""
    return next((each.parent for each in path.resolve().parents if each.name == "definitions"), None)


def solutions_below(path: Path, name: str) -> tuple[Path, ...]:
    """Return the folders that hold solutions of the definition in `path`: its own, those below it and of its trace set."""
    below = ((root_of(path) or path.parent) / "solutions").rglob("*.json")
    folders = {each.parent for each in below if _is_solution(each, name)}
    return (path.parent, *sorted(folders - {path.parent}))


def _is_solution(path: Path, definition: str) -> bool:
    """Return whether the file is a solution of `definition`, or is meant to be: what is no JSON has its own row."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        text = ""
    if json.dumps(definition) not in text:
        return False
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        return '"sources"' in text
    return isinstance(values, dict) and values.get("definition") == definition and ("sources" in values or "spec" in values)


def _sources(listed: list[Any], name: Path) -> dict[str, str]:
    sources: dict[str, str] = {}
    for index, each in enumerate(listed):
        values = each if isinstance(each, dict) else {}
        path = field(values, "path", str, name, f"sources[{index}]")
        if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts or path in sources:
            raise InputError(f"'sources[{index}].path' is '{path}'", name, hint="Each is a path of its own, without ..")
        sources[path] = field(values, "content", str, name, f"sources[{index}]")
    return sources


def _compiled(stem: str, symbol: str, sources: Mapping[str, str], spec: Mapping[str, Any], name: Path) -> str:
    """Return the Python text that builds the sources, each with its own lines in what the compiler says."""
    options = spec.get("compile_options")
    flags = {
        "extra_cflags": options.get("cflags", []), "extra_cuda_cflags": options.get("cuda_cflags", ["-O3", "--use_fast_math"]),
        "extra_ldflags": options.get("ld_flags", ["-lcuda"]),
    } if isinstance(options, dict) else {}
    cpp = [_with_headers(each, sources) for each in sources if each.endswith(_CPP)]
    cuda = [_with_headers(each, sources) for each in sources if each.endswith(_CUDA)]
    if cuda:
        flags["cuda_sources"] = cuda
    if not any("PYBIND11_MODULE" in text for text in sources.values()):
        cpp.append(_declaration(symbol, sources[spec["entry_point"].partition("::")[0]], name))
        flags["functions"] = [symbol]
    rest = "".join(f", {key}={value!r}" for key, value in flags.items() if value)
    return _COMPILED.format(name=f"solution_{re.sub(r'[^A-Za-z0-9_]', '_', stem)}", cpp=cpp, rest=rest)


def _declaration(symbol: str, text: str, name: Path) -> str:
    """Return the declaration of the entry point, which `load_inline` binds by itself. Raises InputError."""
    match = re.search(rf"^[ \t]*((?:[\w:<>,]+[ \t&*]+)+{symbol}[ \t\n]*\([^()]*\))\s*\{{", text, re.MULTILINE)
    if match is None:
        hint = f"Write PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {{ m.def(\"{symbol}\", &{symbol}); }}"
        raise InputError(f"has no PYBIND11_MODULE, and no function {symbol} that can be bound", name, hint=hint)
    return f"{match[1]};"


def _with_headers(path: str, sources: Mapping[str, str], included: set[str] | None = None) -> str:
    """Return the text of a source with those it includes put in, each once, and the lines of each said to the compiler."""
    included = set() if included is None else included
    included.add(path)

    def put_in(match: re.Match[str]) -> str:
        near = str(PurePosixPath(path).parent / match[1])
        header = next((each for each in (near, match[1]) if each in sources), None)
        if header is None or header in included:
            return match[0] if header is None else ""
        line = text.count("\n", 0, match.end()) + 2
        return f"{_with_headers(header, sources, included)}\n#line {line} \"{path}\""

    text = sources[path]
    return f"#line 1 \"{path}\"\n" + _ONCE.sub("", _INCLUDE.sub(put_in, text))
