"""Makes the line that `serve` writes for each call of a function.

    round 1 · reserve_table · asks date · 5 ms · state 640 B
    round 2 · reserve_table · date answered · asks phone · 3 ms · state 812 B
    tools/list · mcp · 1 ms

A round is one request of a tool call: the first, or a later one with the user's answers. A line is made from the event
and the response alone, so it does not matter in which process the function ran.
"""

from __future__ import annotations

import json
import os
import time
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

from mcp_functions.local.api_gateway.events import body_text, message_in
from mcp_functions.local.inspection.key_source import local_scope, unlimited_envelope
from mcp_functions.local.lambdas.functions import FRONT_DOOR
from mcp_functions.local.loopback import json_object
from mcp_functions.protocol.constants import CALL_METHODS, METHODS, WORKER_SUFFIX
from mcp_functions.protocol.errors import McpError
from mcp_functions.seal.claims import read_claims
from mcp_functions.seal.kms import KmsKey

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcp_functions.local.lambdas.service import Outcome
    from mcp_functions.seal.envelope import Envelope

INTERNAL_ERROR = -32603  # JSON-RPC's code
SERVER_ERROR = 500  # the first HTTP status that means an error of the server
MAX_TEXT = 60  # the most characters of a client's text in a line
MAX_REQUESTS = 200  # how many of the last requests are known to have a line
CRASH_TEXT = "failed unexpectedly. The server's log says why."  # the toolkit's text for a tool that raised by accident
ACTIONS = {"accept": "answered", "decline": "declined", "cancel": "cancelled"}
DONE = "done"
SEPARATOR = " · "


class Line(NamedTuple):
    """The line of one call, or its last part."""

    text: str
    is_failure: bool  # whether the author has to correct something


class RoundLines:
    """Makes the line of each call."""

    def __init__(self, *, show_answers: bool) -> None:
        """Show the answers of users, or only that they answered."""
        self._show_answers = show_answers
        self._envelopes: dict[str, Envelope] = {}  # opens the states of a function, by its folder
        self._requests_with_line: deque[str] = deque(maxlen=MAX_REQUESTS)  # API Gateway's ids of the last requests

    def line(self, folder: str, event: bytes, outcome: Outcome) -> Line | None:
        """Return the line of a call; None for a call of the endpoint that another function has answered.

        Args:
            folder: the function's folder; with the suffix WORKER_SUFFIX, its worker, which continues a task.
            event: the event as JSON.
            outcome: what the call returned.
        """
        sent = json_object(event)
        request_id = str(_object(sent.get("requestContext")).get("requestId", ""))
        if folder == FRONT_DOOR and request_id in self._requests_with_line:
            return None  # functions/mcp has passed the request to another function, which has ended before
        if request_id:
            self._requests_with_line.append(request_id)
        returned = json_object(outcome.payload)
        request = _message(sent)
        response = _message(returned)
        is_round = request.get("method") in CALL_METHODS and not folder.endswith(WORKER_SUFFIX)
        ending = _ending(returned, response, outcome.error)
        parts = [self._round_label(folder, request) if is_round else _method(request, sent)]
        parts += self._request_parts(folder, request)
        parts += _question_parts(response)
        if is_round or ending.text != DONE:  # a list or a poll has no result worth a word
            parts.append(ending.text)
        parts += _figure_parts(response, outcome)
        return Line(SEPARATOR.join(filter(None, parts)), ending.is_failure)

    def _request_parts(self, folder: str, request: dict[str, Any]) -> Iterator[str]:
        params = _object(request.get("params"))
        name = params.get("name")
        yield printable(name) if isinstance(name, str) and name else folder
        for key, response in _object(params.get("inputResponses")).items():
            action = str(_object(response).get("action"))
            part = f"{printable(key)} {ACTIONS.get(action, 'answered')}"
            if self._show_answers:
                part += f" {without_controls(json.dumps(response, ensure_ascii=False))}"
            yield part

    def _round_label(self, folder: str, request: dict[str, Any]) -> str:
        """Return "round 2" if the request has the state of round 1; "round ?" if the state cannot be opened."""
        state = _object(request.get("params")).get("requestState")
        if not isinstance(state, str) or not state:
            return "round 1"
        if folder not in self._envelopes:
            harness_key = KmsKey(os.environ["MCP_KMS_KEYS"])  # the harness sets it while it runs
            self._envelopes[folder] = unlimited_envelope(harness_key, local_scope(folder), now=time.time)
        try:
            claims = read_claims(self._envelopes[folder].unseal(state))
        except McpError:  # the function refuses the state too, and its answer says why
            return "round ?"
        return f"round {claims.round + 1}"


def printable(text: object) -> str:
    """Return a client's text, shortened, and without control characters, which a terminal would obey."""
    clean = without_controls(str(text)[: MAX_TEXT + 1])
    if len(clean) <= MAX_TEXT:
        return clean
    return f"{clean[:MAX_TEXT]}…"


def without_controls(text: str) -> str:
    """Return a text with question marks for control characters."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def _question_parts(response: dict[str, Any]) -> list[str]:
    questions = _object(_object(response.get("result")).get("inputRequests"))
    return [f"asks {', '.join(map(printable, questions))}"] if questions else []


def _figure_parts(response: dict[str, Any], outcome: Outcome) -> Iterator[str]:
    yield f"{outcome.milliseconds:.0f} ms"
    if outcome.init_milliseconds:
        yield f"started in {outcome.init_milliseconds:.0f} ms"
    state = _object(response.get("result")).get("requestState")
    if isinstance(state, str):
        yield f"state {len(state)} B"


def _method(request: dict[str, Any], sent: dict[str, Any]) -> str:
    """Return the method of MCP, or of HTTP if the body has none."""
    method = request.get("method")
    if isinstance(method, str) and method in METHODS:
        return method
    http = _object(_object(sent.get("requestContext")).get("http"))
    return str(http.get("method", ""))


def _ending(returned: dict[str, Any], response: dict[str, Any], error: str | None) -> Line:
    """Return how a call ended, in a few words.

    Args:
        returned: the function's result.
        response: the JSON-RPC response in it; {} if there is none.
        error: the type of the error with which the function failed; None if it returned.
    """
    if error:
        return Line(f"failed: {error}", is_failure=True)
    status = returned.get("statusCode")
    rpc_error = response.get("error")
    if isinstance(rpc_error, dict):
        code = rpc_error.get("code")
        is_server_error = code == INTERNAL_ERROR or (isinstance(status, int) and status >= SERVER_ERROR)
        return Line(f"{'failed' if is_server_error else 'refused'} {code}", is_failure=True)
    if "result" in response:
        result = _object(response["result"])
        return Line(_ending_of_result(result), is_failure=result.get("isError") is True)
    if status is None:
        return Line("", is_failure=False)
    return Line(f"HTTP {status}", is_failure=False)


def _ending_of_result(result: dict[str, Any]) -> str:
    if result.get("resultType") == "task":
        return "became a task"
    if isinstance(result.get("status"), str) and "taskId" in result:
        return f"task {printable(result['status'])}"
    if result.get("inputRequests"):
        return ""  # the line lists the questions
    if result.get("resultType") == "input_required":
        return "goes on without a question"
    if result.get("isError") is True:
        return "failed" if CRASH_TEXT in json.dumps(result.get("content")) else "tool error"
    return DONE


def _message(event_or_result: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON-RPC message in the body of an event or of a result; {} if there is none."""
    try:
        return message_in(body_text(event_or_result))
    except ValueError:
        return {}


def _object(value: object) -> dict[str, Any]:
    """Return a JSON object; {} for any other value, because a client may send anything."""
    return value if isinstance(value, dict) else {}
