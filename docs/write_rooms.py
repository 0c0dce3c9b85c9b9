"""Puts the packages of the harness into docs/contributing.md: the lines of tests/test_layers.py, from the front door down.

`python docs/write_rooms.py` writes them between the markers; tests/test_documentation.py fails while they are not
current.
"""

from __future__ import annotations

import ast
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
PAGE = REPOSITORY / "docs" / "contributing.md"
_BEGIN, _END = "<!-- rooms: begin -->\n", "<!-- rooms: end -->\n"


def layers() -> tuple[tuple[str, ...], ...]:
    """Return the plan of the house as tests/test_layers.py has it, without running that file."""
    source = (REPOSITORY / "tests" / "test_layers.py").read_text(encoding="utf-8")
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "LAYERS":
            return ast.literal_eval(node.value)
    raise ValueError("tests/test_layers.py has no LAYERS")


def summary_of(room: str) -> str:
    """Return the first sentence of a room's docstring."""
    folder = REPOSITORY / "harness" / room
    path = folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")
    words = (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").split("\n\n")[0]
    return " ".join(words.split()).split(". ")[0].rstrip(".").replace("``", "`").replace("|", "\\|")


def page_with(page: str) -> str:
    """Return `page` with the rooms between its markers. Raises ValueError for a page without them."""
    before, begun, rest = page.partition(_BEGIN)
    _, ended, after = rest.partition(_END)
    if not begun or not ended:
        raise ValueError(f"{PAGE.name} has no markers {_BEGIN.strip()} and {_END.strip()}")
    rooms = [(number, room) for number, layer in enumerate(layers(), 1) for room in layer]
    rows = [f"| {number} | `{room}` | {summary_of(room)} |" for number, room in rooms]
    table = ["", "| layer | package | what it holds |", "|---|---|---|", *rows, "", ""]
    return f"{before}{_BEGIN}" + "\n".join(table) + f"{_END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page_with(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
