"""The report in a real browser: every chart drawn, nothing in the console, nothing fetched, no sideways scrolling."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from harness.cli import main

REPOSITORY = Path(__file__).resolve().parents[3]
DESK, WIDE, PHONE = (1400, 900), (1900, 1000), (390, 844)
# In this order: each size is opened once, the one by day and the other by night, and stays open when the system turns.
LOOKS = {
    (DESK, False): "desk-light", (DESK, True): "desk-dark", (WIDE, False): "wide-light", (PHONE, True): "phone-dark",
    (PHONE, False): "phone-light",
}
TAKEN = '</script><script>document.title="taken"</script><img src=x onerror=\'document.title="taken"\'>'

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture(scope="module")
def report(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    assert main(["report", str(REPOSITORY / "results"), "--out", str(path)]) == 0
    return path


@pytest.fixture(scope="module")
def page(request, browser, report):
    """The browser with the report in a window of (size, dark), drawn once for all tests that look at it in that size.

    The colours are the style sheet's: turning from light to dark draws nothing anew.
    """
    size, dark = request.param
    is_open = browser.is_showing(report, *size)
    browser.look(*size, dark=dark)
    if not is_open:
        browser.open(report)
    return browser


@pytest.fixture
def folded(page):
    """`page` with every entry closed, as it was before another test looked at it."""
    page.value("document.querySelectorAll('details').forEach((each) => { each.open = false; })")
    return page


def seen(*looks):
    return pytest.mark.parametrize("page", looks, indirect=True, ids=lambda look: LOOKS[look])


@pytest.fixture(scope="module")
def hostile(tmp_path_factory) -> Path:
    """The results of this repository, with a name, a reason and a kernel that try to leave the page."""
    folder = tmp_path_factory.mktemp("hostile")
    device = Path(shutil.copytree(REPOSITORY / "results" / "tril_matmul" / "nvidia-h200", folder / "results"))
    quoted = '"' + TAKEN.replace('"', '""') + '"'
    for path in device.glob("*.csv"):
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace("triton_ieee", quoted).replace("NVIDIA H200", quoted), encoding="utf-8")
    for path in device.glob("*.jsonl"):
        inside = json.dumps(TAKEN)[1:-1]
        text = path.read_text(encoding="utf-8").replace('"triton_ieee"', f'"{inside}"')
        path.write_text(
            text.replace("tiled_shared_kernel", inside).replace('"spread"', f'"{inside}"'), encoding="utf-8"
        )
    assert main(["report", str(device), "--out", str(folder / "report.html")]) == 0
    return folder / "report.html"


@seen(*LOOKS)
def test_every_chart_is_drawn_and_fits_its_window(folded, request):
    browser, (size, _) = folded, request.node.callspec.params["page"]
    figures = browser.value("document.querySelectorAll('figure[data-chart]').length")
    assert figures > 50
    assert browser.value("document.documentElement.dataset.charts") == str(figures)
    assert browser.value("document.documentElement.dataset.faults") is None
    assert browser.complaints() == []
    browser.value("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    assert browser.value("document.documentElement.scrollWidth") <= size[0]
    empty = "svg => !svg.querySelector('.mark-symbol path, .mark-rect path')"
    assert browser.value(f"[...document.querySelectorAll('figure[data-chart] svg')].filter({empty}).length") == 0


@seen(*LOOKS)
def test_no_rank_is_broken_into_two_lines(folded):
    lines = folded.value("""[...document.querySelectorAll('.rank')].filter((each) => each.textContent.trim()).map((each) => {
        const text = document.createRange();
        text.selectNodeContents(each);
        return [each.textContent, new Set([...text.getClientRects()].map((line) => Math.round(line.top))).size];
    })""")
    assert max(len(rank) for rank, _ in lines) == 2 and {count for _, count in lines} == {1}


@seen((PHONE, False))
def test_no_label_of_a_chart_stands_outside_its_picture_on_a_phone(folded):
    browser = folded
    browser.value("document.querySelectorAll('details.entry').forEach((each) => { each.open = true; })")
    outside = browser.value("""[...document.querySelectorAll('figure[data-chart] svg')].flatMap((svg) => {
        const frame = svg.getBoundingClientRect();
        return [...svg.querySelectorAll('text')]
            .filter((text) => text.textContent && getComputedStyle(text).opacity !== '0')
            .map((text) => [text.textContent, text.getBoundingClientRect()])
            .filter(([, box]) => box.width && (box.left < frame.left - 2 || box.right > frame.right + 2))
            .map(([text]) => text);
    })""")
    assert outside == []


@seen((DESK, False))
def test_the_page_asks_for_nothing_but_itself(folded, report):
    browser = folded
    assert [each for each in browser.requests() if not each.startswith(("about:", "data:"))] == [
        report.resolve().as_uri()
    ]


@seen((DESK, True))
def test_dark_and_light_are_the_systems_until_the_switch_is_used(folded):
    browser, paper = folded, "getComputedStyle(document.body).backgroundColor"
    dark = browser.value(paper)
    ink = browser.value("getComputedStyle(document.querySelector('figure svg text')).fill")
    for wanted in ("light", "dark", "auto"):
        browser.value("document.getElementById('theme').click()")
        assert (browser.value(paper) == dark) == (wanted != "light"), wanted
        assert (browser.value("getComputedStyle(document.querySelector('figure svg text')).fill") == ink) == (
            wanted != "light"
        )


@seen((DESK, False))
def test_a_link_in_the_leaderboard_opens_its_candidate(folded):
    browser = folded
    browser.value("document.querySelector('table.board a').click()")
    browser.wait_for("document.querySelectorAll('details.entry[open]').length === 1", timeout_s=5)
    browser.value("document.getElementById('unfold').click()")
    assert browser.value("document.querySelectorAll('details.entry:not([open])').length") == 0


@seen((DESK, False))
def test_it_prints_on_a_few_pages(folded):
    browser = folded
    entries = browser.value("document.querySelectorAll('details.entry').length")
    paper = browser.paper()
    assert paper.startswith(b"%PDF") and 3 <= paper.count(b"/Type /Page\n") <= 4 + entries / 6


def test_nothing_that_a_candidate_wrote_is_run(browser, hostile):
    browser.look(*DESK)
    browser.open(hostile)
    assert browser.value("document.title").startswith("kernel-referee")
    assert browser.value("document.querySelectorAll('img').length") == 0
    assert browser.value("document.scripts.length") == 4
    assert browser.complaints() == []
    drawn = browser.value("[...document.querySelectorAll('figure svg text')].map((text) => text.textContent).join(' ')")
    assert "</script>" in drawn  # it is on the page, as text


def test_a_narrower_window_draws_the_charts_anew(browser, hostile):
    browser.look(*DESK)
    if not browser.is_showing(hostile, *DESK):
        browser.open(hostile)
    wide = browser.value("document.querySelector('figure svg').getBoundingClientRect().width")
    figures = browser.value("document.documentElement.dataset.charts")
    assert int(figures) > 20
    browser.look(700, 900)
    browser.wait_for(f"document.querySelector('figure svg').getAttribute('width') < {0.7 * wide}", timeout_s=30)
    browser.wait_for(f"document.documentElement.dataset.charts === '{figures}'")
    assert browser.complaints() == []
