"""Prints how large the harness is and how far a reader has to walk in it: `python benchmarks/house.py`.

Lines count blanks and docstrings. A function's lines are those from its `def` to its end, without functions inside it
counted apart. The path is what one reads to follow a candidate from the command to its row.
"""

from __future__ import annotations

import ast
import statistics
import sys
from collections import Counter
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY))

from tests.test_layers import LAYERS, MODULES, OWN  # noqa: E402

# The path that one must read, aimed at 2,200 lines at most.
PATH = (
    "harness/judge/run.py", "harness/judge/device_run.py", "harness/judge/entry_judge.py", "harness/judge/evaluate.py",
    "harness/judge/stages.py", "harness/judge/check.py", "harness/timing/rounds.py", "harness/timing/segments.py",
    "harness/launch/session.py", "harness/report/leaderboard.py",
)
_SHORT_LINES = 80


def lines_of(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def function_lines() -> list[int]:
    """Return the lines of each function of the harness, the shortest first."""
    trees = (ast.parse(path.read_text(encoding="utf-8")) for path in MODULES.values())
    functions = (node for tree in trees for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)))
    return sorted(node.end_lineno - node.lineno + 1 for node in functions)


def with_one_importer() -> dict[str, str]:
    """Return the modules that one other module alone imports, and which; packages and programs are left out, and what a
    package hands on to those who import it.
    """
    importers: dict[str, set[str]] = {}
    for each in OWN:
        importers.setdefault(each.target, set()).add(each.module)
    return {
        module: next(iter(found)) for module, found in importers.items()
        if len(found) == 1 and module in MODULES and MODULES[module].name != "__init__.py"
        and found != {module.rpartition(".")[0]}
    }


def main() -> None:
    lines = {module: lines_of(path) for module, path in MODULES.items()}
    tests = sum(map(lines_of, (REPOSITORY / "tests").rglob("*.py")))
    functions = function_lines()
    single = with_one_importer()
    short = sorted(module for module in single if lines[module] < _SHORT_LINES)
    names = Counter(path.stem for path in MODULES.values() if path.name != "__init__.py")
    rooms = [room for layer in LAYERS for room in layer]
    packages = [room for room in rooms if (REPOSITORY / "harness" / room).is_dir()]
    p90 = functions[int(0.9 * (len(functions) - 1))]
    print(f"harness: {sum(lines.values()):,} lines in {len(lines)} modules; tests: {tests:,} lines")
    print(f"packages: {len(packages)}, with {len(rooms) - len(packages)} modules for programs in {len(LAYERS)} layers")
    print(f"functions: {len(functions):,}; lines: median {statistics.median(functions):.0f}, p90 {p90}, longest {functions[-1]}")
    print(f"modules above 500 lines: {sum(count > 500 for count in lines.values())}; longest {max(lines.values())}")
    print(f"modules with one importer: {len(single)}, of them below {_SHORT_LINES} lines: {len(short)}")
    print(f"file names that occur more than once: {sum(count > 1 for count in names.values())}")
    print(f"the path: {sum(lines_of(REPOSITORY / path) for path in PATH):,} lines in {len(PATH)} files")
    if "--names" in sys.argv[1:]:
        print(*(f"  {module} ({lines[module]}), by {single[module]}" for module in short), sep="\n")


if __name__ == "__main__":
    main()
