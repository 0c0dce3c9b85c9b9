"""What the charts are put together from: the page's colours and fonts, rows by kind, axes, tooltips.

Colours are the page's CSS variables, so that light, dark and print need no drawing anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

INK, MUTED, LINE, GRID = "var(--ink)", "var(--muted)", "var(--line)", "var(--grid)"
SERIES = [f"var(--c{number})" for number in range(1, 9)]
CALLS = {"FASTER": "var(--faster)", "SLOWER": "var(--slower)", "SAME": "var(--same)", "UNSURE": "var(--unsure)"}
ARMS = {"candidate": "var(--c1)", "eager": "var(--c2)"}
# The page's own font: Vega measures its labels with it.
_FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", sans-serif'
ROUND = [digit * 10.0**power for power in range(-5, 6) for digit in (1, 2, 5)]  # labels of a logarithmic axis
# Charts below each other share their time axis only if what is left of each plot is as wide.
STACKED = {"minExtent": 46, "maxExtent": 46}


def finished(chart: alt.LayerChart | alt.Chart) -> dict[str, Any]:
    """The specification as a dictionary that Vega-Lite's schema takes, in the page's looks."""
    text = {"labelColor": MUTED, "titleColor": MUTED, "labelFontSize": 12, "titleFontSize": 12}
    padding = {"left": 2, "right": 10, "top": 4, "bottom": 2}
    chart = chart.configure(background="transparent", font=_FONT, padding=padding).configure_view(stroke=None)
    chart = chart.configure_axis(
        **text,
        titleFontWeight="normal",
        titlePadding=8,
        gridColor=GRID,
        domainColor=LINE,
        tickColor=LINE,
        labelLimit=190,
    )
    chart = chart.configure_axisX(labelSeparation=5)  # px; of neighbours that would come closer one is left out
    chart = chart.configure_legend(**text, title=None, orient="top", columns=2, labelLimit=320, symbolSize=70)
    made = chart.configure_text(color=INK, fontSize=12).to_dict()
    del made["$schema"]  # an older Altair names an older version, which the newest library draws as well
    return made


def rows() -> alt.Chart:
    """A chart of the rows that the page puts in."""
    return alt.Chart(alt.NamedData("rows"))


def only(value: str | Sequence[str], field: str = "kind") -> alt.Chart:
    """A chart of the rows whose `field` is `value`, or one of them."""
    if isinstance(value, str):
        return rows().transform_filter(alt.FieldEqualPredicate(field=field, equal=value))
    return rows().transform_filter(alt.FieldOneOfPredicate(field=field, oneOf=list(value)))


def told(**titles: str | tuple[str, str]) -> list[alt.Tooltip]:
    """A tooltip of texts (`name="title"`) and numbers (`name=("title", "format")`), in the order given."""
    made = []
    for name, title in titles.items():
        if isinstance(title, str):
            made.append(alt.Tooltip(f"{name}:N", title=title))
        else:
            made.append(alt.Tooltip(f"{name}:Q", title=title[0], format=title[1]))
    return made


def meaning(colors: dict[str, str]) -> alt.Scale:
    """A colour for each value, whichever of them there are."""
    return alt.Scale(domain=list(colors), range=list(colors.values()))


def names(field: str = "name", *, grid: bool = False) -> alt.Y:
    """One line per name, in the order of the rows."""
    axis = alt.Axis(labelColor=INK, domain=False, ticks=False, labelPadding=10, grid=grid)
    return alt.Y(f"{field}:N", title=None, sort=None, axis=axis)


def logarithmic(channel: type[alt.X | alt.Y], field: str, title: str, padding: int) -> alt.X | alt.Y:
    """A logarithmic axis that is labelled at 1, 2 and 5."""
    scale = alt.Scale(type="log", nice=False, padding=padding)
    return channel(f"{field}:Q", title=title, scale=scale, axis=alt.Axis(format="~g", values=ROUND, labelOverlap=True))


def role_shape() -> alt.Shape:
    """A circle for a candidate, a diamond for a baseline."""
    return alt.Shape(
        "role:N", legend=None, scale=alt.Scale(domain=["candidate", "baseline"], range=["circle", "diamond"])
    )


def line_at_one() -> alt.Chart:
    """Where a speedup says neither faster nor slower."""
    return alt.Chart(alt.InlineData([{"one": 1}])).mark_rule(color=LINE, strokeWidth=1.5).encode(x="one:Q")


def by_side(right: object, left: object, above: object) -> alt.ExprRef:
    """A label's property, by where the row says that the label stands."""
    return alt.ExprRef(f"datum.side === 'right' ? {right!r} : datum.side === 'left' ? {left!r} : {above!r}")
