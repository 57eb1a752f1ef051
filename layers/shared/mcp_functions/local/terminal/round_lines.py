"""Makes the line of a round: `round 2 · reserve_table · date answered · asks phone · 3 ms · state 812 B`.

A round is one request of a call: the call itself, or the user's answers to the questions of the round before. The line
is made from the event and the response alone, so it is the same for functions in this process and in others.
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
SERVER_ERROR = 500  # the first HTTP status of an error of the server
MAX_TEXT = 60  # how many characters of a client's text a line has
MAX_REQUESTS = 200  # how many of the last requests are remembered as having a line
CRASHED = "failed unexpectedly. The server's log says why."  # the toolkit's text for a tool that raised by accident
ACTIONS = {"accept": "answered", "decline": "declined", "cancel": "cancelled"}
SEPARATOR = " · "


class Line(NamedTuple):
    """The line of one call."""

    text: str
    is_failure: bool  # whether the author has to correct something


class RoundLines:
    """Makes the line of each call.

    functions/mcp, the endpoint, forwards a call to a function. Both are invoked, but only the function gets a line.
    """

    def __init__(self, *, show_answers: bool) -> None:
        """Show the answers of users, or only that they answered."""
        self._show_answers = show_answers
        self._envelopes: dict[str, Envelope] = {}  # by folder: opens the states of a function
        self._requests_with_line: deque[str] = deque(maxlen=MAX_REQUESTS)  # API Gateway's ids of the last requests

    def line(self, folder: str, event: bytes, outcome: Outcome) -> Line | None:
        """Return the line of a call; None for the endpoint's if the function has one already.

        Args:
            folder: the function's folder; with the suffix WORKER_SUFFIX, its worker, which continues a task.
            event: the event as JSON.
            outcome: what the call returned.
        """
        sent = json_object(event)
        request_id = _object(sent.get("requestContext")).get("requestId")
        if isinstance(request_id, str):
            if folder == FRONT_DOOR and request_id in self._requests_with_line:
                return None
            self._requests_with_line.append(request_id)
        returned = json_object(outcome.payload)
        request = _message(sent)
        response = _message(returned)
        is_round = request.get("method") in CALL_METHODS and not folder.endswith(WORKER_SUFFIX)
        ending = _ending(returned, response, outcome.error)
        parts = list(self._request_parts(folder, sent, request, is_round=is_round))
        result = _object(response.get("result"))
        questions = [printable(key) for key in _object(result.get("inputRequests"))]
        if questions:
            parts.append(f"asks {', '.join(questions)}")
        if is_round or ending.text != "done":
            parts.append(ending.text)
        parts.append(f"{outcome.milliseconds:.0f} ms")
        if outcome.init_milliseconds:
            parts.append(f"started in {outcome.init_milliseconds:.0f} ms")
        state = result.get("requestState")
        if isinstance(state, str):
            parts.append(f"state {len(state)} B")
        return Line(SEPARATOR.join(filter(None, parts)), ending.is_failure)

    def _request_parts(
        self, folder: str, sent: dict[str, Any], request: dict[str, Any], *, is_round: bool
    ) -> Iterator[str]:
        """Yield what the client sent: the round or the method, the name, and the answers."""
        params = _object(request.get("params"))
        name = params.get("name")
        if is_round:
            yield f"round {self._round_number(folder, params.get('requestState'))}"
        else:
            yield _method(request.get("method"), sent)
        yield printable(name) if isinstance(name, str) and name else folder
        for key, response in _object(params.get("inputResponses")).items():
            part = f"{printable(key)} {ACTIONS.get(str(_object(response).get('action')), 'answered')}"
            if self._show_answers:
                part += f" {without_controls(json.dumps(response, ensure_ascii=False))}"
            yield part

    def _round_number(self, folder: str, state: object) -> str:
        """Return the number of the round that a state begins; "1" without a state, "?" if it cannot be opened."""
        if not isinstance(state, str) or not state:
            return "1"
        if folder not in self._envelopes:
            harness_key = KmsKey(os.environ["MCP_KMS_KEYS"])  # the harness sets it while it runs
            self._envelopes[folder] = unlimited_envelope(harness_key, local_scope(folder), now=time.time)
        try:
            return str(read_claims(self._envelopes[folder].unseal(state)).round + 1)
        except McpError:  # the function's own answer says why it refuses the state
            return "?"


def printable(text: object) -> str:
    """Return a client's text without control characters, which a terminal would obey, and not longer than a line."""
    clean = without_controls(str(text)[: MAX_TEXT + 1])
    if len(clean) <= MAX_TEXT:
        return clean
    return f"{clean[:MAX_TEXT]}…"


def without_controls(text: str) -> str:
    """Return a text with question marks for control characters."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def _method(method: object, sent: dict[str, Any]) -> str:
    """Return the method of MCP, or that of HTTP if the body has none."""
    if isinstance(method, str) and method in METHODS:
        return method
    http = _object(_object(sent.get("requestContext")).get("http"))
    return str(http.get("method", ""))


def _ending(returned: dict[str, Any], response: dict[str, Any], error: str | None) -> Line:
    """Return how a call ended, in a few words."""
    if error:
        return Line(f"failed: {error}", is_failure=True)
    status = returned.get("statusCode")
    refusal = response.get("error")
    if isinstance(refusal, dict):
        is_server_error = isinstance(status, int) and status >= SERVER_ERROR
        word = "failed" if is_server_error or refusal.get("code") == INTERNAL_ERROR else "refused"
        return Line(f"{word} {refusal.get('code')}", is_failure=True)
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
        return "failed" if CRASHED in json.dumps(result.get("content")) else "tool error"
    return "done"


def _message(event_or_result: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON-RPC message in the body of an event or of a result; {} if there is none."""
    try:
        return message_in(body_text(event_or_result))
    except ValueError:
        return {}


def _object(value: object) -> dict[str, Any]:
    """Return a JSON object; {} for any other value, because a client may send anything."""
    return value if isinstance(value, dict) else {}
