"""Every specification is one that Altair's schema takes, in the page's own colours, and small."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from harness.report.html.charts import specifications

MADE = specifications()  # `to_dict` checks each against Vega-Lite's schema
STYLE = Path(__file__).resolve().parents[3] / "harness" / "report" / "html" / "page.css"


@pytest.mark.parametrize("name", MADE)
def test_a_chart_takes_its_rows_from_the_page_and_has_a_height_of_its_own(name):
    text = json.dumps(MADE[name])
    assert '"name": "rows"' in text and "width" not in MADE[name]
    assert MADE[name]["height"]
    assert len(text) < 8000


def test_every_colour_is_one_that_the_page_defines_for_light_and_dark():
    style = STYLE.read_text(encoding="utf-8")
    used = set(re.findall(r"var\((--[\w-]+)\)", json.dumps(MADE)))
    assert len(used) > 8
    for name in used:
        assert len(re.findall(rf"{name}:", style)) == 3, name


def test_no_chart_asks_the_network_for_anything():
    text = json.dumps(MADE)
    assert "http" not in text and '"url"' not in text
