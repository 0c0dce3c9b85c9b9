"""The charts of a whole run (speedups, devices side by side, roofline), and the list of all charts by name.

Altair makes the specifications; rows are put in by the page's script, with the width that the reader's window has.
"""

from __future__ import annotations

from typing import Any

import altair as alt

from harness.report.html import launch_charts
from harness.report.html.chart_style import (
    CALLS, LINE, MUTED, SERIES, by_side, finished, line_at_one, logarithmic, meaning, names, only, role_shape, rows,
    told,
)


def specifications() -> dict[str, dict[str, Any]]:
    """Every chart's Vega-Lite specification by its name, without rows and without a width."""
    made = {"speedup": _speedup(), "beside": _beside(), "roofline": _roofline(), **launch_charts.all_charts()}
    return {name: finished(chart) for name, chart in made.items()}


def _speedup() -> alt.LayerChart:
    """A point per row with its interval, in the colour of its call, with its figures where there is room."""
    title = "speedup (log scale)"
    x, y = logarithmic(alt.X, "x", title, 24), names()
    color = alt.Color("call:N", scale=meaning(CALLS), legend=None)
    quiet = alt.Stroke("call:N", scale=meaning(CALLS), legend=None)
    interval = rows().mark_rule(strokeWidth=5, strokeCap="round", opacity=0.45)
    interval = interval.encode(alt.X("lo:Q", title=title), y, quiet, x2="hi:Q")
    point = rows().mark_point(filled=True, size=110, opacity=1)
    point = point.encode(x, y, color, role_shape(), tooltip=told(name="name", text="speedup", call="call"))
    label = rows().mark_text(align=by_side("left", "right", "center"), dx=by_side(12, -12, 0), dy=by_side(0, 0, -12))
    return alt.layer(line_at_one(), interval, point, label.encode(x, y, text="label:N")).properties(height=alt.Step(34))


def _beside() -> alt.LayerChart:
    """A point per candidate and device, each over that device's own baseline."""
    title = "speedup over its own baseline (log)"
    x, y = logarithmic(alt.X, "x", title, 16), names()
    legend, scale = alt.Legend(columns=1), alt.Scale(range=SERIES)
    color = alt.Color("device:N", sort=None, scale=scale, legend=legend)
    quiet = alt.Stroke("device:N", sort=None, scale=scale, legend=None)
    interval = rows().mark_rule(strokeWidth=4, opacity=0.4).encode(alt.X("lo:Q", title=title), y, quiet, x2="hi:Q")
    point = (
        rows()
        .mark_point(filled=True, size=110, opacity=1)
        .encode(
            x,
            y,
            color,
            alt.Shape("device:N", sort=None, legend=legend),
            tooltip=told(name="name", device="device", text="speedup"),
        )
    )
    return alt.layer(line_at_one(), interval, point).properties(height=alt.Step(26))


def _roofline() -> alt.LayerChart:
    """Roofs as lines, entries as points, names beside them on thin leaders."""
    work, rate = "useful flop per useful byte (log scale)", "useful TFLOP/s (log scale)"
    x, y = logarithmic(alt.X, "x", work, 0), logarithmic(alt.Y, "y", rate, 14)
    dashes = alt.StrokeDash("name:N", sort=None, legend=alt.Legend(columns=2, symbolStrokeColor=MUTED))
    roof = (
        only("roof")
        .mark_line(strokeWidth=2, clip=True)
        .encode(x, y, dashes, color=alt.value(MUTED), tooltip=told(name="roof", y=("TFLOP/s", ".3~g")))
    )
    wide = alt.ExprRef("width > 520 ? 1 : 0")  # on a phone the names would lie on each other; a touch tells them
    leader = only("label").mark_rule(color=LINE, opacity=wide).encode(x, y, x2="x2:Q", y2="y2:Q")
    look = {"align": by_side("left", "right", "center"), "dx": by_side(4, -4, 0), "baseline": "middle", "fontSize": 11}
    name = only("label").mark_text(**look, opacity=wide)
    name = name.encode(alt.X("x2:Q", title=work), alt.Y("y2:Q", title=rate), text="name:N")
    color = alt.Color("problem:N", sort=None, scale=alt.Scale(range=SERIES), legend=alt.Legend(columns=1))
    figures = {"y": ("TFLOP/s", ".4~g"), "percent": ("% of speed of light", ".1f")}
    point = (
        only("point")
        .mark_point(filled=True, size=95, opacity=1)
        .encode(x, y, color, role_shape(), tooltip=told(name="name", problem="problem", text="speedup", **figures))
    )
    chart = alt.layer(roof, leader, name, point).resolve_scale(strokeDash="independent", color="independent")
    return chart.properties(height=420)
