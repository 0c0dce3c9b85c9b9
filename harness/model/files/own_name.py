"""Whether what a candidate's file does may follow from what the file is called."""

from __future__ import annotations

import ast

# What is left of a path once one of these was asked of it has no name of the file's own in it any more.
_FORGETS = frozenset({"parent", "parents", "with_name"})
_FOLDER_OF = "dirname"
_STILL_A_PATH = frozenset({"Path", "PurePath", "str", "fspath", "abspath", "realpath", "normpath", "resolve", "absolute"})
_TELL = frozenset({
    "__spec__", "__module__", "__loader__", "__cached__", "_getframe", "currentframe", "inspect", "traceback", "co_filename",
    "globals", "locals", "vars",
})


def knows_its_name(source: str) -> bool:
    """Whether `source` asks for the name of its file or module, and not only for the folder that it lies in.

    True in every doubt, and for what is no Python.
    """
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
    if node.id == "__name__":
        return not _is_asked_for_main(above[node])
    return node.id in _TELL


def _is_for_the_folder(node: ast.AST, above: dict[ast.AST, ast.AST]) -> bool:
    while isinstance(outer := above.get(node), (ast.Attribute, ast.Call)):
        if isinstance(outer, ast.Attribute):
            if outer.attr in _FORGETS:
                return True
        elif node in outer.args and _called(outer) == _FOLDER_OF:
            return True
        elif _called(outer) not in _STILL_A_PATH:
            return False
        node = outer
    return False


def _called(call: ast.Call) -> str | None:
    return getattr(call.func, "attr", None) or getattr(call.func, "id", None)


def _is_asked_for_main(outer: ast.AST) -> bool:
    return isinstance(outer, ast.Compare) and any(
        isinstance(each, ast.Constant) and each.value == "__main__" for each in (outer.left, *outer.comparators)
    )
