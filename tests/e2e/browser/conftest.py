"""A headless Chromium spoken to over a pipe, by the DevTools protocol: enough to open a page and ask what became of it.

The protocol's messages are JSON texts with a zero byte between them, read by the browser from descriptor 3 and written
to descriptor 4 (`--remote-debugging-pipe`); so neither a port nor a driver of the same version is needed.
"""

from __future__ import annotations

import base64
import itertools
import json
import os
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
_QUIET = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    skipped = pytest.mark.skip(reason="needs Chromium (apt-get install chromium); there is none here")
    for item in items:
        if CHROMIUM is None and item.get_closest_marker("browser"):
            item.add_marker(skipped)


@pytest.fixture(scope="module")
def browser(tmp_path_factory) -> Iterator[Browser]:
    found = Browser(tmp_path_factory.mktemp("profile"))
    yield found
    found.close()


class Browser:
    """One browser with one page. `events` collects what the page did unasked: exceptions, console lines, requests."""

    def __init__(self, profile: Path) -> None:
        down_read, self._down = os.pipe()
        self._up, up_write = os.pipe()

        def onto_3_and_4() -> None:
            spare_down, spare_up = os.dup(down_read), os.dup(up_write)
            os.dup2(spare_down, 3)
            os.dup2(spare_up, 4)

        self._process = subprocess.Popen(
            [CHROMIUM, *_QUIET, "--remote-debugging-pipe", f"--user-data-dir={profile}"],
            preexec_fn=onto_3_and_4,
            close_fds=False,
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(down_read)
        os.close(up_write)
        self._numbers = itertools.count(1)
        self._buffer = b""
        self._session: str | None = None
        self._size: tuple[int, int] | None = None
        self._shown: Path | None = None
        self.events: list[dict[str, Any]] = []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """The answer to one command. Raises AssertionError when the browser refuses or does not answer."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._down, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            heard = self._message(deadline)
            if heard is None:
                break
            if heard.get("id") == number:
                assert "error" not in heard, f"{method}: {heard['error']}"
                return heard["result"]
            if "method" in heard:
                self.events.append(heard)
        raise AssertionError(f"the browser did not answer {method}")

    def _message(self, deadline: float) -> dict[str, Any] | None:
        while b"\0" not in self._buffer:
            if not select.select([self._up], [], [], max(0.0, deadline - time.monotonic()))[0]:
                return None
            piece = os.read(self._up, 1 << 20)
            assert piece, "the browser ended"
            self._buffer += piece
        text, self._buffer = self._buffer.split(b"\0", 1)
        return json.loads(text)

    def look(self, width: int, height: int, *, dark: bool = False) -> None:
        """Take a window of that many CSS pixels, on a system that is light or dark."""
        if self._size != (width, height):
            self._size, self._shown = (width, height), None
        mobile = width < 600
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=mobile)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", features=[scheme])

    def is_showing(self, path: Path, width: int, height: int) -> bool:
        """Whether that page was opened in a window of that size, and has been in it since."""
        return (self._shown, self._size) == (path, (width, height))

    def open(self, path: Path, fragment: str = "") -> None:
        """Load the file and wait until its script has drawn every chart."""
        self.events.clear()
        self._shown = path
        self.ask("Page.navigate", url=path.resolve().as_uri() + fragment)
        self.wait_for("document.readyState === 'complete' && document.documentElement.dataset.charts !== undefined")

    def wait_for(self, condition: str, timeout_s: float = 120) -> None:
        deadline = time.monotonic() + timeout_s
        while not self.value(condition):
            assert time.monotonic() < deadline, f"never came true: {condition}"
            time.sleep(0.1)

    def value(self, expression: str) -> Any:
        """What the page's script says of `expression`."""
        answer = self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def picture(self, *, whole: bool = False, kind: str = "png") -> bytes:
        """The page as "png" or "webp", which is half as large: what the window shows, or all of it."""
        options: dict[str, Any] = {"format": kind, "captureBeyondViewport": whole}
        if kind == "webp":
            options["quality"] = 85
        if whole:
            size = self.ask("Page.getLayoutMetrics")["cssContentSize"]
            options["clip"] = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        return base64.b64decode(self.ask("Page.captureScreenshot", **options)["data"])

    def paper(self) -> bytes:
        """The page as PDF on A4."""
        return base64.b64decode(
            self.ask("Page.printToPDF", printBackground=True, paperWidth=8.27, paperHeight=11.69)["data"]
        )

    def complaints(self) -> list[str]:
        """Every exception, console line and log entry since the page was opened."""
        kinds = ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded")
        return [json.dumps(each["params"])[:500] for each in self.events if each["method"] in kinds]

    def requests(self) -> list[str]:
        """The addresses that the page asked for, itself included."""
        return [
            each["params"]["request"]["url"] for each in self.events if each["method"] == "Network.requestWillBeSent"
        ]

    def close(self) -> None:
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        os.close(self._down)
        os.close(self._up)
