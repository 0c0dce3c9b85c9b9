"""All charts by name, as Altair's specifications; the page's script puts in the rows and the width of the window.

Colours are the page's CSS variables, so that light, dark and print need no drawing anew.
"""

from __future__ import annotations

import functools
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
_OFF = "% from median"
_SMALL = 170  # px, the height of a chart beside others
_ERROR_LABELS = [0, 1, 3, 10, 30, 100, 300, 1000, 10000, 100000]


def finished(chart: alt.LayerChart | alt.Chart) -> dict[str, Any]:
    """The specification as a dictionary that Vega-Lite's schema takes, in the page's looks."""
    text = {"labelColor": MUTED, "titleColor": MUTED, "labelFontSize": 12, "titleFontSize": 12}
    padding = {"left": 2, "right": 10, "top": 4, "bottom": 2}
    chart = chart.configure(background="transparent", font=_FONT, padding=padding).configure_view(stroke=None)
    lines = {"gridColor": GRID, "domainColor": LINE, "tickColor": LINE}
    chart = chart.configure_axis(**text, **lines, titleFontWeight="normal", titlePadding=8, labelLimit=190)
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
    return [
        alt.Tooltip(f"{name}:N", title=title) if isinstance(title, str)
        else alt.Tooltip(f"{name}:Q", title=title[0], format=title[1]) for name, title in titles.items()
    ]


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
    scale = alt.Scale(domain=["candidate", "baseline"], range=["circle", "diamond"])
    return alt.Shape("role:N", legend=None, scale=scale)


def line_at_one() -> alt.Chart:
    """Where a speedup says neither faster nor slower."""
    return alt.Chart(alt.InlineData([{"one": 1}])).mark_rule(color=LINE, strokeWidth=1.5).encode(x="one:Q")


def by_side(right: object, left: object, above: object) -> alt.ExprRef:
    """A label's property, by where the row says that the label stands."""
    return alt.ExprRef(f"datum.side === 'right' ? {right!r} : datum.side === 'left' ? {left!r} : {above!r}")


@functools.lru_cache(maxsize=1)
def specifications() -> dict[str, dict[str, Any]]:
    """Every chart's Vega-Lite specification by its name, without rows and without a width."""
    made = {"speedup": _speedup(), "beside": _beside(), "roofline": _roofline(), **_of_a_candidate()}
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
    shape, tooltip = alt.Shape("device:N", sort=None, legend=legend), told(name="name", device="device", text="speedup")
    point = rows().mark_point(filled=True, size=110, opacity=1).encode(x, y, color, shape, tooltip=tooltip)
    return alt.layer(line_at_one(), interval, point).properties(height=alt.Step(26))


def _roofline() -> alt.LayerChart:
    """Roofs as lines, entries as points, names beside them on thin leaders."""
    work, rate = "useful flop per useful byte (log scale)", "useful TFLOP/s (log scale)"
    x, y = logarithmic(alt.X, "x", work, 0), logarithmic(alt.Y, "y", rate, 14)
    dashes = alt.StrokeDash("name:N", sort=None, legend=alt.Legend(columns=2, symbolStrokeColor=MUTED))
    roof = only("roof").mark_line(strokeWidth=2, clip=True)
    roof = roof.encode(x, y, dashes, color=alt.value(MUTED), tooltip=told(name="roof", y=("TFLOP/s", ".3~g")))
    wide = alt.ExprRef("width > 520 ? 1 : 0")  # on a phone the names would lie on each other; a touch tells them
    leader = only("label").mark_rule(color=LINE, opacity=wide).encode(x, y, x2="x2:Q", y2="y2:Q")
    look = {"align": by_side("left", "right", "center"), "dx": by_side(4, -4, 0), "baseline": "middle", "fontSize": 11}
    name = only("label").mark_text(**look, opacity=wide)
    name = name.encode(alt.X("x2:Q", title=work), alt.Y("y2:Q", title=rate), text="name:N")
    color = alt.Color("problem:N", sort=None, scale=alt.Scale(range=SERIES), legend=alt.Legend(columns=1))
    figures = {"y": ("TFLOP/s", ".4~g"), "percent": ("% of speed of light", ".1f")}
    tooltip = told(name="name", problem="problem", text="speedup", **figures)
    point = only("point").mark_point(filled=True, size=95, opacity=1).encode(x, y, color, role_shape(), tooltip=tooltip)
    chart = alt.layer(roof, leader, name, point).resolve_scale(strokeDash="independent", color="independent")
    return chart.properties(height=420)


def _of_a_candidate() -> dict[str, alt.LayerChart | alt.Chart]:
    """The charts of one candidate."""
    return {
        "distribution": _distribution(), "rounds": _rounds(), "against_clock": _against_clock(), "errors": _errors(),
        "history": _history(), "drift": _drift(), "clock": _reading("sm_mhz", "MHz", SERIES[2], None),
        "watts": _reading("watts", "W", SERIES[3], "seconds since the first round"),
    }


def _arm() -> alt.Color:
    return alt.Color("arm:N", scale=meaning(ARMS), legend=alt.Legend(columns=2))


def _time(title: str | None) -> alt.X:
    """The axis that charts below each other share; the last of them has its labels and its title."""
    labelled = title is not None
    axis = alt.Axis(grid=False, labels=labelled, ticks=labelled)
    return alt.X("at:Q", title=title, scale=alt.Scale(nice=False, zero=False), axis=axis)


def _close(field: str, title: str, ticks: int = 5) -> alt.Y:
    """An axis that need not begin at zero."""
    return alt.Y(f"{field}:Q", title=title, scale=alt.Scale(zero=False), axis=alt.Axis(tickCount=ticks, **STACKED))


def _drift() -> alt.Chart:
    tooltip = told(arm="whose", us=("µs", ",.5~g"), off=(_OFF, "+.2f"))
    points = rows().mark_circle(size=22, opacity=0.6)
    return points.encode(_time(None), _close("off", _OFF), _arm(), tooltip=tooltip).properties(height=_SMALL)


def _reading(field: str, unit: str, color: str, title: str | None) -> alt.Chart:
    figures = {"sm_mhz": ("SM clock, MHz", ",.4~g"), "watts": ("W", ",.4~g"), "celsius": ("°C", ",.4~g")}
    axis = alt.Axis(tickCount=3, format=",d", **STACKED)
    y = alt.Y(f"{field}:Q", title=unit, scale=alt.Scale(zero=False, nice=True, padding=4), axis=axis)
    dots = alt.OverlayMarkDef(size=12, color=color)
    line = rows().mark_line(interpolate="step-before", point=dots, strokeWidth=1.5, color=color)
    return line.encode(_time(title), y, tooltip=told(**figures, throttle="throttle")).properties(height=64)


def _against_clock() -> alt.Chart:
    axis = alt.Axis(format=",d", tickCount=5)
    x = alt.X("sm_mhz:Q", title="SM clock (MHz)", scale=alt.Scale(zero=False, padding=12), axis=axis)
    tooltip = told(sm_mhz=("SM clock, MHz", ",d"), us=("µs", ",.5~g"))
    points = rows().mark_circle(size=34, opacity=0.6, color=SERIES[0])
    return points.encode(x, _close("off", _OFF), tooltip=tooltip).properties(height=_SMALL)


def _distribution() -> alt.Chart:
    axis = alt.Axis(tickCount=6, format="+~r", labelOverlap=True, grid=False)
    x = alt.X("lo:Q", bin="binned", title="% from the median of all launches", axis=axis)
    y = alt.Y("share:Q", title="% of launches", stack=None, axis=alt.Axis(tickCount=4, **STACKED))
    tooltip = told(arm="whose", lo=("from, %", "+.2f"), hi=("to, %", "+.2f"), launches=("launches", "d"))
    bars = rows().mark_bar(opacity=0.6, binSpacing=0.5)
    return bars.encode(x, alt.X2("hi:Q"), y, _arm(), tooltip=tooltip).properties(height=_SMALL)


def _rounds() -> alt.LayerChart:
    axis = alt.Axis(format="d", tickMinStep=1, grid=False)
    x = alt.X("round:Q", title="round", scale=alt.Scale(nice=False, zero=False, padding=8), axis=axis)
    title = "speedup over eager"
    y = _close("x", title)
    band = only("interval").mark_rect(opacity=0.25, color=SERIES[0]).encode(alt.Y("lo:Q", title=title), y2="hi:Q")
    middle = only("interval").mark_rule(color=SERIES[0], strokeWidth=1.5).encode(y)
    each = only("round").mark_circle(size=30, opacity=0.8, color=SERIES[0])
    each = each.encode(x, y, tooltip=told(round=("round", "d"), x=("speedup", ".5~g")))
    return alt.layer(band, middle, each).properties(height=_SMALL)


def _errors() -> alt.LayerChart:
    scale = alt.Scale(type="symlog", constant=1, nice=False, padding=10)  # zero is an error too, and the best
    axis = alt.Axis(values=_ERROR_LABELS, format="~s", labelOverlap=True)
    x, y = alt.X("u:Q", title="largest error (u, log scale from 1)", scale=scale, axis=axis), names("family", grid=True)
    color = alt.Color("what:N", scale=meaning(ARMS | {"allowed": "var(--slower)"}), legend=alt.Legend(columns=3))
    shape = alt.Shape("what:N", scale=alt.Scale(domain=list(ARMS), range=["circle", "diamond"]), legend=None)
    tooltip = told(what="whose", family="inputs", sizes="sizes", u=("u", ",.4~g"))
    points = only(list(ARMS), "what").mark_point(filled=True, size=80, opacity=0.85)
    ticks = only("allowed", "what").mark_tick(thickness=3, size=18).encode(x, y, color, tooltip=tooltip)
    return alt.layer(ticks, points.encode(x, y, color, shape, tooltip=tooltip)).properties(height=alt.Step(24))


def _history() -> alt.LayerChart:
    axis = alt.Axis(tickCount=4, format="%b %d, %H:%M", labelOverlap=True, labelBound=True, grid=False)
    x = alt.X("utc:T", title=None, scale=alt.Scale(type="utc", padding=20), axis=axis)
    y, scale = _close("x", "speedup"), alt.Scale(range=SERIES)
    color = alt.Color("version:N", sort=None, scale=scale, legend=alt.Legend(columns=3))
    quiet = alt.Stroke("version:N", sort=None, scale=scale, legend=None)
    line = rows().mark_line(color=LINE, strokeWidth=1.5).encode(x, y)
    interval = rows().mark_rule(strokeWidth=3, opacity=0.5).encode(x, alt.Y("lo:Q", title="speedup"), quiet, y2="hi:Q")
    point = rows().mark_point(filled=True, size=80, opacity=1)
    point = point.encode(x, y, color, tooltip=told(run="run", text="speedup", version="version"))
    return alt.layer(line, interval, point).properties(height=_SMALL)
