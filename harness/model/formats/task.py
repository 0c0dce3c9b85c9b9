"""Reads a task of GPU MODE's reference-kernels (task.yml, reference.py, submissions with custom_kernel) as one problem."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from harness.model.errors import InputError
from harness.model.files.text_files import read_text
from harness.model.files.yaml_lines import YamlFile, read_yaml
from harness.model.formats.foreign import Foreign, Written, require_functions
from harness.model.formats.module_text import Case, module_text, with_sizes

TASK_FILE = "task.yml"
_SUBMISSION = "@SUBMISSION@"

_BODY = '''

def _with_outputs(data):
    """`data` with new tensors for the outputs, in float64 where its other numbers are."""
    if not isinstance(data, (tuple, list)) or not any(map(_is_output, data)):
        return data
    given = next(each for each in data if isinstance(each, torch.Tensor))
    made = []
    for each in data:
        if _is_output(each):
            dtype = getattr(torch, each["dtype"])
            is_wide = dtype.is_floating_point and any(
                other.dtype == torch.float64 for other in data if isinstance(other, torch.Tensor)
            )
            each = torch.empty(each["empty"], dtype=torch.float64 if is_wide else dtype, device=given.device)
        made.append(each)
    return tuple(made) if isinstance(data, tuple) else made


class Model(torch.nn.Module):
    def forward(self, data):
        return _module("reference").ref_kernel(_with_outputs(data))


def get_inputs():
    values, _ = _case()
    seed = {"seed": int(torch.randint(1, 2**31 - 1, (), device="cpu"))} if _SEEDED else {}
    try:
        data = _module("reference").generate_input(**values, **seed)
    except (AssertionError, RuntimeError):
        if torch.cuda.is_available() or "cuda" not in _FILES["reference"][1]:
            raise
        raise RuntimeError("generate_input asks for a CUDA device, and this machine has none: run it on one that has") from None
    if "outputs" not in _loaded:
        _loaded["outputs"] = _outputs_among(data)
    if not _loaded["outputs"]:
        return [data]
    parts = [
        {"empty": list(each.shape), "dtype": str(each.dtype)[6:]} if index in _loaded["outputs"] else each
        for index, each in enumerate(data)
    ]
    return [tuple(parts) if isinstance(data, tuple) else parts]


def _tensors(value):
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, (tuple, list)) else ()
    return [value] if isinstance(value, torch.Tensor) else [each for part in parts for each in _tensors(part)]


def _outputs_among(data):
    """The places in `data` of tensors that ref_kernel writes to, whatever was in them.

    Raises ValueError where it needs what was in them, or writes to another input.
    """
    versions = [(each, each._version) for each in _tensors(data)]
    with torch.no_grad():
        first = [each.clone() for each in _tensors(_module("reference").ref_kernel(data))]
    written = [each for each, version in versions if each._version != version]
    places = [
        index for index, each in enumerate(data if isinstance(data, (tuple, list)) else ())
        if any(each is other for other in written)
    ]
    if not written:
        return places
    if len(places) < len(written) or len(written) == len(versions):
        raise ValueError("ref_kernel writes to its inputs, which cannot be judged: have it clone them first")
    with torch.no_grad():
        for each in written:
            each.fill_(1)
        second = _tensors(_module("reference").ref_kernel(data))
    if not all(torch.equal(one, other) for one, other in zip(first, second)):
        raise ValueError(f"ref_kernel changes data[{places[0]}] in place, which cannot be judged: have it clone that first")
    return places
'''

_ENDING = '''

import torch as _torch


class ModelNew(_torch.nn.Module):
    def forward(self, data):
        if isinstance(data, (tuple, list)):
            device = next((each.device for each in data if isinstance(each, _torch.Tensor)), None)
            data = type(data)([
                _torch.empty(each["empty"], dtype=getattr(_torch, each["dtype"]), device=device)
                if isinstance(each, dict) and each.keys() == {"empty", "dtype"} else each for each in data
            ])
        return custom_kernel(data)
'''


@dataclass(frozen=True)
class SubmissionForm:
    """The submissions to the task in `folder`, which import the task's `files`."""

    folder: Path
    files: tuple[tuple[str, str], ...]
    suffix: str = ".py"
    wanted: str = "Put a submission there, a .py file with def custom_kernel(data)"

    def holds(self, path: Path) -> bool:
        """Return whether the file is a submission: in the task's own folder those called submission… alone."""
        is_beside = path.resolve().parent == self.folder.resolve()
        return not is_beside or path.name.startswith("submission")

    def written(self, path: Path, text: str) -> Written:
        """Return the submission with a `ModelNew` below its own lines. Raises InputError without a `custom_kernel`."""
        require_functions(text, ("custom_kernel",), path.name)
        return Written(text + _ENDING, self.files)


def read_task(path: Path) -> Foreign:
    """Return the problem that the task in `path` is, at the sizes of its benchmarks and tests. Raises InputError."""
    file = read_yaml(path)
    values, folder = file.values, Path(os.path.abspath(path)).parent
    if values.get("multi_gpu"):
        raise file.fault(("multi_gpu",), "is a task for several GPUs, which cannot be judged here")
    if values.get("lang", "py") != "py":
        raise file.fault(("lang",), f"lang is '{values['lang']}', and only Python tasks can be judged",
                         "Choose the task's Python form, which has lang: py")
    files = _files(file, folder)
    reference_path, reference = files["reference.py"]
    require_functions(reference, ("generate_input", "ref_kernel"), reference_path)
    entries = [*_entries(file, "benchmarks", is_timed=True), *_entries(file, "tests", is_timed=False)]
    if not any(each.is_timed for each in entries):
        raise file.fault(("benchmarks",), "'benchmarks' is empty, so there is nothing to time",
                         'Write - {"size": 1024, "seed": 1} below it')
    is_seeded = any("seed" in each.values for each in entries)
    cases = with_sizes([Case({name: value for name, value in each.values.items() if name != "seed"}, {}, each.is_timed)
                        for each in entries])
    modules = {name[:-3]: (str(each), text) for name, (each, text) in files.items()}
    texts = tuple((name, text) for name, (_, text) in files.items())
    description = str(values.get("description") or folder.name).strip().splitlines()[0]
    return Foreign(re.sub(r"[^\w.+-]", "_", folder.name), description[:100], "float32",
                   module_text(cases, modules, _BODY, _SEEDED=is_seeded),
                   file.text + "".join(text for _, text in texts), dict(cases[0].sizes),
                   tuple(dict(case.sizes) for case in cases[1:]), (folder, folder / "submissions"),
                   SubmissionForm(folder, texts))


def _files(file: YamlFile, folder: Path) -> dict[str, tuple[Path, str]]:
    """Return path and text of each Python file that the task lays beside a submission, but what runs them all."""
    listed, config = file.values.get("files"), file.values.get("config")
    main = config.get("main") if isinstance(config, dict) else None
    files: dict[str, tuple[Path, str]] = {}
    for index, each in enumerate(listed if isinstance(listed, list) else []):
        name, source = (each.get(key) for key in ("name", "source")) if isinstance(each, dict) else (None, None)
        if not isinstance(name, str) or not isinstance(source, str) or "/" in name:
            raise file.fault(("files", index), f"'files' has {each!r}"[:80],
                             'Write {"name": "task.py", "source": "task.py"}')
        if source == _SUBMISSION or name == main or not name.endswith(".py"):
            continue
        try:
            files[name] = folder / source, read_text(folder / source)
        except InputError as error:
            raise file.fault(("files", index), f"{source}: {error.message}", error.hint) from None
    if "reference.py" not in files:
        raise file.fault(("files",), "'files' has no reference.py",
                         'Write - {"name": "reference.py", "source": "reference.py"}')
    return files


def _entries(file: YamlFile, key: str, *, is_timed: bool) -> list[Case]:
    """Return what is listed under `key`, each the arguments of generate_input. Raises InputError."""
    listed = file.values.get(key) or []
    if not isinstance(listed, list):
        raise file.fault((key,), f"'{key}' must be a list")
    for index, each in enumerate(listed):
        if not isinstance(each, dict):
            raise file.fault((key, index), f"'{key}' has {each!r}",
                             'Each is a mapping, such as {"size": 1024, "seed": 1}')
    return [Case(each, {}, is_timed) for each in listed]
