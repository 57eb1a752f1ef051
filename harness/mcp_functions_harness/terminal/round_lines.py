"""Makes the line that `serve` writes for each call of a function.

    round 1 · reserve_table · asks date · 5 ms · state 640 B
    round 2 · reserve_table · date answered · asks phone · 3 ms · state 812 B
    tools/list · mcp · 1 ms

A round is one request of a tool call: the first, or a later one with the user's answers. The later one also has the
state, a sealed text that the client got with the questions.
"""

import json
import os
import time
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple, cast

from mcp_functions.protocol.constants import CALL_METHODS, META_FORM, METHODS
from mcp_functions.protocol.errors import McpError
from mcp_functions.protocol.event_types import HttpContext
from mcp_functions.protocol.messages import value_at
from mcp_functions.protocol.wire_types import JSONRPCMessage
from mcp_functions.seal.claims import read_claims
from mcp_functions.seal.envelope import Envelope
from mcp_functions.seal.kms import KmsKey
from mcp_functions_harness.api_gateway.events import body_text, message_in
from mcp_functions_harness.inspection.key_source import local_scope, unlimited_envelope
from mcp_functions_harness.lambdas.service import Outcome
from mcp_functions_harness.loopback import json_object
from mcp_functions_harness.terminal.safe_text import safe_line

INTERNAL_ERROR = -32603  # JSON-RPC's code
SERVER_ERROR = 500  # the first HTTP status that means an error of the server
CRASH_TEXT = "failed unexpectedly. The server's log says why."  # of a tool that raised by accident
MAX_TEXT = 60  # the most characters of a client's text in a line


class Line(NamedTuple):
    """The line of one call."""

    text: str
    is_failure: bool  # whether the author has to correct something


class RoundLines:
    """Makes the line of each call. It opens states with the harness's key, which is in the environment."""

    def __init__(self, *, show_answers: bool) -> None:
        """Choose whether lines have the answers of users, or say only that they answered."""
        self._show_answers = show_answers
        self._envelope_of = cache(_envelope_of)

    def line(self, folder: str, event: bytes, outcome: Outcome) -> Line:
        """Return the line of a call: a function's folder, the event, and what the function returned."""
        sent, returned = json_object(event), json_object(outcome.payload)
        request, response = _message(sent), _message(returned)
        status = returned.get("statusCode")
        is_round = request.get("method") in CALL_METHODS
        failure = f"failed: {outcome.error}" if outcome.error else _failure(response, status)
        endings = [failure] if failure else _endings(response, status)
        if is_round and not endings and "result" in response:
            endings = ["done"]
        http = value_at(sent, "requestContext", "http")
        parts = [
            self._round_label(folder, request) if is_round else _method(request, http),
            _name(request) or folder,
            *self._answers(request),
            *endings,
            *_measurements(response, outcome),
        ]
        return Line(" · ".join(filter(None, parts)), is_failure=bool(failure))

    def _round_label(self, folder: str, request: JSONRPCMessage) -> str:
        """Return "round 2" if the request has the state of round 1; "round ?" if the state cannot be opened."""
        state = value_at(request, "params", "requestState")
        if not isinstance(state, str) or not state:
            return "round 1"
        try:
            return f"round {read_claims(self._envelope_of(folder).unseal(state)).round + 1}"
        except McpError:  # the function refuses the state, too
            return "round ?"

    def _answers(self, request: JSONRPCMessage) -> Iterator[str]:
        """Yield e.g. "date answered" for each answer."""
        verbs = {"decline": "declined", "cancel": "cancelled"}
        for key, response in _object(value_at(request, "params", "inputResponses")).items():
            verb = verbs.get(str(value_at(response, "action")), "answered")
            answer = f" {safe_line(json.dumps(response, ensure_ascii=False))}" if self._show_answers else ""
            yield f"{printable(key)} {verb}{answer}"


def _envelope_of(folder: str) -> Envelope:
    return unlimited_envelope(KmsKey(os.environ["MCP_KMS_KEYS"]), local_scope(folder), now=time.time)


def _method(request: JSONRPCMessage, http: HttpContext | None) -> str:
    """Return the method of MCP, or of HTTP if the body has none."""
    method = request.get("method")
    if isinstance(method, str) and method in METHODS:
        return method
    return str(value_at(http, "method") or "")


def _name(request: JSONRPCMessage) -> str:
    """Return the name of the called tool or prompt; "" if the request has none."""
    name = value_at(request, "params", "name")
    return printable(name) if isinstance(name, str) else ""


def _failure(response: JSONRPCMessage, status: object) -> str:
    """Return how a call failed; "" if it succeeded."""
    match response:
        case {"error": {"code": code}}:
            is_server_error = code == INTERNAL_ERROR or (isinstance(status, int) and status >= SERVER_ERROR)
            return f"failed {code}" if is_server_error else f"refused {code}"
        case {"result": {"isError": True, "content": content}}:
            return "failed" if CRASH_TEXT in json.dumps(content) else "tool error"
    return ""


def _endings(response: JSONRPCMessage, status: object) -> list[str]:
    """Return what a call led to, if it did not fail: [] for a plain result."""
    if "result" not in response:
        return [] if status is None else [f"HTTP {status}"]
    result = _object(response["result"])
    questions = _object(result.get("inputRequests"))
    endings = [f"asks {', '.join(map(printable, questions))}"] if questions else []
    if result.get("resultType") == "task":
        endings.append("became a task")
    elif isinstance(result.get("status"), str) and "taskId" in result:
        endings.append(f"task {printable(result['status'])}")
    elif result.get("resultType") == "input_required" and not questions:
        endings.append("goes on without a question")
    return endings + _endings_of_form(result)


def _endings_of_form(result: dict[str, Any]) -> list[str]:
    """Return what the form of an app (MCP Apps) does with a result: it asks the user, or only continues the call."""
    form = _object(value_at(result, "_meta", META_FORM))
    if "questions" not in form:
        return []
    questions = ", ".join(map(printable, _object(form["questions"])))
    return [f"asks {questions} in a form" if questions else "goes on in a form"]


def _measurements(response: JSONRPCMessage, outcome: Outcome) -> Iterator[str]:
    yield f"{outcome.milliseconds:.0f} ms"
    if outcome.init_milliseconds:
        yield f"started in {outcome.init_milliseconds:.0f} ms"
    state = value_at(response, "result", "requestState")
    if isinstance(state, str):
        yield f"state {len(state)} B"


def printable(text: str) -> str:
    """Return a client's text in one line, shortened."""
    line = safe_line(text)
    return line if len(line) <= MAX_TEXT else f"{line[:MAX_TEXT]}…"


def _message(event_or_result: Any) -> JSONRPCMessage:  # noqa: ANN401 - JSON
    """Return the JSON-RPC message in the body of an event or of a result; {} if there is none."""
    try:
        return cast("JSONRPCMessage", message_in(body_text(event_or_result)))
    except ValueError:
        return {}


def _object(value: object) -> dict[str, Any]:
    """Return a JSON object; {} for any other value, because a client may send anything."""
    return value if isinstance(value, dict) else {}
