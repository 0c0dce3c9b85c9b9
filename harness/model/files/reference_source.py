"""Reads a reference file in KernelBench format and says what is missing from it, without importing it.

A reference defines `class Model`, `get_inputs` and, when the model takes arguments, `get_init_inputs`. Its
sizes are plain assignments at the left margin, so that a problem file can set them.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from harness.model.errors import InputError
from harness.model.files.python_source import ModuleNames, SourceFault, parsed, top_level_names
from harness.model.files.text_files import read_text
from harness.model.spelling import nearest

_ARITHMETIC = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv,
               ast.Mod: operator.mod, ast.Pow: operator.pow}
_LARGEST_POWER = 64


def read_reference(path: Path, also: tuple[Path, ...] = ()) -> tuple[str, ModuleNames | None, list[InputError]]:
    """The text of the reference, the names it defines, and everything that is wrong with it.

    The names are None when Python cannot read the file. Files in the folders `also` are offered when `path`
    is missing. Raises InputError when the file cannot be read at all.
    """
    text = read_text(path, (".py",), also)
    if not text.strip():
        return text, None, [InputError("is empty; a reference defines class Model and get_inputs", path)]
    try:
        names = top_level_names(parsed(text))
    except SourceFault as fault:
        return text, None, [InputError(fault.message, path, fault.line)]
    errors = [_model_error(names, path), _inputs_error(names, path), _init_inputs_error(names, path)]
    return text, names, [error for error in errors if error is not None]


def size_error(
    names: ModuleNames, path: Path, name: str, value: int, yaml_path: Path, yaml_line: int, meant: Sequence[str] = ()
) -> InputError | None:
    """What keeps a problem file from setting the size `name`: it must be assigned plainly and once. One alone that may
    be `meant` is offered for it.
    """
    lines = names.assigned.get(name, [])
    if len(lines) == 1:
        return None
    if lines:
        return InputError(f"size '{name}' is assigned on line {lines[0]} and again here", path, lines[1],
                          "Keep one of them.")
    if name in names.bound:
        message = f"size '{name}' is not set by an assignment of its own at the left margin"
        return InputError(message, path, names.bound[name], f"Write {name} = {value} on a line of its own.")
    guess = nearest(name, names.assigned) or (meant[0] if len(meant) == 1 else None)
    hint = f"Did you mean '{guess}'?" if guess else f"Write {name} = {value} at the top of {path.name}."
    return InputError(f"size '{name}' is not assigned in {path.name}", yaml_path, yaml_line, hint)


def _model_error(names: ModuleNames, path: Path) -> InputError | None:
    if names.defines("Model"):
        return None
    if "ModelNew" in names.classes:
        return InputError("defines class ModelNew and no class Model, so it is a candidate and not a reference", path,
                          names.classes["ModelNew"], "A reference defines class Model, get_inputs and get_init_inputs.")
    guess = nearest("Model", names.classes) or (next(iter(names.classes)) if len(names.classes) == 1 else None)
    if guess is not None:
        message = f"found class {guess}; the harness runs the class named Model"
        return InputError(message, path, names.classes[guess], "Rename it to Model.")
    return InputError("there is no class Model", path, hint="Write class Model(nn.Module) with a forward method.")


def _inputs_error(names: ModuleNames, path: Path) -> InputError | None:
    if names.defines("get_inputs"):
        return _called_without_arguments(names, "get_inputs", path)
    guess = nearest("get_inputs", [name for name in names.functions if name != "get_init_inputs"])
    line = names.functions[guess].lineno if guess else None
    hint = f"Did you mean get_inputs where it says '{guess}'?" if guess else \
        "Write def get_inputs(): return [torch.rand(M, M), …]"
    return InputError("there is no function get_inputs", path, line, hint)


def _init_inputs_error(names: ModuleNames, path: Path) -> InputError | None:
    if "get_init_inputs" in names.functions:
        return _called_without_arguments(names, "get_init_inputs", path)
    guess = nearest("get_init_inputs", [name for name in names.functions if name != "get_inputs"])
    if guess is None or names.defines("get_init_inputs"):
        return None
    return InputError(f"found a function '{guess}'", path, names.functions[guess].lineno,
                      "Did you mean get_init_inputs?")


def _called_without_arguments(names: ModuleNames, name: str, path: Path) -> InputError | None:
    function = names.functions.get(name)
    if function is None:
        return None
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    wanted = positional[: len(positional) - len(arguments.defaults)]
    wanted += [each for each, default in zip(arguments.kwonlyargs, arguments.kw_defaults) if default is None]
    message = f"{name} is called without arguments, but wants {', '.join(each.arg for each in wanted)}"
    return InputError(message, path, function.lineno, "Use module-level names instead.") if wanted else None


def sizes_in(source: str) -> dict[str, int]:
    """The whole numbers of at least 1 that a reference gives names to at its left margin, in their order: ``N = 2048``,
    ``N = 2 * M``, ``M, N = 8, 16`` and ``A = B = 16`` all count; of a name that is given twice the last.
    """
    sizes: dict[str, int] = {}
    for node in parsed(source).body:
        for target, value in _assigned_values(node):
            number = _whole_number(value, sizes)
            sizes.pop(target.id, None)
            if number is not None and number >= 1:
                sizes[target.id] = number
    return sizes


def with_sizes(source: str, sizes: Mapping[str, int], path: Path | str = "<reference>") -> ast.Module:
    """The parsed source with its module-level sizes replaced, so that names computed from them follow."""
    tree = ast.parse(source, filename=str(path))
    body: list[ast.stmt] = []
    for node in tree.body:
        body.append(node)
        named = [target for target, _ in _assigned_values(node) if target.id in sizes]
        if len(named) == 1 and isinstance(node, (ast.Assign, ast.AnnAssign)) and _targets(node) == named:
            node.value = ast.copy_location(ast.Constant(sizes[named[0].id]), node.value)
            continue
        for target in named:  # one of several in a statement
            value = ast.Constant(sizes[target.id])
            body.append(ast.copy_location(ast.Assign([ast.Name(target.id, ast.Store())], value), node))
    tree.body = body
    return ast.fix_missing_locations(tree)


def _targets(node: ast.Assign | ast.AnnAssign) -> list[ast.expr]:
    return node.targets if isinstance(node, ast.Assign) else [node.target]


def _assigned_values(node: ast.stmt) -> Iterator[tuple[ast.Name, ast.expr]]:
    """Each name that an assignment at the left margin binds, with the expression of its value."""
    if not isinstance(node, (ast.Assign, ast.AnnAssign)) or node.value is None:
        return
    for target in _targets(node):
        if isinstance(target, ast.Name):
            yield target, node.value
        elif isinstance(target, (ast.Tuple, ast.List)) and isinstance(node.value, (ast.Tuple, ast.List)):
            if len(target.elts) == len(node.value.elts):
                yield from (pair for pair in zip(target.elts, node.value.elts) if isinstance(pair[0], ast.Name))


def _whole_number(node: ast.expr, known: Mapping[str, int]) -> int | None:
    """The value of sums, products and powers of whole numbers and names of such; None for anything else."""
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) is int else None
    if isinstance(node, ast.Name):
        return known.get(node.id)
    if not isinstance(node, ast.BinOp) or type(node.op) not in _ARITHMETIC:
        return None
    left, right = _whole_number(node.left, known), _whole_number(node.right, known)
    if left is None or right is None or (isinstance(node.op, ast.Pow) and not 0 <= right <= _LARGEST_POWER):
        return None
    try:
        return _ARITHMETIC[type(node.op)](left, right)
    except ZeroDivisionError:
        return None
