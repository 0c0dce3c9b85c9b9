"""Puts measured figures into docs/ladder.md and its plot: tables in the order of their times, from one CSV a problem.

`python docs/write_ladder.py` takes the newest results of a run in the default configuration on an H200, or those that
are named (one of each problem). Names, ideas, expectations and all other prose stay as they are: read them again
after it. tests/test_ladder.py fails while the page is not what its CSVs say.
"""

from __future__ import annotations

import csv
import math
import re
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
PAGE = REPOSITORY / "docs" / "ladder.md"
PLOT = REPOSITORY / "docs" / "images" / "ladder.svg"
DEVICE = "nvidia-h200"
PROBLEMS = ("tril_matmul", "matmul_transposed_a", "tril_matmul_backward")

# Title, and the ends of the scale in ms, of each ladder that is drawn.
_DRAWN = {
    "tril_matmul": ("tril(A @ B), M = 4096", 0.1, 100.0),
    "matmul_transposed_a": ("A.T @ B, M = 2048, K = 8192, N = 4096", 0.4, 10.0),
}
_COLORS = {
    "cuBLAS": "#888888", "CUDA, fp32 pipes": "#3465a4", "Triton": "#d08a1d", "CUDA, tensor cores": "#2b8a5b",
}
_WIDTH, _BARS, _LEFT, _ROW = 900, 560, 230, 20

_LINK = re.compile(r"\[(?P<problem>\w+)\]\(\.\./results/(?P=problem)/[\w-]+/(?P<run>\w+)\.csv\)")
_DAY = re.compile(r"(?<=NVIDIA H200 on )\d{4}-\d\d-\d\d")
_ROWS = re.compile(r"(?<=\n\|---\|---\|---\|---\|---\|---\|\n)(?:\|.*\n)+")
_NAME = re.compile(r"\[(?P<name>\w+)\]\(\.\./candidates/(?P<problem>\w+)/\w+\.py\)")

Figures = dict[str, dict[str, str]]


def newest(problem: str) -> Path:
    """The last run of `problem` in the default configuration. Raises FileNotFoundError when there is none."""
    folder = REPOSITORY / "results" / problem / DEVICE
    for path in sorted(folder.glob("*.csv"), reverse=True):
        rows = read(path)
        if "eager" in rows and rows["eager"]["config"] == "default":
            return path
    raise FileNotFoundError(f"{folder} has no run in the default configuration")


def read(path: Path) -> Figures:
    """The rows of a results CSV by the name of their candidate or baseline."""
    with path.open(encoding="utf-8", newline="") as file:
        return {row["candidate"]: row for row in csv.DictReader(file)}


def named_in(page: str) -> dict[str, Path]:
    """The CSVs that the page links, by problem."""
    return {
        link["problem"]: REPOSITORY / "results" / link["problem"] / DEVICE / f"{link['run']}.csv"
        for link in _LINK.finditer(page)
    }


def page_with(page: str, paths: dict[str, Path]) -> str:
    """`page` with the figures of `paths`. Raises KeyError for a rung that a CSV does not have."""
    figures = {problem: read(path) for problem, path in paths.items()}
    page = _LINK.sub(
        lambda link: f"[{link['problem']}](../results/{link['problem']}/{DEVICE}/{paths[link['problem']].stem}.csv)",
        page
    )
    page = _DAY.sub(max(rows["eager"]["utc"] for rows in figures.values())[:10], page)
    return _ROWS.sub(lambda table: _table(table[0], figures), page)


def _table(lines: str, figures: Figures) -> str:
    problem = _NAME.search(lines)["problem"]
    timed = []
    for line in lines.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        link = _NAME.match(cells[0])
        row = figures[problem][link["name"] if link else cells[0]]
        if not row["time_us"]:
            raise KeyError(f"{problem}: {cells[0]} has no time: {row['status']}, {row['reason']}")
        timed.append((float(row["time_us"]), [
            *cells[:3], _milliseconds(row), _times(row), f"{float(row['percent_of_sol']):.1f} %",
        ]))
    timed.sort(key=lambda each: -each[0])
    return "".join(f"| {' | '.join(cells)} |\n" for _, cells in timed)


def _milliseconds(row: dict[str, str]) -> str:
    time = float(row["time_us"]) / 1000
    return f"{time:.1f}" if time >= 10 else f"{time:.3f}"


def _times(row: dict[str, str]) -> str:
    speedup = 1.0 if row["candidate"] == "eager" else float(row["speedup"])
    return f"{speedup:.3f}×" if speedup < 0.1 else f"{speedup:.2f}×"


def plot(page: str, paths: dict[str, Path]) -> str:
    """The SVG of the ladders, rungs in the page's order."""
    parts, y = [], 10
    for problem, (title, low, high) in _DRAWN.items():
        rows = read(paths[problem])
        (table,) = (lines for lines in _ROWS.findall(page) if _NAME.search(lines)["problem"] == problem)
        parts.append(
            f'<text x="10" y="{y + 18}" font-size="15" font-weight="bold">{title} (from {low:g} ms, logarithmic)</text>'
        )
        y += 30
        for line in table.splitlines():
            first = line.split("|")[1].strip()
            link = _NAME.match(first)
            parts.append(_bar(rows[link["name"] if link else first], y, low, high))
            y += _ROW
        y += 14
    for number, (words, color) in enumerate(_COLORS.items()):
        x = _LEFT + 160 * number
        parts.append(
            f'<rect x="{x}" y="{y}" width="12" height="12" fill="{color}"/>'
            f'<text x="{x + 18}" y="{y + 10}" font-size="12">{words}</text>'
        )
    y += 26
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{y}" viewBox="0 0 {_WIDTH} {y}" '
        f'font-family="sans-serif" fill="#222222"><rect width="{_WIDTH}" height="{y}" fill="white"/>'
    )
    return "\n".join([head, *parts, "</svg>\n"])


def _bar(row: dict[str, str], y: int, low: float, high: float) -> str:
    time = float(row["time_us"]) / 1000
    width = _BARS * math.log(time / low) / math.log(high / low)
    return (
        f'<text x="{_LEFT - 8}" y="{y + 11}" text-anchor="end" font-size="12">{row["candidate"]}</text>'
        f'<rect x="{_LEFT}" y="{y}" width="{width:.1f}" height="14" fill="{_COLORS[_kind(row["candidate"])]}"/>'
        f'<text x="{_LEFT + width + 6:.1f}" y="{y + 11}" font-size="12">{time:.3g} ms</text>'
    )


def _kind(name: str) -> str:
    if name == "eager" or name.startswith("cublas"):
        return "cuBLAS"
    if name.startswith("triton"):
        return "Triton"
    return "CUDA, tensor cores" if "mma" in name else "CUDA, fp32 pipes"


def main() -> None:
    paths = {problem: newest(problem) for problem in PROBLEMS}
    for given in map(Path, sys.argv[1:]):
        paths[given.resolve().parents[1].name] = given
    page = page_with(PAGE.read_text(encoding="utf-8"), paths)
    PAGE.write_text(page, encoding="utf-8")
    PLOT.write_text(plot(page, paths), encoding="utf-8")


if __name__ == "__main__":
    main()
