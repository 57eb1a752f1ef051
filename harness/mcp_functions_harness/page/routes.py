"""The routes of the page.

GET  /                        index.html, with the token of this run
GET  /page/<file>             styles and scripts, from static/
POST /page/control/<name>     what the scripts ask of the harness (controls.py), for the page alone

Any web page that the developer opens can send requests to 127.0.0.1. This is what stops them:

Host            must be this server's, against a name that resolves to 127.0.0.1 (DNS rebinding)
Origin          must be this server's, against pages of other servers
x-page-token    must hold the token of this run of the harness, which only the page's HTML contains

No response allows another origin to read it.
"""

import hmac
import secrets
from dataclasses import dataclass
from importlib import resources
from pathlib import PurePath
from typing import Any

from mcp_functions.protocol import json_reader
from mcp_functions.protocol.errors import ParseError
from mcp_functions_harness.loopback import HOST, HttpRequest, HttpResponse, json_response
from mcp_functions_harness.page.controls import Controls
from mcp_functions_harness.problems import Problem

FILES = "/page/"
CONTROL = "/page/control/"
INDEX = "index.html"
TOKEN_IN_INDEX = b"{{token}}"  # replaced by the token of this run
MEDIA_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
}
PROOF_HEADER = "x-page-token"
NAMES = (HOST, "localhost")  # the names of this machine that a browser may use
# require-trusted-types-for: a script of the page cannot turn a text of a server into HTML.
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; frame-ancestors 'none'; "
    "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'"
)
SECURITY_HEADERS = (
    ("content-security-policy", CONTENT_SECURITY_POLICY),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("cache-control", "no-store"),  # the HTML holds the token of this run
)


@dataclass(eq=False, kw_only=True)
class Page:
    """Answers the requests for the page."""

    port: int  # this server's
    controls: Controls  # answers the page's scripts

    def __post_init__(self) -> None:
        """Find the page's files, and choose the token of this run, which only the page knows."""
        self._token = secrets.token_urlsafe(32)
        self._files = {file.name: file for file in (resources.files(__package__) / "static").iterdir()}

    def answer(self, request: HttpRequest) -> HttpResponse | None:
        """Answer one request; None if it is not for the page."""
        path = request.target.partition("?")[0]
        if path.startswith(CONTROL):
            return self._refuse_control(request) or self._answer_control(request, path.removeprefix(CONTROL))
        if request.method not in {"GET", "HEAD"}:
            return None
        if path == "/":
            return self._refuse_host(request) or self._answer_file(INDEX)
        if path.startswith(FILES):
            return self._refuse_host(request) or self._answer_file(path.removeprefix(FILES))
        return None

    def _refuse_host(self, request: HttpRequest) -> HttpResponse | None:
        """Return the refusal of a request for another host; None if it is for this one."""
        if request.header("host").lower() in {f"{name}:{self.port}" for name in NAMES}:
            return None
        return _refusal(403, f"this page is at http://{HOST}:{self.port}/ only")

    def _refuse_control(self, request: HttpRequest) -> HttpResponse | None:
        """Return the refusal of a request that the page did not send; None if the page sent it."""
        refused = self._refuse_host(request)
        if refused:
            return refused
        if request.method != "POST":
            return _refusal(405, "send a POST", ("allow", "POST"))
        if request.values("origin") != [f"http://{request.header('host').lower()}"]:
            return _refusal(403, "the Origin is not this page")
        if not hmac.compare_digest(request.header(PROOF_HEADER).encode(), self._token.encode()):
            return _refusal(403, "the token is not of this run: load the page again")
        if request.header("content-type").partition(";")[0].strip().lower() != "application/json":
            return _refusal(415, "send application/json")
        return None

    def _answer_file(self, name: str) -> HttpResponse:
        if name not in self._files:
            return _refusal(404, "Not Found")
        content = self._files[name].read_bytes()
        if name == INDEX:
            content = content.replace(TOKEN_IN_INDEX, self._token.encode())
        media_type = MEDIA_TYPES[PurePath(name).suffix]
        return HttpResponse(200, (("content-type", media_type), *SECURITY_HEADERS), content)

    def _answer_control(self, request: HttpRequest, name: str) -> HttpResponse:
        control = self.controls.by_name.get(name)
        if control is None:
            return _refusal(404, "Not Found")
        try:
            result = control(_read_object(request.body))
        except Problem as error:
            return _refusal(400, str(error))
        return json_response(200, result, *SECURITY_HEADERS)


def _refusal(status: int, message: str, *headers: tuple[str, str]) -> HttpResponse:
    return json_response(status, {"message": message}, *SECURITY_HEADERS, *headers)


def _read_object(body: bytes | None) -> dict[str, Any]:
    """Read a JSON object as the server reads it, because its arguments are compared with those in a state."""
    try:
        value = json_reader.loads(body or b"")
    except ParseError:
        value = None
    if not isinstance(value, dict):
        raise Problem("send a JSON object")
    return value
