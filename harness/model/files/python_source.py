"""Python files read with `ast` and never imported: do they parse, what do they define, do they ask for their own name?

References and candidates are other people's code; what runs them is the worker, behind the sandbox.
"""

from __future__ import annotations

import ast
import io
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field

# What is left of a path once one of these was asked of it has no name of the file's own in it any more.
_FORGETS = frozenset({"parent", "parents", "with_name"})
_FOLDER_OF = "dirname"
_STILL_A_PATH = frozenset({"Path", "PurePath", "str", "fspath", "abspath", "realpath", "normpath", "resolve", "absolute"})
_TELL = frozenset({
    "__spec__", "__module__", "__loader__", "__cached__", "_getframe", "currentframe", "inspect", "traceback", "co_filename",
    "globals", "locals", "vars",
})


class SourceFault(Exception):
    """Raised for a source that cannot be read; `line` is 1-based, the message a sentence without its subject."""

    def __init__(self, message: str, line: int) -> None:
        self.message, self.line = message, line
        super().__init__(message)


@dataclass
class ModuleNames:
    """What a module binds at its top level (also inside `if`, `try` and `with`), each name with its line.

    `assigned` holds the lines of plain assignments ``NAME = …`` that stand alone at the left margin; `bound`
    everything else that binds a name (imports, tuples, loops). `star` tells of ``from x import *``, after
    which anything may be defined.
    """

    classes: dict[str, int] = field(default_factory=dict)
    functions: dict[str, ast.FunctionDef] = field(default_factory=dict)
    assigned: dict[str, list[int]] = field(default_factory=dict)
    bound: dict[str, int] = field(default_factory=dict)
    star: bool = False

    def defines(self, name: str) -> bool:
        """Whether the module has `name` once it was imported, as far as reading can tell."""
        return self.star or any(name in each for each in (self.classes, self.functions, self.assigned, self.bound))


def parsed(text: str) -> ast.Module:
    """The syntax tree of `text`. Raises SourceFault where Python would raise SyntaxError."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # CUDA in strings is full of escapes that Python dislikes
            return ast.parse(text)
    except SyntaxError as error:
        raise SourceFault(f"Python cannot read this: {error.msg}", error.lineno or 1) from None
    except ValueError:
        line = text[: text.find("\0")].count("\n") + 1 if "\0" in text else 1
        raise SourceFault("Python cannot read this: it holds a null character", line) from None
    except (RecursionError, MemoryError):
        raise SourceFault("Python cannot read this: it is nested too deeply", 1) from None


def lines_of(text: str) -> list[str]:
    """The lines of a Python text with their ends, as syntax trees count them: str.splitlines ends some at a form feed."""
    return io.StringIO(text, newline="").readlines()


def top_level_names(tree: ast.Module) -> ModuleNames:
    """The names that the module binds at its top level."""
    names = ModuleNames()
    for statement in tree.body:
        if (name := plainly_assigned(statement)) is not None:
            names.assigned.setdefault(name, []).append(statement.lineno)
    for statement in _at_top_level(tree.body):
        if isinstance(statement, ast.ClassDef):
            names.classes.setdefault(statement.name, statement.lineno)
        elif isinstance(statement, ast.FunctionDef):
            names.functions.setdefault(statement.name, statement)
        elif isinstance(statement, (ast.Import, ast.ImportFrom)):
            for alias in statement.names:
                names.star = names.star or alias.name == "*"
                names.bound.setdefault(alias.asname or alias.name.split(".")[0], statement.lineno)
        else:
            for name in _stored_names(statement):
                if name not in names.assigned:
                    names.bound.setdefault(name, statement.lineno)
    return names


def plainly_assigned(statement: ast.stmt) -> str | None:
    """The name in ``NAME = value`` and ``NAME: type = value``; None for ``A, B = …``, ``A = B = …`` and all else."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        return getattr(statement.targets[0], "id", None)
    return getattr(statement.target, "id", None) if isinstance(statement, ast.AnnAssign) and statement.value else None


def _at_top_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that run at import, those inside `if`, `try`, `with` and loops included."""
    waiting = list(reversed(body))  # a thousand elif lie in one another
    while waiting:
        statement = waiting.pop()
        yield statement
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        inside = [each for block in ("body", "orelse", "finalbody") for each in getattr(statement, block, [])]
        inside += [each for handler in getattr(statement, "handlers", []) for each in handler.body]
        waiting += reversed(inside)


def _stored_names(statement: ast.stmt) -> Iterator[str]:
    """The names that this one statement itself binds, its nested blocks left to `_at_top_level`."""
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return
    for field_name, value in ast.iter_fields(statement):
        if field_name in ("body", "orelse", "finalbody", "handlers", "cases"):
            continue
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, ast.AST):
                yield from (node.id for node in ast.walk(part)
                            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))


# Whether what a file does may follow from what it is called.


def knows_its_name(source: str) -> bool:
    """Whether `source` asks for the name of its file or module; True in every doubt, and for what is no Python."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, SystemError, ValueError, RecursionError, MemoryError):
        return True
    above = {inner: outer for outer in ast.walk(tree) for inner in ast.iter_child_nodes(outer)}
    return any(_tells(node, above) for node in ast.walk(tree))


def _tells(node: ast.AST, above: dict[ast.AST, ast.AST]) -> bool:
    if isinstance(node, ast.Constant):
        return node.value in ("__file__", "__name__")  # globals()["__file__"]
    if isinstance(node, ast.alias):
        return node.name.partition(".")[0] in _TELL
    if isinstance(node, ast.Attribute):  # another module's __file__, or a function's __name__, is not its own
        return node.attr in _TELL
    if not isinstance(node, ast.Name):
        return False
    if node.id == "__file__":
        return not _is_for_the_folder(node, above)
    return not _is_asked_for_main(above[node]) if node.id == "__name__" else node.id in _TELL


def _is_for_the_folder(node: ast.AST, above: dict[ast.AST, ast.AST]) -> bool:
    while isinstance(outer := above.get(node), (ast.Attribute, ast.Call)):
        if isinstance(outer, ast.Attribute):
            if outer.attr in _FORGETS:
                return True
        elif node in outer.args and called_name(outer) == _FOLDER_OF:
            return True
        elif called_name(outer) not in _STILL_A_PATH:
            return False
        node = outer
    return False


def called_name(call: ast.Call) -> str | None:
    """``name`` of ``name(…)`` and ``….name(…)``; None for what else may be called."""
    return getattr(call.func, "attr", None) or getattr(call.func, "id", None)


def _is_asked_for_main(outer: ast.AST) -> bool:
    return isinstance(outer, ast.Compare) and any(
        isinstance(each, ast.Constant) and each.value == "__main__" for each in (outer.left, *outer.comparators)
    )
