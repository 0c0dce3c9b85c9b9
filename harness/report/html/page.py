"""Puts the page together: template, style and script around the tables and charts, in one file that needs no network.

Names, reasons, sources and compilers' words are a candidate's own and hostile until escaped: Jinja escapes all of
them, the charts' rows travel as JSON without a `<`, and a policy in the page lets no script run but those whose
hashes it names, and nothing be fetched. `render` keeps the page below 3 MB and says what it left out for that.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import importlib.util
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness import __version__
from harness.model.errors import HarnessError
from harness.report import terminal
from harness.report.html import chart_rows, launches, tables
from harness.report.html.cases import Problem, problems_of
from harness.report.html.roofline import rooflines
from harness.report.html.run_files import Gathered, Source, highlighted

LIMIT_BYTES = 3_000_000
GENERATOR = "kernel-referee report"
_FOLDER = Path(__file__).resolve().parent
_PACKAGES = {"altair": "altair", "vl_convert": "vl-convert-python", "jinja2": "Jinja2", "pygments": "Pygments"}


@dataclass(frozen=True)
class Detail:
    """How much is shown of each entry: launches and rounds per arm, characters of a source or log, older runs; and how
    many `entries` of a case have a section of their own.
    """

    launches: int
    characters: int
    runs: int
    entries: int


# From all there is to what fits in any case.
_ALL = 100_000
_DETAILS = (
    Detail(400, 100_000, 200, _ALL), Detail(120, 20_000, 50, _ALL), Detail(40, 6_000, 20, _ALL),
    Detail(0, 2_000, 10, _ALL), Detail(40, 2_000, 10, 50), Detail(0, 0, 5, 20), Detail(0, 0, 0, 0),
)


@dataclass
class Charts:
    """The charts that a page has, in order; the template asks for each where it is to stand."""

    drawn: list[dict[str, Any]] = field(default_factory=list)

    def add(self, name: str, rows: Sequence[Mapping[str, Any]]) -> int:
        """Number of the new chart of specification `name`; the rows are kept as a table without repeated names."""
        fields = list(dict.fromkeys(key for row in rows for key in row))
        values = [[_short(row.get(key)) for key in fields] for row in rows]
        self.drawn.append({"name": name, "fields": fields, "rows": values})
        return len(self.drawn) - 1


@dataclass(frozen=True)
class Page:
    """The finished file's text, and a sentence for everything passed over or left out."""

    html: str
    notes: tuple[str, ...]
    problems: int
    entries: int


def render(gathered: Gathered, sources: Mapping[str, Source], utc: str) -> Page:
    """The page of all runs, below `LIMIT_BYTES`. Raises HarnessError where a package that draws is not installed."""
    missing = " ".join(name for module, name in _PACKAGES.items() if importlib.util.find_spec(module) is None)
    if missing:
        raise HarnessError(f"the report is drawn by {missing}, not installed here. Type pip install {missing}")
    notes = list(gathered.notes)
    problems = problems_of(gathered.runs, sources, notes.append)
    entries = sum(len(case.entries) for problem in problems for case in problem.cases)
    place, size = -1, LIMIT_BYTES
    while size >= LIMIT_BYTES and place + 1 < len(_DETAILS):
        place = min(place + (2 if size > 2 * LIMIT_BYTES else 1), len(_DETAILS) - 1)
        told = [*notes, *([_left_out(_DETAILS[place])] if place else [])]
        html = _html(problems, told, _DETAILS[place], gathered, utc)
        size = len(html.encode())
    return Page(html, tuple(told), len(problems), entries)


def _left_out(detail: Detail) -> str:
    drawn = f"{detail.launches} launches of a candidate are drawn" if detail.launches else "no launches are drawn"
    cut = f"sources are cut at {detail.characters:,} characters" if detail.characters else "sources are left out"
    parts = [drawn, cut, f"{detail.runs} older runs are listed" if detail.runs else "older runs are not listed"]
    if detail.entries < _ALL:
        some = f"only the first {detail.entries} rows of a table have" if detail.entries else "no candidate has"
        parts.append(f"{some} a section")
    return f"to stay below 3 MB, {', '.join(parts)}; a report of one CSV has more"


def _html(problems: Sequence[Problem], notes: Sequence[str], detail: Detail, gathered: Gathered, utc: str) -> str:
    import jinja2

    from harness.report.html.charts import specifications

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_FOLDER), autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "breakable": breakable, "time": terminal.time_text, "date": terminal.date_text,
        "percent": terminal.percent_text, "units": terminal.units_text, "speedup": terminal.speedup_text,
    }
    library = _library()
    script, style = ((_FOLDER / name).read_text(encoding="utf-8") for name in ("page.js", "page.css"))
    safe = jinja2.utils.markupsafe.Markup  # for what this package wrote, and never for what came in
    return environment.get_template("page.html.j2").render(
        problems=problems, notes=notes, detail=detail, charts=Charts(), launches=launches, plotted=chart_rows,
        tables=tables, rooflines=rooflines(problems), specifications=specifications(), utc=utc, version=__version__,
        generator=GENERATOR, runs=len(gathered.runs), style=safe(style), library=safe(library),
        source_html=lambda text: safe(_source_html(text, detail.characters)), script=safe(script),
        policy=_policy((library, script)),
    )


def breakable(name: str) -> Any:
    """The name, escaped, with a place to break the line after each underscore."""
    from markupsafe import Markup, escape

    return Markup("_<wbr>").join(escape(part) for part in name.split("_"))


@functools.lru_cache(maxsize=256)
def _source_html(text: str, most: int) -> str:
    return highlighted(text[:most])


@functools.lru_cache(maxsize=1)
def _library() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script."""
    import vl_convert

    # In braces, so that none of its hundreds of names becomes a global beside the page's own script.
    bundle = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    return inside_script("{" + bundle + "}")


def inside_script(text: str) -> str:
    """A script as it may stand between tags: what would end or open one there is written in another way."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("<!--", "\\x3c!--")
    return re.sub(r"<(/?script)", r"\\x3c\1", text, flags=re.IGNORECASE)


def _policy(scripts: Sequence[str]) -> str:
    """A content security policy: our own scripts by their hashes, inline styles, and no network."""
    hashes = (base64.b64encode(hashlib.sha256(each.encode()).digest()).decode() for each in scripts)
    allowed = " ".join(f"'sha256-{each}'" for each in hashes)
    rest = "style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
    return f"default-src 'none'; script-src {allowed}; {rest}"


def _short(value: Any) -> Any:
    """Six significant digits are more than a chart can show, and a third of the bytes."""
    return float(f"{value:.6g}") if isinstance(value, float) else value
