"""The page as text: complete, closed against what candidates wrote, and never above its limit."""

from __future__ import annotations

import base64
import hashlib
import html.parser
import json

import pytest

from harness.report.html import page
from harness.report.html.run_files import Source, gather

UTC = "2026-05-09T10:00:00+00:00"


class Reading(html.parser.HTMLParser):
    """Tags, attributes and the texts of scripts, as a browser would find them."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.scripts: list[tuple[dict, str]] = []
        self.shown: list[str] = []
        self._script: dict | None = None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        self._script = dict(attrs) if tag == "script" else None

    def handle_endtag(self, tag):
        self._script = None

    def handle_data(self, data):
        if self._script is not None:
            self.scripts.append((self._script, data))
        else:
            self.shown.append(data)


def rendered(results, sources=None):
    return page.render(gather([results]), sources or {}, UTC)


def test_a_card_s_speedup_has_its_word_and_a_board_the_line_on_times_that_contradict_speedups(tmp_path, h200, recorded):
    eager = h200(candidate="eager", role="baseline", kind=None, time_us=2700.0, speedup=1.0, speedup_lo=0.9, speedup_hi=1.1)
    disturbed = h200(candidate="tiled", rank=1, time_us=2000.0, baseline_us=1900.0, speedup=0.95, speedup_lo=0.5, speedup_hi=1.2,
                     call="UNSURE")
    recorded.write_run(tmp_path, "run", [(eager, None), (disturbed, None)])
    text = " ".join(" ".join(Reading(rendered(tmp_path).html).shown).split())
    assert "0.950× tiled over eager UNSURE" in text
    assert "tiled: 1.350× eager by the times: eager took 1.90 ms beside it and 2.70 ms in its own row; go by the speedup" in text


def test_the_page_has_every_table_and_chart_that_was_asked_for(results):
    made = rendered(results, {"1" * 16: Source("candidates/tril_matmul/tiled.py", "class ModelNew: pass")})
    read = Reading(made.html)
    text = " ".join(" ".join(read.shown).split())
    for wanted in (
        "Devices side by side",
        "Roofline",
        "Every launch in order",
        "Distribution of the launches",
        "Time against SM clock",
        "Error beside eager's, by family of inputs",
        "History",
        "Compiler report",
        "candidates/tril_matmul/tiled.py",
        "wrong at (3, 5)",
        "In older runs only",
        "left_behind",
    ):
        assert wanted in text, wanted
    charts = {each["name"] for each in json.loads(_json(read, "rows"))}
    assert charts == {
        "speedup",
        "beside",
        "roofline",
        "drift",
        "clock",
        "watts",
        "against_clock",
        "distribution",
        "rounds",
        "errors",
        "history",
    }
    assert made.notes == () and (made.problems, made.entries) == (1, 4)


def test_what_older_files_lack_is_said_to_be_not_recorded(results):
    text = " ".join(Reading(rendered(results).html).shown)
    assert "not recorded" in text
    assert "no candidate file has the hash" in text


def _json(read: Reading, name: str) -> str:
    return next(text for attributes, text in read.scripts if attributes.get("id") == name)


def test_hostile_texts_stay_texts(hostile_results):
    made = rendered(hostile_results)
    read = Reading(made.html)
    assert len(read.scripts) == 4 and "img" not in read.tags and "b" in read.tags
    assert not [name for name, _ in read.attributes if name.startswith("on")]
    assert "svg" not in read.tags
    assert "{{ 7*7 }}" in " ".join(read.shown)
    rows = _json(read, "rows")
    assert "<" not in rows and "document.title" in rows  # it travelled, and as text


def test_a_hostile_source_stays_in_its_frame(results):
    text = 'x = """</code></pre></script><script>document.title="taken"</script>"""\n'
    read = Reading(rendered(results, {"1" * 16: Source("</code><script>1</script>.py", text)}).html)
    assert len(read.scripts) == 4
    assert 'document.title="taken"' in "".join(read.shown)


def test_only_the_pages_own_scripts_may_run_and_nothing_may_be_fetched(results):
    read = Reading(rendered(results).html)
    policy = next(value for name, value in read.attributes if name == "content" and "-src" in value)
    assert "default-src 'none'" in policy and "unsafe-eval" not in policy and "http" not in policy
    running = [text for attributes, text in read.scripts if attributes.get("type") is None]
    assert len(running) == 2
    for text in running:
        assert base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() in policy


def test_the_page_names_no_address_to_load_from(results):
    read = Reading(rendered(results).html)
    loaded = [
        value
        for name, value in read.attributes
        if name in ("src", "data") or (name == "href" and not value.startswith("#"))
    ]
    assert loaded == []


def test_a_page_with_everything_is_well_below_the_limit(results):
    assert len(rendered(results).html.encode()) < 1_500_000


@pytest.mark.slow
def test_what_would_be_too_large_is_left_out_and_said(tmp_path, h200, recorded):
    many = recorded.samples(players=[recorded.worker(rounds=100, launches=10)])
    rows = [(h200(candidate=f"kernel_{number:03}"), many) for number in range(60)]
    recorded.write_run(tmp_path, "run", rows)
    made = rendered(tmp_path)
    assert len(made.html.encode()) < page.LIMIT_BYTES
    (note,) = made.notes
    assert "to stay below 3 MB" in note and note in " ".join(Reading(made.html).shown)
    assert "kernel_059" in made.html


@pytest.mark.slow
def test_a_table_of_more_rows_than_have_room_for_a_section_still_fits(tmp_path, h200, recorded):
    rows = [(h200(candidate=f"kernel_{number:04}", source_hash=f"{number:016}"), None) for number in range(1100)]
    recorded.write_run(tmp_path, "run", rows)
    assert len(rendered(tmp_path).html.encode()) < page.LIMIT_BYTES


@pytest.mark.parametrize("text", ["a</script>b", "a</SCRIPT >b", "a<!--<script>b", "a\r\nb"])
def test_a_script_can_neither_end_nor_open_another(text):
    made = page.inside_script(text).lower()
    assert "</script" not in made and "<script" not in made and "<!--" not in made and "\r" not in made
