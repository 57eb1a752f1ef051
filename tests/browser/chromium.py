"""Headless Chromium through the DevTools protocol, over a pipe: https://chromedevtools.github.io/devtools-protocol/."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import shutil
import signal
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome")
READS, WRITES = 3, 4  # the file descriptors from which Chromium reads commands, and to which it writes
ABOVE = 10  # the parent's ends lie above those two
SECONDS = 30.0
CHUNK = 1 << 16


def find_chromium() -> str:
    """Return the path of a Chromium; skip the test where there is none, but fail it in CI."""
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path:
        return path
    missing = "Chromium is not installed: apt-get install chromium"
    if os.environ.get("CI", "") not in {"", "false"}:
        pytest.fail(f"{missing} (CI skips nothing)", pytrace=False)
    pytest.skip(missing)


class DevTools:
    """The protocol: commands with their results, and the events in between."""

    def __init__(self, reading: int, writing: int) -> None:
        self._reading, self._writing = reading, writing
        self._buffer = b""
        self._number = 0
        self.events: list[dict[str, Any]] = []

    def do(self, method: str, session: str = "", **params: object) -> dict[str, Any]:
        """Send a command, and return its result."""
        self._number += 1
        command = {"id": self._number, "method": method, "params": params}
        command |= {"sessionId": session} if session else {}
        os.write(self._writing, json.dumps(command).encode() + b"\0")
        while True:
            message = self._read()
            if message.get("id") == self._number:
                assert "error" not in message, message
                result: dict[str, Any] = message["result"]
                return result
            self.events.append(message)

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            came = os.read(self._reading, CHUNK)
            assert came, "Chromium has ended"
            self._buffer += came
        line, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        return message


class Tab:
    """One tab.

    Attributes:
        browser: DevTools' name of the tab's browser, which has no cookie yet if the tab is beside no other.
    """

    def __init__(self, tools: DevTools, beside: Tab | None = None) -> None:
        self._tools = tools
        self.browser: str = beside.browser if beside else tools.do("Target.createBrowserContext")["browserContextId"]
        target = tools.do("Target.createTarget", url="about:blank", browserContextId=self.browser)["targetId"]
        self._session = tools.do("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Log", "Runtime", "Network", "Accessibility"):
            self.do(f"{domain}.enable")

    def do(self, method: str, **params: object) -> dict[str, Any]:
        return self._tools.do(method, self._session, **params)

    @property
    def url(self) -> str:
        return str(self.evaluate("location.href"))

    @property
    def text(self) -> str:
        return str(self.evaluate("document.body.innerText"))

    @property
    def complaints(self) -> list[str]:
        """The warnings in the browser's console, for example of a blocked style, except those about a missing icon."""
        own = [event["params"] for event in self._tools.events if event.get("sessionId") == self._session]
        entries = [params["entry"] for params in own if "entry" in params]
        return [entry["text"] for entry in entries if not entry.get("url", "").endswith("/favicon.ico")]

    def evaluate(self, expression: str) -> object:
        result: dict[str, Any] = self.do("Runtime.evaluate", expression=expression, returnByValue=True)["result"]
        return result.get("value")

    def open(self, url: str, shows: str) -> None:
        """Go to a URL, and wait for a text on the page."""
        self.do("Page.navigate", url=url)
        self.wait(f"document.body && document.body.innerText.includes({json.dumps(shows)})")

    def begin(self, url: str) -> None:
        """Go to a URL, and do not wait for the answer."""
        self.evaluate(f"setTimeout(() => {{ location.href = {json.dumps(url)} }})")

    def wait(self, expression: str) -> None:
        """Wait until an expression is true; a page that is just leaving has no answer."""
        until = time.monotonic() + SECONDS
        while not self.evaluate(f"document.readyState == 'complete' && !!({expression})"):
            assert time.monotonic() < until, f"{expression}: {self.url}: {self.text[:2000]}"
            time.sleep(0.02)

    def cookies(self) -> list[dict[str, Any]]:
        """Return the cookies of the browser."""
        found: list[dict[str, Any]] = self._tools.do("Storage.getCookies", browserContextId=self.browser)["cookies"]
        return found

    def click(self, selector: str) -> None:
        """Click on an element with the mouse."""
        box = self._box(selector)
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        for kind in ("mousePressed", "mouseReleased"):
            self.do("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def _box(self, selector: str) -> dict[str, float]:
        """Return x, y, width and height of an element."""
        element = f"document.querySelector({json.dumps(selector)})"
        box: Any = self.evaluate(
            f"(({{x, y, width, height}}) => ({{x, y, width, height}}))({element}.getBoundingClientRect())"
        )
        return dict(box)

    def press(self, key: str, code: int, text: str = "") -> None:
        """Press a key."""
        for kind in ("keyDown", "keyUp"):
            self.do("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, text=text)

    def type(self, text: str) -> None:
        """Type into the element that has the focus."""
        self.do("Input.insertText", text=text)

    def accessible(self) -> list[tuple[str, str]]:
        """Return role and name of everything that a screen reader reads."""
        nodes = self.do("Accessibility.getFullAXTree")["nodes"]
        read = [node for node in nodes if not node["ignored"]]
        return [(node["role"]["value"], node.get("name", {}).get("value", "")) for node in read]

    def picture(self, selector: str) -> str:
        """Return a picture of an element, as base64."""
        clip = {**self._box(selector), "scale": 1}
        return str(self.do("Page.captureScreenshot", clip=clip)["data"])

    def screenshot(self, file: Path) -> None:
        file.write_bytes(base64.b64decode(self.do("Page.captureScreenshot", captureBeyondViewport=True)["data"]))


@contextmanager
def running(profile: Path, *options: str) -> Iterator[DevTools]:
    """Run a Chromium with a new profile."""
    theirs_in, ours_out = _pipe()
    ours_in, theirs_out = _pipe()
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
    flags += ["--remote-debugging-pipe", f"--user-data-dir={profile}", *options]
    path = find_chromium()
    ends = [(os.POSIX_SPAWN_DUP2, theirs_in, READS), (os.POSIX_SPAWN_DUP2, theirs_out, WRITES)]
    silent = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_WRONLY, 0) for number in (1, 2)]
    pid = os.posix_spawn(path, [path, *flags], os.environ, file_actions=[*ends, *silent], setpgroup=0)
    for end in (theirs_in, theirs_out):
        os.close(end)
    try:
        yield DevTools(ours_in, ours_out)
    finally:
        os.killpg(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        for end in (ours_in, ours_out):
            os.close(end)


def _pipe() -> tuple[int, int]:
    """Make a pipe whose descriptors lie above those of Chromium."""
    low = os.pipe()
    high = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, ABOVE) for end in low]
    for end in low:
        os.close(end)
    return high[0], high[1]
