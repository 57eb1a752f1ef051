"""The routes of the page at `/`: its files are for every browser here, its control routes for the page alone."""

from __future__ import annotations

import json
import re
import socket
from importlib import resources
from typing import TYPE_CHECKING, Any

import pytest

from mcp_functions_harness import Harness
from mcp_functions_harness.command import run as main
from mcp_functions_harness.page.routes import CONTENT_SECURITY_POLICY
from tests.support import wire

from .conftest import GREET, write_functions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from http.client import HTTPConnection
    from pathlib import Path

MARKER = "what the user said"
FRONT = """
from pathlib import Path
from mcp_functions import serve_catalog
handler = serve_catalog(Path(__file__).parent / "catalog.json")
"""
BOOK = """
from mcp_functions import Elicit, Step, serve, tool

@tool
def book(city: str, *, elicit: Elicit, step: Step) -> str:
    \"\"\"Book.\"\"\"
    step("reserve", len, city)
    name = elicit("name", "Your name?", str)
    return elicit("agree", f"{name}, agreed?", str)

handler = serve(book)
"""
FUNCTIONS = {"mcp/app.py": FRONT, "greet/app.py": GREET, "book/app.py": BOOK}
FILES = sorted(file.name for file in resources.files("mcp_functions_harness.page").joinpath("static").iterdir())
CONTROLS = ["access", "executions", "open"]
CONTROL = {"content-type": "application/json"}


def made(root: Path) -> Path:
    directory = write_functions(root / "functions", FUNCTIONS)
    assert main(["catalog", "--functions", str(directory)]) == 0
    return directory


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("project"))


@pytest.fixture(scope="module")
def harness(directory: Path) -> Iterator[Harness]:
    with Harness(directory, state_dir=directory.parent / "state") as running:
        yield running


class Browser:
    """Sends what a browser would, and what it would not."""

    def __init__(self, harness: Harness, connect: Callable[[str], HTTPConnection]) -> None:
        self._connect, self._url = connect, harness.url
        self.origin = harness.url.removesuffix("/mcp")
        self.host = self.origin.removeprefix("http://")

    def send(self, method: str, path: str, body: object = None, **headers: str) -> tuple[int, Mapping[str, str], str]:
        connection = self._connect(self._url)
        text = None if body is None else json.dumps(body).encode()
        connection.request(method, path, text, {name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read().decode()

    def token(self) -> str:
        match = re.search(r'name="page-token" content="([\w-]{43})"', self.send("GET", "/")[2])
        assert match
        return match[1]

    def control(self, name: str, body: object = None, **changed: str | None) -> tuple[int, Any]:
        """Send a request for a control route as the page does, but for what is changed; None leaves a header out."""
        own = {"origin": self.origin, "x_page_token": self.token(), "content_type": "application/json"}
        headers = {name: value for name, value in {**own, **changed}.items() if value is not None}
        status, got, text = self.send("POST", f"/page/control/{name}", {} if body is None else body, **headers)
        assert "access-control-allow-origin" not in got
        assert got["content-security-policy"] == CONTENT_SECURITY_POLICY
        return status, json.loads(text)

    def call(self, name: str, arguments: dict[str, Any], **more: object) -> tuple[dict[str, Any], str]:
        """Call a tool; return its result and the request id of API Gateway."""
        message = wire.message("tools/call", {"name": name, "arguments": arguments, **more})
        headers = {**CONTROL, "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": name}
        _status, got, text = self.send("POST", "/mcp", message, origin=self.origin, **headers)
        return json.loads(text)["result"], got["apigw-requestid"]


@pytest.fixture
def browser(harness: Harness, connect: Callable[[str], HTTPConnection]) -> Browser:
    return Browser(harness, connect)


def test_the_page_loads_only_its_own_files(browser: Browser) -> None:
    status, headers, text = browser.send("GET", "/")
    assert (status, headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert set(re.findall(r'(?:src|href)="([^"]+)"', text)) == {"/page/page.css", "/page/page.js"}
    assert not re.search(r"<script(?![^>]* src=)|<style| style=| on\w+=", text)


@pytest.mark.parametrize("name", ["", *FILES])
def test_every_file_of_the_page_has_a_strict_content_security_policy(browser: Browser, name: str) -> None:
    status, headers, _text = browser.send("GET", f"/page/{name}" if name else "/")
    assert status == 200
    assert headers["content-security-policy"].startswith(
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; frame-ancestors 'none'; "
        "base-uri 'none'; form-action 'none'"
    )
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert headers["cache-control"] == "no-store"
    assert "access-control-allow-origin" not in headers


@pytest.mark.parametrize("name", [name for name in FILES if name.endswith(".js")])
def test_no_script_parses_text_as_markup(browser: Browser, name: str) -> None:
    text = browser.send("GET", f"/page/{name}")[2]
    forbidden = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|DOMParser|\.srcdoc"
    assert not re.search(forbidden, text)


@pytest.mark.parametrize(
    "path", ["/page/", "/page/no.js", "/page/../routes.py", "/page/%2e%2e/routes.py", "/page//etc"]
)
def test_no_other_file_is_served(browser: Browser, path: str) -> None:
    assert browser.send("GET", path)[0] == 404


@pytest.mark.parametrize("host", ["evil.example", "evil.example:{port}", "127.0.0.1", "localhost:1", "[::1]:{port}"])
@pytest.mark.parametrize("path", ["/", "/page/page.js"])
def test_a_name_that_resolves_to_this_machine_gets_no_page(browser: Browser, path: str, host: str) -> None:
    status, _headers, text = browser.send("GET", path, host=host.format(port=browser.host.partition(":")[2]))
    assert status == 403
    assert "page-token" not in text


@pytest.mark.parametrize(
    "lines",
    [
        ["Host: {host}", "Host: evil.example"],
        ["Host: evil.example", "Host: {host}"],
        ["Host: evil.example", "X-Forwarded-Host: {host}"],
        ["Host: evil@{host}"],
        ["Host: {host}, evil.example"],
        ["Host: {host}.evil.example"],
        ["Host: localhost.:{port}"],
        [],
    ],
)
@pytest.mark.parametrize("start", ["GET / HTTP/1.1", "GET /?x HTTP/1.1", "GET /page/index.html HTTP/1.1"])
def test_a_host_in_another_notation_gets_no_token(browser: Browser, start: str, lines: list[str]) -> None:
    port = browser.host.partition(":")[2]
    sent = [start, *(line.format(host=browser.host, port=port) for line in lines), "Connection: close", "", ""]
    with socket.create_connection(("127.0.0.1", int(port)), timeout=60) as raw:
        raw.sendall("\r\n".join(sent).encode())
        received = raw.makefile("rb").read()
    assert received.startswith((b"HTTP/1.1 403 ", b"HTTP/1.1 400 "))
    assert b"page-token" not in received


@pytest.mark.parametrize(
    "body", [b"[" * 100_000, b'{"a":' * 50_000 + b"1" + b"}" * 50_000, b"\xff\xfe", b'{"state": "\\ud800"}', b""]
)
def test_the_page_works_after_a_malformed_request_was_refused(browser: Browser, body: bytes) -> None:
    port = int(browser.host.partition(":")[2])
    lines = [
        "POST /page/control/open HTTP/1.1", f"Host: {browser.host}", f"Origin: {browser.origin}",
        f"X-Page-Token: {browser.token()}", "Content-Type: application/json", f"Content-Length: {len(body)}",
        "Connection: close", "", "",
    ]  # fmt: skip
    with socket.create_connection(("127.0.0.1", port), timeout=60) as raw:
        raw.sendall("\r\n".join(lines).encode() + body)
        assert b" 400 " in raw.recv(64)
    assert browser.control("access")[0] == 200


def test_the_page_is_served_under_localhost_and_127_0_0_1(browser: Browser) -> None:
    host = browser.host.replace("127.0.0.1", "localhost")
    assert browser.send("GET", "/", host=host)[0] == 200
    assert browser.control("executions", {"request": "x"}, host=host, origin=f"http://{host}") == (
        200,
        {"executions": []},
    )


@pytest.mark.parametrize("name", CONTROLS)
@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({"x_page_token": None}, 403),
        ({"x_page_token": "A" * 43}, 403),
        ({"x_page_token": "é"}, 403),
        ({"origin": None}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://localhost:6274"}, 403),
        ({"origin": "http://127.0.0.1"}, 403),
        ({"origin": "https://evil.example"}, 403),
        ({"host": "evil.example"}, 403),
        ({"host": "localhost:1"}, 403),
        ({"content_type": "text/plain"}, 415),
        ({"content_type": "application/x-www-form-urlencoded"}, 415),
        ({"content_type": None}, 415),
    ],
)
def test_a_control_route_accepts_requests_of_the_page_only(
    browser: Browser, name: str, changed: dict[str, str | None], status: int
) -> None:
    own = {"origin": browser.origin, "x_page_token": browser.token(), "content_type": "application/json"}
    headers = {key: value for key, value in {**own, **changed}.items() if value is not None}
    got = browser.send("POST", f"/page/control/{name}", {"state": "x", "request": "x"}, **headers)
    assert got[0] == status
    assert "access-control-allow-origin" not in got[1]


def test_a_control_route_requires_an_origin_with_the_name_of_the_host(browser: Browser) -> None:
    other = browser.origin.replace("127.0.0.1", "localhost")
    assert browser.control("access", origin=other)[0] == 403


def test_a_second_origin_is_refused(browser: Browser) -> None:
    token, port = browser.token(), int(browser.host.partition(":")[2])
    lines = [
        "POST /page/control/access HTTP/1.1", f"Host: {browser.host}", f"Origin: {browser.origin}",
        "Origin: https://evil.example", f"X-Page-Token: {token}", "Content-Type: application/json", "Content-Length: 2",
        "Connection: close", "", "{}",
    ]  # fmt: skip
    with socket.create_connection(("127.0.0.1", port), timeout=60) as raw:
        raw.sendall("\r\n".join(lines).encode())
        assert raw.recv(64).startswith(b"HTTP/1.1 403 ")


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "OPTIONS", "HEAD"])
def test_a_control_route_allows_only_post(browser: Browser, method: str) -> None:
    headers = {"origin": browser.origin, "x_page_token": browser.token(), "content_type": "application/json"}
    assert browser.send(method, "/page/control/access", **headers)[0] == 405


@pytest.mark.parametrize("path", ["/", "/page/page.js", "/page/control/open"])
def test_a_preflight_of_another_origin_gets_no_permission(browser: Browser, path: str) -> None:
    asked = {"access_control_request_method": "POST", "access_control_request_headers": "x-page-token"}
    status, headers, _text = browser.send("OPTIONS", path, origin="http://localhost:6274", **asked)
    assert status in {403, 404, 405}
    assert not [name for name in headers if name.startswith("access-control-")]


@pytest.mark.parametrize(
    ("origin", "status"),
    [("http://localhost:6274", 204), ("http://127.0.0.1:6274", 204), ("https://evil.example", 403), ("null", 403)],
)
def test_the_page_of_the_inspector_may_call_mcp_and_other_pages_may_not(
    browser: Browser, origin: str, status: int
) -> None:
    asked = {"access_control_request_method": "POST", "access_control_request_headers": "mcp-method"}
    got, headers, _text = browser.send("OPTIONS", "/mcp", origin=origin, **asked)
    assert got == status
    assert headers.get("access-control-allow-origin") == (origin if status == 204 else None)


def test_mcp_allowed_origins_of_the_shell_allows_more_pages(
    directory: Path, connect: Callable[[str], HTTPConnection], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MCP_ALLOWED_ORIGINS", "http://localhost:3000,http://localhost:3001")
    with Harness(directory, state_dir=directory.parent / "other") as running:
        browser = Browser(running, connect)
        asked = {"access_control_request_method": "POST"}
        for origin in (browser.origin, "http://localhost:6274", "http://localhost:3001"):
            assert browser.send("OPTIONS", "/mcp", origin=origin, **asked)[0] == 204


def test_the_token_of_the_page_is_valid_for_one_run(
    browser: Browser, directory: Path, connect: Callable[[str], HTTPConnection]
) -> None:
    earlier = browser.token()
    with Harness(directory, state_dir=directory.parent / "other") as running:
        other = Browser(running, connect)
        assert other.token() != earlier
        assert other.control("access", x_page_token=earlier)[0] == 403


def test_a_request_id_leads_to_the_functions_that_ran(browser: Browser) -> None:
    _result, request_id = browser.call("book", {"city": "Rome"})
    status, got = browser.control("executions", {"request": request_id})
    assert status == 200
    assert [one["folder"] for one in got["executions"]] == ["book", "mcp"]
    assert all(one["error"] is None and one["milliseconds"] >= 0 and one["requestId"] for one in got["executions"])


def test_the_page_opens_a_state_and_shows_answers_only_on_request(browser: Browser) -> None:
    first, _ = browser.call("book", {"city": "Rome"})
    answers = {"name": {"action": "accept", "content": {"name": MARKER}}}
    second, _ = browser.call("book", {"city": "Rome"}, inputResponses=answers, requestState=first["requestState"])
    asked = {"state": second["requestState"], "method": "tools/call", "target": "book", "arguments": {"city": "Rome"}}
    status, closed = browser.control("open", asked)
    assert (status, closed["reasons"], closed["record"]) == (200, [], None)
    assert [step["key"] for step in closed["steps"]] == ["reserve"]
    assert MARKER not in json.dumps(closed)
    assert any("as in the request" in line for line in closed["lines"])
    opened = browser.control("open", {**asked, "values": True})[1]
    assert MARKER in json.dumps(opened["record"]["answers"])


def test_the_page_shows_why_a_changed_state_is_refused(browser: Browser) -> None:
    state = browser.call("book", {"city": "Rome"})[0]["requestState"]
    middle = len(state) // 2
    changed = state[:middle] + ("B" if state[middle] == "A" else "A") + state[middle + 1 :]
    opened = browser.control("open", {"state": changed, "values": True})[1]
    assert [reason["reason"] for reason in opened["reasons"]] == ["tag"]
    assert opened["record"] is None


def test_the_page_opens_only_states_under_the_key_of_the_harness(
    browser: Browser, directory: Path, connect: Callable[[str], HTTPConnection]
) -> None:
    state = browser.call("greet", {})[0]["requestState"]
    with Harness(directory, state_dir=directory.parent / "other") as running:
        opened = Browser(running, connect).control("open", {"state": state, "values": True})[1]
    assert [reason["reason"] for reason in opened["reasons"]] == ["kek_unknown"]
    assert opened["record"] is None


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("open", {}),
        ("open", {"state": 1}),
        ("open", {"state": "x", "method": "tools/list"}),
        ("open", {"state": "x", "method": ["tools/call"]}),
        ("open", {"state": "x", "method": "tools/call", "target": 1}),
        ("open", []),
        ("executions", {"request": None}),
        ("executions", "x"),
    ],
)
def test_a_malformed_control_request_gets_an_error_with_the_reason(browser: Browser, name: str, body: object) -> None:
    status, got = browser.control(name, body)
    assert status == 400
    assert got["message"]


def test_other_control_routes_are_not_found(browser: Browser) -> None:
    assert browser.control("shutdown")[0] == 404


def test_the_page_needs_no_token_for_a_server_without_sign_in(browser: Browser) -> None:
    assert browser.control("access") == (200, {"access": None})


def test_with_jwt_the_page_gets_a_token_of_the_local_issuer(
    directory: Path, connect: Callable[[str], HTTPConnection]
) -> None:
    with Harness(directory, state_dir=directory.parent / "jwt", auth="jwt") as running:
        browser = Browser(running, connect)
        message = wire.message("tools/list", {})
        headers = {**CONTROL, "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/list"}
        assert browser.send("POST", "/mcp", message, **headers)[0] == 401
        access = browser.control("access")[1]["access"]
        assert (access["subject"], access["scopes"]) == ("local-user", [])
        signed = {**headers, "authorization": f"Bearer {access['token']}"}
        assert browser.send("POST", "/mcp", message, **signed)[0] == 200
