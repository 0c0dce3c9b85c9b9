"""The specifications of the charts, made by Altair: what is on which axis, with which mark, in which of the page's colours.

Colours are the page's CSS variables, so that light, dark and print need no drawing anew. Rows are put in by the page's
script under the name `rows`, with the width that the reader's window has.
"""

from __future__ import annotations

from typing import Any

import altair as alt

_INK, _MUTED, _LINE, _GRID = "var(--ink)", "var(--muted)", "var(--line)", "var(--grid)"
_CALLS = {"FASTER": "var(--faster)", "SLOWER": "var(--slower)", "SAME": "var(--same)", "UNSURE": "var(--unsure)"}
_ARMS = {"candidate": "var(--c1)", "eager": "var(--c2)"}
_SERIES = [f"var(--c{number})" for number in range(1, 9)]
_FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", sans-serif'  # the page's; Vega measures with it
_SPEEDUP = "speedup (log scale)"
_ROUND = [digit * 10.0**power for power in range(-5, 6) for digit in (1, 2, 5)]  # labels of a logarithmic axis
# A label's property where it stands to the right of its point, to the left, above.
_PLACES = {"align": ("left", "right", "center"), "dx": (12, -12, 0), "dy": (0, 0, -12)}
# Charts below each other share their time axis only if what is left of the plot is as wide.
_STACKED = {"minExtent": 46, "maxExtent": 46}


def specifications() -> dict[str, dict[str, Any]]:
    """Every chart's Vega-Lite specification by its name, without rows and without a width."""
    made = {
        "speedup": _speedup(), "beside": _beside(), "roofline": _roofline(), "distribution": _distribution(),
        "rounds": _rounds(), "against_clock": _against_clock(), "errors": _errors(), "history": _history(),
    }
    for unit in ("seconds", "rounds"):
        made[f"drift_{unit}"] = _drift()
        made[f"clock_{unit}"] = _reading("sm_mhz", "MHz", _SERIES[2], unit, last=False)
        made[f"watts_{unit}"] = _reading("watts", "W", _SERIES[3], unit, last=True)
    return {name: _finished(chart) for name, chart in made.items()}


def _finished(chart: alt.LayerChart | alt.Chart) -> dict[str, Any]:
    text = {"labelColor": _MUTED, "titleColor": _MUTED, "labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal"}
    chart = chart.configure(background="transparent", font=_FONT, padding={"left": 2, "right": 10, "top": 4, "bottom": 2})
    chart = chart.configure_view(stroke=None).configure_axis(
        **text, gridColor=_GRID, domainColor=_LINE, tickColor=_LINE, labelLimit=190, titlePadding=8,
    )
    chart = chart.configure_legend(**text, title=None, orient="top", columns=2, labelLimit=320, symbolSize=70)
    return chart.configure_text(color=_INK, fontSize=12).to_dict()


def _rows() -> alt.Chart:
    return alt.Chart(alt.NamedData("rows"))


def _only(kind: str) -> alt.Chart:
    return _rows().transform_filter(alt.FieldEqualPredicate(field="kind", equal=kind))


def _colors(meanings: dict[str, str]) -> alt.Scale:
    return alt.Scale(domain=list(meanings), range=list(meanings.values()))


def _speedup() -> alt.LayerChart:
    x = alt.X("x:Q", title=_SPEEDUP, scale=alt.Scale(type="log", nice=False, padding=24), axis=alt.Axis(format="~g", values=_ROUND, labelOverlap=True))
    y = alt.Y("name:N", title=None, sort=None, axis=alt.Axis(labelColor=_INK, domain=False, ticks=False, labelPadding=10))
    color = alt.Color("call:N", scale=_colors(_CALLS), legend=None)
    shape = alt.Shape("role:N", scale=alt.Scale(domain=["candidate", "baseline"], range=["circle", "diamond"]), legend=None)
    told = [alt.Tooltip("name:N", title="name"), alt.Tooltip("text:N", title="speedup"), alt.Tooltip("call:N", title="call")]
    one = alt.Chart(alt.InlineData([{"one": 1}])).mark_rule(color=_LINE, strokeWidth=1.5).encode(x="one:Q")
    quiet = alt.Stroke("call:N", scale=_colors(_CALLS), legend=None)
    interval = _rows().mark_rule(strokeWidth=5, strokeCap="round", opacity=0.45).encode(alt.X("lo:Q", title=_SPEEDUP), y, quiet, x2="hi:Q")
    point = _rows().mark_point(filled=True, size=110, opacity=1).encode(x, y, color, shape, tooltip=told)
    return alt.layer(one, interval, point, *_beside_points(x, y)).properties(height=alt.Step(34))


def _beside_points(x: alt.X, y: alt.Y) -> list[alt.Chart]:
    """The figures as text, on that side of each point where there is room, or above a wide interval."""
    side = {name: alt.ExprRef(_by_side(*values)) for name, values in _PLACES.items()}
    return [_rows().mark_text(**side).encode(x, y, text="text:N")]


def _by_side(right: object, left: object, above: object) -> str:
    """An expression that picks a label's property by where the label stands."""
    return f"datum.side === 'right' ? {right!r} : datum.side === 'left' ? {left!r} : {above!r}"


def _beside() -> alt.LayerChart:
    title = "speedup over that device's own eager (log scale)"
    x = alt.X("x:Q", title=title, scale=alt.Scale(type="log", nice=False, padding=16),
              axis=alt.Axis(format="~g", values=_ROUND, labelOverlap=True))
    y = alt.Y("name:N", title=None, sort=None, axis=alt.Axis(labelColor=_INK, domain=False, ticks=False, labelPadding=10))
    legend = alt.Legend(columns=1)
    color = alt.Color("device:N", sort=None, scale=alt.Scale(range=_SERIES), legend=legend)
    shape = alt.Shape("device:N", sort=None, legend=legend)
    told = [alt.Tooltip(f"{field}:N", title=title) for field, title in (("name", "name"), ("device", "device"), ("text", "speedup"))]
    one = alt.Chart(alt.InlineData([{"one": 1}])).mark_rule(color=_LINE, strokeWidth=1.5).encode(x="one:Q")
    quiet = alt.Stroke("device:N", sort=None, scale=alt.Scale(range=_SERIES), legend=None)
    interval = _rows().mark_rule(strokeWidth=4, opacity=0.4).encode(alt.X("lo:Q", title=title), y, quiet, x2="hi:Q")
    point = _rows().mark_point(filled=True, size=110, opacity=1).encode(x, y, color, shape, tooltip=told)
    return alt.layer(one, interval, point).properties(height=alt.Step(26))


def _roofline() -> alt.LayerChart:
    work, rate = "useful flop per useful byte (log scale)", "useful TFLOP/s (log scale)"
    x = alt.X("x:Q", title=work,
              scale=alt.Scale(type="log", nice=False), axis=alt.Axis(format="~g", values=_ROUND, labelOverlap=True))
    y = alt.Y("y:Q", title=rate, scale=alt.Scale(type="log", nice=False, padding=14),
              axis=alt.Axis(format="~g", values=_ROUND, labelOverlap=True))
    roof = _only("roof").mark_line(strokeWidth=2, clip=True).encode(
        x, y, alt.StrokeDash("name:N", sort=None, legend=alt.Legend(columns=2, symbolStrokeColor=_MUTED)), color=alt.value(_MUTED),
        tooltip=[alt.Tooltip("name:N", title="roof"), alt.Tooltip("y:Q", title="TFLOP/s", format=".3~g")],
    )
    told = [alt.Tooltip(f"{field}:N", title=title) for field, title in (("name", "name"), ("problem", "problem"), ("text", "speedup"))]
    told += [alt.Tooltip("y:Q", title="TFLOP/s", format=".4~g"), alt.Tooltip("percent:Q", title="% of speed of light", format=".1f")]
    point = _only("point").mark_point(filled=True, size=95, opacity=1).encode(
        x, y, alt.Color("problem:N", sort=None, scale=alt.Scale(range=_SERIES), legend=alt.Legend(columns=1)),
        alt.Shape("role:N", scale=alt.Scale(domain=["candidate", "baseline"], range=["circle", "diamond"]), legend=None), tooltip=told,
    )
    layers = [roof]
    wide = alt.ExprRef("width > 520 ? 1 : 0")  # on a phone the names would lie on each other; a touch tells them
    layers.append(_only("label").mark_rule(color=_LINE, opacity=wide).encode(x, y, x2="x2:Q", y2="y2:Q"))
    side = {"align": alt.ExprRef(_by_side("left", "right", "center")), "dx": alt.ExprRef(_by_side(4, -4, 0))}
    text = _only("label").mark_text(**side, baseline="middle", opacity=wide, fontSize=11)
    layers.append(text.encode(alt.X("x2:Q", title=work), alt.Y("y2:Q", title=rate), text="name:N"))
    return alt.layer(*layers, point).resolve_scale(strokeDash="independent", color="independent").properties(height=420)


def _arm_color() -> alt.Color:
    return alt.Color("arm:N", scale=_colors(_ARMS), legend=alt.Legend(columns=2))


def _time_axis(title: str | None, labels: bool = True) -> alt.X:
    return alt.X("at:Q", title=title, scale=alt.Scale(nice=False, zero=False), axis=alt.Axis(grid=False, labels=labels, ticks=labels))


def _drift() -> alt.Chart:
    told = [alt.Tooltip("arm:N", title="whose"), alt.Tooltip("us:Q", title="µs", format=",.5~g"), alt.Tooltip("off:Q", title="% from median", format="+.2f")]
    return _rows().mark_circle(size=22, opacity=0.6).encode(
        _time_axis(None, labels=False), alt.Y("off:Q", title="% from median", scale=alt.Scale(zero=False), axis=alt.Axis(tickCount=5, **_STACKED)),
        _arm_color(), tooltip=told,
    ).properties(height=170)


def _reading(field: str, unit: str, color: str, axis: str, last: bool) -> alt.Chart:
    titles = {"seconds": "seconds since the first round", "rounds": "round"}
    told = [alt.Tooltip(f"{name}:Q", title=title, format=",.4~g") for name, title in (("sm_mhz", "SM clock, MHz"), ("watts", "W"), ("celsius", "°C"))]
    told.append(alt.Tooltip("throttle:N", title="throttle"))
    return _rows().mark_line(interpolate="step-before", point=alt.OverlayMarkDef(size=12, color=color), strokeWidth=1.5, color=color).encode(
        _time_axis(titles[axis] if last else None, labels=last),
        alt.Y(f"{field}:Q", title=unit, scale=alt.Scale(zero=False, nice=True, padding=4), axis=alt.Axis(tickCount=3, format=",d", **_STACKED)),
        tooltip=told,
    ).properties(height=64)


def _against_clock() -> alt.Chart:
    told = [alt.Tooltip("sm_mhz:Q", title="SM clock, MHz"), alt.Tooltip("us:Q", title="µs", format=",.5~g")]
    return _rows().mark_circle(size=34, opacity=0.6, color=_SERIES[0]).encode(
        alt.X("sm_mhz:Q", title="SM clock (MHz)", scale=alt.Scale(zero=False, padding=12), axis=alt.Axis(format=",d", tickCount=5)),
        alt.Y("off:Q", title="% from median", scale=alt.Scale(zero=False)), tooltip=told,
    ).properties(height=170)


def _distribution() -> alt.Chart:
    told = [alt.Tooltip("arm:N", title="whose"), alt.Tooltip("lo:Q", title="from, %", format="+.2f"),
            alt.Tooltip("hi:Q", title="to, %", format="+.2f"), alt.Tooltip("launches:Q", title="launches")]
    return _rows().mark_bar(opacity=0.6, binSpacing=0.5).encode(
        alt.X("lo:Q", bin="binned", title="% from the median of all launches",
              axis=alt.Axis(tickCount=6, format="+~r", labelOverlap=True, grid=False)), alt.X2("hi:Q"),
        alt.Y("share:Q", title="% of launches", stack=None, axis=alt.Axis(tickCount=4, **_STACKED)), _arm_color(), tooltip=told,
    ).properties(height=170)


def _rounds() -> alt.LayerChart:
    x = alt.X("round:Q", title="round", scale=alt.Scale(nice=False, zero=False, padding=8), axis=alt.Axis(format="d", tickMinStep=1, grid=False))
    y = alt.Y("x:Q", title="speedup", scale=alt.Scale(zero=False), axis=alt.Axis(tickCount=5, **_STACKED))
    band = _only("interval").mark_rect(opacity=0.25, color=_SERIES[0]).encode(alt.Y("lo:Q", title="speedup"), y2="hi:Q")
    middle = _only("interval").mark_rule(color=_SERIES[0], strokeWidth=1.5).encode(y)
    told = [alt.Tooltip("round:Q"), alt.Tooltip("x:Q", title="speedup", format=".5~g")]
    each = _only("round").mark_circle(size=30, opacity=0.8, color=_SERIES[0]).encode(x, y, tooltip=told)
    return alt.layer(band, middle, each).properties(height=170)


def _errors() -> alt.LayerChart:
    x = alt.X("u:Q", title="largest error (u, log scale from 1)", scale=alt.Scale(type="symlog", constant=1, nice=False, padding=10),
              axis=alt.Axis(values=[0, 1, 3, 10, 30, 100, 300, 1000, 10000, 100000], format="~s", labelOverlap=True))
    y = alt.Y("family:N", title=None, sort=None, axis=alt.Axis(labelColor=_INK, domain=False, ticks=False, grid=True))
    looks = {"candidate": (_ARMS["candidate"], "circle"), "eager": (_ARMS["eager"], "diamond"), "allowed": ("var(--slower)", "stroke")}
    color = alt.Color("what:N", scale=_colors({name: look[0] for name, look in looks.items()}), legend=alt.Legend(columns=3))
    told = [alt.Tooltip("what:N", title="whose"), alt.Tooltip("family:N", title="inputs"), alt.Tooltip("sizes:N", title="sizes"), alt.Tooltip("u:Q", title="u", format=",.4~g")]
    some = _rows().transform_filter(alt.FieldOneOfPredicate(field="what", oneOf=["candidate", "eager"]))
    shape = alt.Shape("what:N", scale=alt.Scale(domain=list(looks)[:2], range=["circle", "diamond"]), legend=None)
    points = some.mark_point(filled=True, size=80, opacity=0.85).encode(x, y, color, shape, tooltip=told)
    allowed = _rows().transform_filter(alt.FieldEqualPredicate(field="what", equal="allowed"))
    ticks = allowed.mark_tick(thickness=3, size=18).encode(x, y, color, tooltip=told)
    return alt.layer(ticks, points).properties(height=alt.Step(24))


def _history() -> alt.LayerChart:
    x = alt.X("utc:T", title=None, scale=alt.Scale(type="utc", padding=20), axis=alt.Axis(tickCount=4, format="%b %d, %H:%M", labelOverlap=True, grid=False))
    y = alt.Y("x:Q", title="speedup", scale=alt.Scale(zero=False, padding=8), axis=alt.Axis(tickCount=5, **_STACKED))
    told = [alt.Tooltip("run:N", title="run"), alt.Tooltip("text:N", title="speedup"), alt.Tooltip("version:N", title="version")]
    line = _rows().mark_line(color=_LINE, strokeWidth=1.5).encode(x, y)
    interval = _rows().mark_rule(strokeWidth=3, opacity=0.5).encode(x, alt.Y("lo:Q", title="speedup"), y2="hi:Q")
    color = alt.Color("version:N", sort=None, scale=alt.Scale(range=_SERIES), legend=alt.Legend(columns=3))
    quiet = alt.Stroke("version:N", sort=None, scale=alt.Scale(range=_SERIES), legend=None)
    point = _rows().mark_point(filled=True, size=80, opacity=1).encode(x, y, color, tooltip=told)
    return alt.layer(line, interval.encode(quiet), point).properties(height=170)
