"""The sandboxes of the house: which room may import which, read from the source of every module.

A room is a package directly below `harness`. What a module imports only for its annotations, below
`if TYPE_CHECKING:`, is no import.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
HARNESS = REPOSITORY / "harness"

# From the front door down. A room may import rooms of a later line only.
LAYERS = (
    ("cli", "cluster", "errors"),
    ("selftest",),
    ("runs",),
    ("judge",),
    ("report", "tools"),
    ("audit", "results"),
    ("timing",),
    ("launch",),
    ("device",),
    ("attribution", "build"),
    ("reference", "sandbox"),
    ("model", "worker"),
    ("protocol",),
)
PURE = ("timing.stats", "reference.accuracy", "model.physics", "model.formulas", "model.verdict", "model.errors")
FILE_SYSTEM = {"os", "pathlib", "io", "shutil", "tempfile", "glob", "subprocess", "socket"}
HEAVY = {"torch", "pydantic", "pydantic_core", "pandas", "numpy", "scipy", "rich", "tabulate", "yaml", "triton"}


@dataclass(frozen=True)
class Import:
    """`module` imports `target` (dotted) on `line`; `at_start` when it happens as the module is imported."""

    module: str
    target: str
    line: int
    at_start: bool

    @property
    def rooms(self) -> tuple[str, str]:
        return _room(self.module), _room(self.target)


def module_name(path: Path) -> str:
    parts = path.relative_to(REPOSITORY).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(HARNESS.rglob("*.py"))}


def _room(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[1] != "__main__" else ""


def _is_type_checking(test: ast.expr) -> bool:
    return (isinstance(test, ast.Name) and test.id == "TYPE_CHECKING") or (
        isinstance(test, ast.Attribute) and test.attr == "TYPE_CHECKING"
    )


def _statements(nodes: list[ast.stmt], at_start: bool) -> Iterator[tuple[ast.stmt, bool]]:
    for node in nodes:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield node, at_start
        inside_function = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        skipped = node.body if isinstance(node, ast.If) and _is_type_checking(node.test) else []
        for field in ("body", "orelse", "finalbody", "handlers", "cases"):
            below = [each for each in getattr(node, field, []) if each not in skipped]
            for each in below:
                if isinstance(each, (ast.ExceptHandler, ast.match_case)):
                    yield from _statements(each.body, at_start and not inside_function)
            plain = [each for each in below if isinstance(each, ast.stmt)]
            yield from _statements(plain, at_start and not inside_function)


def imports_of(module: str, source: str) -> list[Import]:
    """Every import in `source`; a name imported from a package counts as the module of that name, if it is one."""
    found = []
    for node, at_start in _statements(ast.parse(source).body, True):
        if isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        elif node.level:
            raise AssertionError(f"{module}:{node.lineno} imports relatively; the house imports by full name")
        else:
            targets = [
                full if (full := f"{node.module}.{alias.name}") in MODULES else node.module for alias in node.names
            ]
        found += [Import(module, target, node.lineno, at_start) for target in dict.fromkeys(targets)]
    return found


IMPORTS = [each for name, path in MODULES.items() for each in imports_of(name, path.read_text(encoding="utf-8"))]
OWN = [each for each in IMPORTS if each.target.split(".")[0] == "harness"]


def lines(found: list[Import]) -> str:
    return "\n".join(f"{MODULES[each.module]}:{each.line} imports {each.target}" for each in found)


def test_every_room_stands_on_one_line_of_the_plan():
    planned = [room for layer in LAYERS for room in layer]
    assert len(LAYERS) <= 13
    assert sorted(planned) == sorted({_room(module) for module in MODULES} - {""})


def test_imports_point_downwards_only():
    depth = {room: index for index, layer in enumerate(LAYERS) for room in layer}
    upwards = [
        each for each in OWN
        if each.rooms[0] != each.rooms[1] and all(each.rooms) and depth[each.rooms[0]] >= depth[each.rooms[1]]
    ]
    assert not upwards, lines(upwards)


def test_no_two_rooms_import_each_other_even_by_a_detour():
    below = {room: {each.rooms[1] for each in OWN if each.rooms[0] == room} - {room, ""} for room in
             {_room(module) for module in MODULES}}
    assert _circle(below) is None


def test_no_two_modules_import_each_other_even_by_a_detour():
    below = {module: {each.target for each in OWN if each.module == module} - {module} for module in MODULES}
    assert _circle(below) is None


def test_the_worker_knows_of_the_protocol_and_of_nothing_else():
    allowed = {"worker", "protocol"}
    seen = [each for each in OWN if each.rooms[0] == "worker" and each.rooms[1] not in allowed]
    assert not seen, lines(seen)


def test_what_the_worker_imports_leads_it_no_further():
    seen = [each for each in OWN if each.rooms[0] == "protocol" and each.rooms[1] != "protocol"]
    assert not seen, lines(seen)


@pytest.mark.parametrize("door", ["run.py", "harness/__main__.py"])
def test_the_front_doors_know_the_command_line_only(door):
    found = imports_of("door", (REPOSITORY / door).read_text(encoding="utf-8"))
    assert {each.target for each in found if each.target.startswith("harness")} == {"harness.cli"}


@pytest.mark.parametrize("place", PURE)
def test_pure_arithmetic_touches_neither_torch_nor_the_file_system(place):
    forbidden = FILE_SYSTEM | {"torch"}
    allowed = {"pathlib"} if place == "model.errors" else set()  # an error names a path and never opens it
    seen = [
        each for each in IMPORTS
        if f"{each.module}.".startswith(f"harness.{place}.") and each.target.split(".")[0] in forbidden - allowed
    ]
    assert not seen, lines(seen)


def _imported_at_start(roots: list[str]) -> list[Import]:
    """Everything that importing `roots` imports, directly or not."""
    found, waiting, seen = [], list(roots), set()
    while waiting:
        module = waiting.pop()
        parents = [module.rsplit(".", count)[0] for count in range(1, module.count(".") + 1)]
        waiting += [parent for parent in parents if parent not in seen]
        if module in seen or module not in MODULES:
            continue
        seen.add(module)
        mine = [each for each in IMPORTS if each.module == module and each.at_start]
        found += mine
        waiting += [each.target for each in mine]
    return found


@pytest.mark.parametrize(
    "roots",
    [
        ["harness.cli"], ["harness.cli.verbs.list"], ["harness.cli.verbs.run", "harness.device.choice"],
        ["harness.cli.verbs.compare"], ["harness.cli.verbs.scores"], ["harness.cli.verbs.suite"], ["harness.cli.verbs.selftest"],
        ["harness.cli.verbs.report", "harness.report.html.page"], ["harness.cli.verbs.show"], ["harness.cli.verbs.new"],
        ["harness.cli.verbs.watch"],
    ],
    ids=["--help", "list", "a mistake in a run", "compare", "scores", "a mistake in a suite", "a mistake in a selftest",
         "report", "show", "new", "a mistake in a watch"],
)
def test_torch_and_pandas_are_not_imported_before_they_are_needed(roots):
    heavy = [each for each in _imported_at_start(roots) if each.target.split(".")[0] in {"torch", "pandas", "triton"}]
    assert not heavy, lines(heavy)


def test_help_needs_no_package_but_the_standard_library():
    heavy = [each for each in _imported_at_start(["harness.cli"]) if each.target.split(".")[0] in HEAVY]
    assert not heavy, lines(heavy)


def _loaded_by(*words: str) -> tuple[int, set[str]]:
    """Exit code of the command line `words`, and the heavy packages it had loaded by its end."""
    program = (
        "import sys\n"
        "from harness.cli import main\n"
        "try:\n    code = main(sys.argv[1:])\n"
        "except SystemExit as end:\n    code = end.code or 0\n"
        f"print('LOADED', code, *sorted({HEAVY!r} & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *words], cwd=REPOSITORY, capture_output=True, text=True, timeout=60, check=True
    )
    code, *loaded = done.stdout.splitlines()[-1].split()[1:]
    return int(code), set(loaded)


@pytest.mark.parametrize("words", [["--help"], ["run", "--help"], ["--version"], ["nonsense"]])
@pytest.mark.processes
def test_the_simplest_command_lines_load_no_heavy_package(words):
    assert _loaded_by(*words)[1] == set()


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["list"], 0),
        (["problems/tril_matmul.yaml", "--device", "toaster"], 2),
        (["problems/tril_matmul.yml"], 2),
        (["problems/tril_matmul.yaml", "--config", "rigourous"], 2),
        (["problems/tril_matmul.yaml", "--only", "no-such-candidate"], 2),
        (["compare", "no-such-file.csv"], 2),
        (["show", "no-such-candidate"], 2),
        (["new", "tril_matmull", "mine"], 2),
        (["report", "results", "--out", "harness"], 2),
        (["report", "no-such-folder"], 2),
        (["selftest", "--adversarial", "--only", "no-such-case"], 2),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else str(value),
)
@pytest.mark.processes
def test_lists_and_mistakes_are_answered_without_torch(words, code):
    ended, loaded = _loaded_by(*words)
    assert ended == code
    assert not loaded & {"torch", "pandas", "triton"}


@pytest.mark.processes
def test_a_whole_report_is_written_without_torch_or_pandas(tmp_path):
    ended, loaded = _loaded_by("report", "results", "--out", str(tmp_path / "report.html"))
    assert ended == 0 and (tmp_path / "report.html").exists()
    assert not loaded & {"torch", "pandas", "triton"}


def _circle(below: dict[str, set[str]]) -> list[str] | None:
    """One closed path through `below`, or None."""
    done: set[str] = set()

    def walk(node: str, path: list[str]) -> list[str] | None:
        if node in path:
            return path[path.index(node):] + [node]
        if node in done:
            return None
        for target in sorted(below.get(node, ())):
            found = walk(target, [*path, node])
            if found:
                return found
        done.add(node)
        return None

    return next((found for node in sorted(below) if (found := walk(node, []))), None)


def test_the_search_for_circles_finds_one():
    assert _circle({"a": {"b"}, "b": {"c"}, "c": {"a"}}) == ["a", "b", "c", "a"]
    assert _circle({"a": {"b", "c"}, "b": {"c"}, "c": set()}) is None


def test_the_reading_of_imports_sees_through_functions_and_past_annotations():
    source = (
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    import pandas\n"
        "else:\n    import json\n"
        "def f():\n    try:\n        import torch\n    except ImportError:\n        import numpy\n"
    )
    found = {(each.target, each.at_start) for each in imports_of("harness.x", source)}
    assert found == {("typing", True), ("json", True), ("torch", False), ("numpy", False)}
