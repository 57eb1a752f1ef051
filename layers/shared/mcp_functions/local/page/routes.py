"""The routes of the page: its files, and what its scripts ask of the harness.

GET  /, /page/<file>            HTML, styles and scripts
POST /page/control/access       an access token for the page
POST /page/control/executions   which functions ran for a request, and how long
POST /page/control/open         what is in a state, and why a server would refuse it
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Any

from mcp_functions.local.inspection.explain import ON_REQUEST, explain
from mcp_functions.local.inspection.key_source import KeySource, local_scope
from mcp_functions.local.inspection.reasons import WHY
from mcp_functions.local.loopback import HttpResponse, json_response
from mcp_functions.local.page.guard import SECURITY_HEADERS, Guard, refusal
from mcp_functions.local.problems import Problem
from mcp_functions.protocol import json_reader
from mcp_functions.protocol.constants import CALL_METHODS
from mcp_functions.protocol.errors import ParseError
from mcp_functions.seal.kms import KmsKey

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_functions.local.lambdas.service import Lambdas
    from mcp_functions.local.loopback import HttpRequest

FILES = "/page/"
CONTROL = "/page/control/"
INDEX = "index.html"
PLACE_OF_TOKEN = b"{{token}}"  # stands in index.html for the token of this run
MEDIA_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
}


class BadRequest(Exception):
    """A control request lacks a member; the message names it."""


@dataclass(eq=False, kw_only=True)
class Page:
    """Answers requests for the page of one run, and leaves every other request to the API.

    Attributes:
        port: this server's port.
        token: the random token of this run.
        key_arn: the ARN of the harness's own key, the only one that opens states here.
        lambdas: the functions, and the records of their invocations.
        access: makes an access token: the members `token`, `subject` and `scopes`; None if the server wants none.
        now: the clock, unix seconds.

    """

    port: int
    token: str
    key_arn: str
    lambdas: Lambdas
    access: Callable[[], Mapping[str, object] | None]
    now: Callable[[], float]

    def __post_init__(self) -> None:
        """Find the page's files."""
        self._guard = Guard(self.port, self.token)
        self._files = {file.name: file for file in (resources.files(__package__) / "static").iterdir()}
        self._controls = {"access": self._give_access, "executions": self._list_executions, "open": self._open}

    def answer(self, request: HttpRequest) -> HttpResponse | None:
        """Answer one request; None if it is not for the page."""
        path = request.target.partition("?")[0]
        if path.startswith(CONTROL):
            return self._control(request, path.removeprefix(CONTROL))
        if request.method not in {"GET", "HEAD"}:
            return None
        if path != "/" and not path.startswith(FILES):
            return None
        refused = self._guard.refuse_host(request)
        if refused:
            return refused
        name = INDEX if path == "/" else path.removeprefix(FILES)
        return self._file(name)

    def _file(self, name: str) -> HttpResponse:
        if name not in self._files:
            return refusal(404, "Not Found")
        content = self._files[name].read_bytes()
        if name == INDEX:
            content = content.replace(PLACE_OF_TOKEN, self.token.encode())
        media_type = MEDIA_TYPES[f".{name.rpartition('.')[2]}"]
        return HttpResponse(200, (("content-type", media_type), *SECURITY_HEADERS), content)

    def _control(self, request: HttpRequest, name: str) -> HttpResponse:
        refused = self._guard.refuse_control(request)
        if refused:
            return refused
        if name not in self._controls:
            return refusal(404, "Not Found")
        try:
            answer = self._controls[name](_read_object(request.body))
        except (BadRequest, Problem) as error:
            return refusal(400, str(error))
        return json_response(200, answer, *SECURITY_HEADERS)

    def _give_access(self, _request: Mapping[str, Any]) -> dict[str, Any]:
        return {"access": self.access()}

    def _list_executions(self, request: Mapping[str, Any]) -> dict[str, Any]:
        http_request_id = _read_text(request, "request")
        return {
            "executions": [
                {
                    "folder": invocation.folder,
                    "requestId": invocation.request_id,
                    "milliseconds": round(invocation.milliseconds, 1),
                    "error": invocation.error,
                    "initMilliseconds": invocation.init_milliseconds,
                    "memoryMb": invocation.memory_mb,
                }
                for invocation in self.lambdas.invocations
                if invocation.http_request_id == http_request_id
            ]
        }

    def _open(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Open a state like `mcp-functions open`, with the harness's own key and no other.

        A state holds the record of a call: the answers of its user, and the result of each step that has run.
        """
        # `in` of a tuple compares, so that a list or an object as the method is refused, not hashed.
        if "method" in request and request["method"] not in tuple(CALL_METHODS):
            message = f"method must be one of {', '.join(CALL_METHODS)}"
            raise BadRequest(message)
        if "target" in request:
            _read_text(request, "target")
        refused_request: Any = {name: request[name] for name in ("method", "target", "arguments") if name in request}
        # Each function seals for its own scope. The function of the request comes first: it probably sealed the state.
        function = request.get("function")
        folders = sorted(self.lambdas.folders, key=lambda folder: (folder != function, folder))
        keys = KeySource([KmsKey(self.key_arn)], [local_scope(folder) for folder in folders], None)
        explanation = explain(_read_text(request, "state"), keys, refused_request, now=self.now())
        steps = (explanation.record or {}).get("steps", {})
        return {
            "lines": [line for line in explanation.lines if ON_REQUEST not in line],  # `record` has more
            "reasons": [{"reason": reason, "why": WHY.get(reason, "")} for reason in explanation.reasons],
            "steps": [{"key": key, "milliseconds": step[2]} for key, step in steps.items()],
            "record": explanation.record if request.get("values") is True else None,
        }


def _read_object(body: bytes | None) -> dict[str, Any]:
    try:
        value = json_reader.loads(body or b"")  # the server's reader, because arguments are compared with a state
    except ParseError:
        value = None
    if not isinstance(value, dict):
        message = "send a JSON object"
        raise BadRequest(message)
    return value


def _read_text(request: Mapping[str, Any], name: str) -> str:
    value = request.get(name)
    if not isinstance(value, str):
        message = f"{name} must be a string"
        raise BadRequest(message)
    return value
