"""The routes of the page.

GET  /                        index.html, with the token of this run
GET  /page/<file>             styles and scripts, from static/
POST /page/control/<name>     what the scripts ask of the harness (controls.py), for the page alone
"""

from dataclasses import dataclass
from importlib import resources
from pathlib import PurePath
from typing import Any

from mcp_functions.local.loopback import HttpRequest, HttpResponse, json_response
from mcp_functions.local.page.controls import BadRequest, Controls
from mcp_functions.local.page.guard import SECURITY_HEADERS, Guard, refusal
from mcp_functions.local.problems import Problem
from mcp_functions.protocol import json_reader
from mcp_functions.protocol.errors import ParseError

FILES = "/page/"
CONTROL = "/page/control/"
INDEX = "index.html"
TOKEN_IN_INDEX = b"{{token}}"  # replaced by the token of this run
MEDIA_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
}


@dataclass(eq=False, kw_only=True)
class Page:
    """Answers the requests for the page.

    Attributes:
        port: this server's port.
        token: a random text, new in each run of the harness, which only the page knows.
        controls: answers the page's scripts.
    """

    port: int
    token: str
    controls: Controls

    def __post_init__(self) -> None:
        """Find the page's files."""
        self._guard = Guard(self.port, self.token)
        self._files = {file.name: file for file in (resources.files(__package__) / "static").iterdir()}

    def answer(self, request: HttpRequest) -> HttpResponse | None:
        """Answer one request; None if it is not for the page."""
        path = request.target.partition("?")[0]
        if path.startswith(CONTROL):
            return self._answer_control(request, path.removeprefix(CONTROL))
        if request.method not in {"GET", "HEAD"}:
            return None
        if path == "/":
            return self._answer_file(request, INDEX)
        if path.startswith(FILES):
            return self._answer_file(request, path.removeprefix(FILES))
        return None

    def _answer_file(self, request: HttpRequest, name: str) -> HttpResponse:
        refused = self._guard.refuse_host(request)
        if refused:
            return refused
        if name not in self._files:
            return refusal(404, "Not Found")
        content = self._files[name].read_bytes()
        if name == INDEX:
            content = content.replace(TOKEN_IN_INDEX, self.token.encode())
        media_type = MEDIA_TYPES[PurePath(name).suffix]
        return HttpResponse(200, (("content-type", media_type), *SECURITY_HEADERS), content)

    def _answer_control(self, request: HttpRequest, name: str) -> HttpResponse:
        refused = self._guard.refuse_control(request)
        if refused:
            return refused
        control = self.controls.by_name.get(name)
        if control is None:
            return refusal(404, "Not Found")
        try:
            result = control(_read_object(request.body))
        except (BadRequest, Problem) as error:
            return refusal(400, str(error))
        return json_response(200, result, *SECURITY_HEADERS)


def _read_object(body: bytes | None) -> dict[str, Any]:
    """Read a JSON object as the server reads it, because its arguments are compared with those in a state."""
    try:
        value = json_reader.loads(body or b"")
    except ParseError:
        value = None
    if not isinstance(value, dict):
        message = "send a JSON object"
        raise BadRequest(message)
    return value
