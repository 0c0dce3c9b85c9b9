"""Takes the README's pictures of the HTML report, of the results in results/, in a headless Chromium.

`python docs/take_screenshots.py` writes docs/images/report-desk.webp and report-phone.webp: the top of the page at a
desk, and the charts of the first ranked kernel on a phone in the dark.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import tempfile
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY))

from harness.cli import main as harness  # noqa: E402

# The browser of the tests, which is spoken to without a driver.
_SPEC = importlib.util.spec_from_file_location(
    "browser", REPOSITORY / "tests" / "e2e" / "browser" / "conftest.py"
)
browsing = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(browsing)

DESK, PHONE = (1280, 1180), (390, 1030)
# The first entry of a ranked kernel is unfolded, and the window begins with its charts.
TO_THE_LAUNCHES = """(() => {
    const entry = [...document.querySelectorAll('details.entry')].find((each) => each.querySelector('.rank').textContent);
    entry.open = true;
    window.scrollTo(0, entry.querySelector('.grid').getBoundingClientRect().top + window.scrollY - 12);
})()"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", nargs="?", type=Path, default=REPOSITORY / "results", help="(default: results)")
    parser.add_argument("--out", type=Path, default=REPOSITORY / "docs" / "images", metavar="DIR",
                        help="folder of the pictures (default: docs/images)")
    options = parser.parse_args()
    if browsing.CHROMIUM is None:
        raise SystemExit("needs Chromium: apt-get install chromium")
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        if code := harness(["report", str(options.results), "--out", str(page)]):
            return code
        browser = browsing.Browser(Path(folder) / "profile")
        try:
            take(browser, page, options.out)
        finally:
            browser.close()
    return 0


def take(browser: browsing.Browser, page: Path, folder: Path) -> None:
    """Both pictures of the report `page`, into `folder`."""
    browser.look(*DESK)
    browser.open(page)
    write(folder / "report-desk.webp", browser.picture(kind="webp"))
    browser.look(*PHONE, dark=True)
    browser.open(page)
    browser.value(TO_THE_LAUNCHES)
    browser.wait_for("document.querySelectorAll('details.entry[open] figure[data-chart]:not(:has(svg))').length === 0")
    write(folder / "report-phone.webp", browser.picture(kind="webp"))


def write(path: Path, picture: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(picture)
    print(f"{path}: {len(picture) / 1000:.0f} kB")


if __name__ == "__main__":
    sys.exit(main())
