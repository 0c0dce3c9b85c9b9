"""`PARAMETERS = {"BM": [64, 128], …}` in a candidate's source: what it allows, and the source with one value of each.

The first value of each list is the default, since a candidate takes `PARAMETERS["BM"][0]`; so the file runs elsewhere
as it stands. Values that were tuned stand in a YAML file beside it. Nothing here imports the candidate.
"""

from __future__ import annotations

import ast
import itertools
import reprlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from harness.model.errors import InputError
from harness.model.files.python_source import SourceFault, lines_of, plainly_assigned
from harness.model.files.yaml_lines import read_yaml
from harness.model.spelling import listed, nearest

NAME = "PARAMETERS"
Value = int | float | str | bool
_EXAMPLE = 'PARAMETERS = {"BM": [64, 128], "STAGES": [2, 3]}'


def declared(tree: ast.Module) -> dict[str, list[Value]] | None:
    """The values that each parameter may have, in the order of the source; None where the module declares none. Raises
    SourceFault for what is no dict of lists of plain values.
    """
    node = _assignment(tree)
    if node is None:
        return None
    try:
        values = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        raise SourceFault(f"{NAME} must be written out, without names or calls: {_EXAMPLE}", node.lineno) from None
    if not isinstance(values, dict) or not values:
        raise SourceFault(f"{NAME} must be a dict: {_EXAMPLE}", node.lineno)
    for name, allowed in values.items():
        if not isinstance(name, str) or not name.isidentifier():
            raise SourceFault(f"{NAME} has {name!r} as a name: write one like BM", node.lineno)
        if not isinstance(allowed, list) or not allowed or not all(isinstance(each, Value) for each in allowed):
            raise SourceFault(f'{NAME}["{name}"] must be a list of numbers or texts: {_EXAMPLE}', node.lineno)
        if len(set(map(repr, allowed))) < len(allowed):
            raise SourceFault(f'{NAME}["{name}"] has a value twice', node.lineno)
    return values


def defaults(allowed: Mapping[str, list[Value]]) -> dict[str, Value]:
    """The first value of each."""
    return {name: values[0] for name, values in allowed.items()}


def combinations(allowed: Mapping[str, list[Value]]) -> Iterator[dict[str, Value]]:
    """Every choice of values, the defaults first."""
    for chosen in itertools.product(*allowed.values()):
        yield dict(zip(allowed, chosen))


def frozen(source: str, tree: ast.Module, values: Mapping[str, Value]) -> str:
    """`source` with one value for each parameter, on as many lines as before: line numbers keep their meaning."""
    node = _assignment(tree)
    lines = lines_of(source)
    first, last = node.lineno - 1, node.end_lineno - 1
    # The columns of a syntax tree count bytes.
    before = lines[first].encode()[: node.col_offset].decode()
    after = lines[last].encode()[node.end_col_offset :].decode()
    text = "{" + ", ".join(f"{name!r}: [{value!r}]" for name, value in values.items()) + "}"
    if last > first:
        # Inside braces a line may end anywhere.
        text = text[:-1] + "\n" * (last - first) + "}"
    return "".join([*lines[:first], before + text + after, *lines[last + 1 :]])


def tuned_in(path: Path, allowed: Mapping[str, list[Value]]) -> dict[str, Value]:
    """The values in the YAML file `path`, with the default for each that it does not name. Raises InputError with file
    and line for a name or a value that is not `allowed`.
    """
    file = read_yaml(path)
    values = file.values.get("parameters")
    if not isinstance(values, dict):
        example = ", ".join(f"{name}: {value}" for name, value in defaults(allowed).items())
        raise InputError("has no parameters", path, 1, f"Write parameters: {{{example}}}")
    for name, value in values.items():
        if name not in allowed:
            guess = nearest(str(name), list(allowed))
            hint = f"Did you mean {guess}?" if guess else f"{NAME} has {listed(list(allowed))}"
            raise file.fault(("parameters", name), f"{name} is no parameter of {path.stem}.py", hint)
        if repr(value) not in map(repr, allowed[name]):
            hint = f"{NAME} allows {listed([repr(each) for each in allowed[name]], 'or')}; tune it again"
            raise file.fault(("parameters", name), f"{name}: {reprlib.repr(value)} is not allowed", hint)
    return defaults(allowed) | values


def parameters_text(values: Mapping[str, Value]) -> str:
    """`{"BM": 64, "STAGES": 2}` → `BM=64 STAGES=2`, as a record has it."""
    return " ".join(f"{name}={value}" for name, value in values.items())


def _assignment(tree: ast.Module) -> ast.expr | None:
    """The value of the last plain `PARAMETERS = …` at the left margin."""
    return next((each.value for each in reversed(tree.body) if plainly_assigned(each) == NAME), None)
