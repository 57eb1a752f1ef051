"""A basic host of MCP Apps in Chromium, around the official AppBridge; its server answers from one function."""

from __future__ import annotations

import json
import subprocess
import time
from contextlib import contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.browser.chromium import SECONDS, DevTools, Tab
from tests.conformance import node
from tests.support import wire
from tests.support.http_servers import listening

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcp_functions.http.gateway import LambdaFunction

PAGES = Path(__file__).with_name("host")
# What a host allows a view that declares no domain (ext-apps, "Host Behavior").
POLICY = (
    "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "media-src 'self' data:; object-src 'none'; connect-src 'none'; frame-src 'self'; base-uri 'self'"
)


@cache
def bridge() -> bytes:
    """Bundle the official AppBridge."""
    program = [str(node.needed()), str(PAGES / "bundle.mjs"), str(node.HERE)]
    return subprocess.run(program, capture_output=True, check=True).stdout  # noqa: S603 - our own words


@contextmanager
def serving(function: LambdaFunction) -> Iterator[str]:
    """Serve the host's pages, and MCP from a function; yield host and port."""
    script = bridge()

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name in the library
            """Write nothing."""

        def do_GET(self) -> None:
            name = self.path.strip("/")
            if name == "bridge.js":
                self._send(script, "text/javascript")
            elif name in ("host.html", "sandbox.html"):
                self._send((PAGES / name).read_bytes(), "text/html")
            else:
                self.send_error(404)

        def do_POST(self) -> None:
            sent = json.loads(self.rfile.read(int(self.headers["content-length"])))
            response = function(wire.event(sent), wire.Context(f"local_{function.handlers[0].name}"))
            self._send(json.dumps(wire.read(response, sent["method"])).encode(), "application/json")

        def _send(self, body: bytes, media_type: str) -> None:
            self.send_response(200)
            self.send_header("content-type", media_type)
            self.send_header("content-length", str(len(body)))
            if self.path == "/sandbox.html":
                self.send_header("content-security-policy", POLICY)
            self.end_headers()
            self.wfile.write(body)

    with listening(Handler) as place:
        yield place


class Host(Tab):
    """A tab with the host, in which a person uses the view that the host shows."""

    def __init__(self, tools: DevTools, place: str, title: str = "Questions") -> None:
        super().__init__(tools)
        self._title = title  # of the view's page
        self._events = tools.events
        self.open(f"http://{place}/host.html", "")
        self.wait("window.isReady")

    def run(self, tool: str, arguments: dict[str, Any] | None = None, **options: Any) -> None:  # noqa: ANN401 - JSON
        """Let the model call a tool; return when the view has its result."""
        self.evaluate(f"run({json.dumps(tool)}, {json.dumps(arguments or {})}, {json.dumps(options)})")
        self.wait("seen.isShown")

    def seen(self, what: str) -> Any:  # noqa: ANN401 - JSON
        """Return what the host has got: calls, contexts, messages, links or sizes."""
        return self.evaluate(f"seen.{what}")

    def inside(self, expression: str) -> Any:  # noqa: ANN401 - JSON
        """Evaluate an expression in the view, once it is there."""
        until = time.monotonic() + SECONDS
        while True:
            for context in self._contexts():
                if self._in(context, "document.title") == self._title:
                    return self._in(context, expression)
            assert time.monotonic() < until, "the host shows no view"
            time.sleep(0.02)

    def wait_inside(self, expression: str) -> None:
        """Wait until an expression is true in the view."""
        until = time.monotonic() + SECONDS
        while not self.inside(f"!!({expression})"):
            assert time.monotonic() < until, f"{expression}: {self.inside('document.body.innerText')}"
            time.sleep(0.02)

    def shows(self, text: str) -> None:
        """Wait until the view shows a text."""
        self.wait_inside(f"document.body.innerText.includes({json.dumps(text)})")

    def click_inside(self, found: str) -> None:
        """Click with the mouse on the element that an expression of the view finds."""
        place = "(({x, y, width, height}) => [x + width / 2, y + height / 2])"
        self.inside(f"{found}.scrollIntoView()")
        box = self.inside(f"{place}({found}.getBoundingClientRect())")
        corner: Any = self.evaluate("(({x, y}) => [x, y])(document.getElementById('view').getBoundingClientRect())")
        x, y = box[0] + corner[0], box[1] + corner[1]
        for kind in ("mousePressed", "mouseReleased"):
            self.do("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def press_button(self, text: str) -> None:
        """Click on the button of the view with this text."""
        button = f"[...document.querySelectorAll('button')].find((each) => each.textContent === {json.dumps(text)})"
        self.wait_inside(button)
        self.click_inside(button)

    def _contexts(self) -> list[int]:
        """Return the ids of the script contexts of this tab's frames, the newest first."""
        made = [each for each in self._events if each.get("sessionId") == self._session]
        ids = [each["params"]["context"]["id"] for each in made if each["method"] == "Runtime.executionContextCreated"]
        gone = {each["params"]["executionContextId"] for each in made if each["method"].endswith("ContextDestroyed")}
        return [number for number in reversed(ids) if number not in gone]

    def _in(self, context: int, expression: str) -> Any:  # noqa: ANN401 - JSON
        params = {"expression": expression, "contextId": context, "returnByValue": True}
        try:
            result = self.do("Runtime.evaluate", **params)["result"]
        except AssertionError:  # the frame has just gone
            return None
        return result.get("value")
