"""Reads a reference file in KernelBench format and says what is missing from it, without importing it.

A reference defines `class Model`, `get_inputs` and, when the model takes arguments, `get_init_inputs`. Its
sizes are plain assignments at the left margin, so that a problem file can set them.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from pathlib import Path

from harness.errors import InputError
from harness.reading.python_source import ModuleNames, SourceFault, parsed, top_level_names
from harness.spelling import nearest
from harness.reading.text_files import read_text


def read_reference(
    path: Path, also: tuple[Path, ...] = ()
) -> tuple[str, ModuleNames | None, list[InputError]]:
    """The text of the reference, the names it defines, and everything that is wrong with it.

    The names are None when Python cannot read the file. Files in the folders `also` are offered when `path`
    is missing. Raises InputError when the file cannot be read at all.
    """
    text = read_text(path, (".py",), also)
    if not text.strip():
        return text, None, [InputError("is empty; a reference defines class Model and get_inputs", path)]
    try:
        names = top_level_names(parsed(text))
    except SourceFault as found:
        return text, None, [InputError(found.message, path, found.line)]
    errors = [_model_error(names, path), _inputs_error(names, path), _init_inputs_error(names, path)]
    return text, names, [error for error in errors if error is not None]


def size_error(
    names: ModuleNames, path: Path, name: str, value: int, yaml_path: Path, yaml_line: int, meant: Sequence[str] = ()
) -> InputError | None:
    """What keeps a problem file from setting the size `name`: it must be assigned plainly and once.

    One alone that may be `meant` is offered for it.
    """
    lines = names.assigned.get(name, [])
    if len(lines) == 1:
        return None
    if lines:
        found = f"size '{name}' is assigned on line {lines[0]} and again here"
        return InputError(found, path, lines[1], "Keep one of them.")
    if name in names.bound:
        found = f"size '{name}' is not set by an assignment of its own at the left margin"
        return InputError(found, path, names.bound[name], f"Write {name} = {value} on a line of its own.")
    guess = nearest(name, names.assigned) or (meant[0] if len(meant) == 1 else None)
    hint = f"Did you mean '{guess}'?" if guess else f"Write {name} = {value} at the top of {path.name}."
    return InputError(f"size '{name}' is not assigned in {path.name}", yaml_path, yaml_line, hint)


def _model_error(names: ModuleNames, path: Path) -> InputError | None:
    if names.defines("Model"):
        return None
    if "ModelNew" in names.classes:
        return InputError(
            "defines class ModelNew and no class Model, so it is a candidate and not a reference", path,
            names.classes["ModelNew"], "A reference defines class Model, get_inputs and get_init_inputs.",
        )
    only = next(iter(names.classes)) if len(names.classes) == 1 else None
    guess = nearest("Model", names.classes) or only
    if guess is not None:
        found = f"found class {guess}; the harness runs the class named Model"
        return InputError(found, path, names.classes[guess], "Rename it to Model.")
    hint = "Write class Model(nn.Module) with a forward method."
    return InputError("there is no class Model", path, hint=hint)


def _inputs_error(names: ModuleNames, path: Path) -> InputError | None:
    if not names.defines("get_inputs"):
        others = [name for name in names.functions if name != "get_init_inputs"]
        guess = nearest("get_inputs", others)
        line = names.functions[guess].lineno if guess else None
        hint = f"Did you mean get_inputs where it says '{guess}'?" if guess else \
            "Write def get_inputs(): return [torch.rand(M, M), …]"
        return InputError("there is no function get_inputs", path, line, hint)
    return _called_without_arguments(names, "get_inputs", path)


def _init_inputs_error(names: ModuleNames, path: Path) -> InputError | None:
    if "get_init_inputs" in names.functions:
        return _called_without_arguments(names, "get_init_inputs", path)
    others = [name for name in names.functions if name != "get_inputs"]
    guess = nearest("get_init_inputs", others)
    if guess is None or names.defines("get_init_inputs"):
        return None
    return InputError(f"found a function '{guess}'", path, names.functions[guess].lineno,
                      "Did you mean get_init_inputs?")


def _called_without_arguments(names: ModuleNames, name: str, path: Path) -> InputError | None:
    function = names.functions.get(name)
    if function is None:
        return None
    wanted = _required_arguments(function.args)
    if not wanted:
        return None
    found = f"{name} is called without arguments, but wants {', '.join(wanted)}"
    return InputError(found, path, function.lineno, "Use module-level names instead.")


def _required_arguments(arguments: ast.arguments) -> list[str]:
    positional = [*arguments.posonlyargs, *arguments.args]
    required = positional[: len(positional) - len(arguments.defaults)]
    keywords = zip(arguments.kwonlyargs, arguments.kw_defaults)
    required += [each for each, default in keywords if default is None]
    return [each.arg for each in required]


def with_sizes(source: str, sizes: Mapping[str, int], path: Path | str = "<reference>") -> ast.Module:
    """The parsed source with its module-level sizes replaced, so that names computed from them follow."""
    tree = ast.parse(source, filename=str(path))
    for node in tree.body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target = node.targets[0]
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            target = node.target
        else:
            continue
        if isinstance(target, ast.Name) and target.id in sizes:
            node.value = ast.copy_location(ast.Constant(sizes[target.id]), node.value)
    return ast.fix_missing_locations(tree)
