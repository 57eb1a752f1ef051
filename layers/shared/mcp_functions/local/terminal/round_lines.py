"""Makes the line of a round: `round 2 · reserve_table · date answered · asks phone · 3 ms · state 812 B`.

A round is one request of a call: the call itself, or the user's answers to the questions of the round before. The line
is made from the event and the response alone, so it is the same for functions in this process and in others.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mcp_functions.local.api_gateway.events import message_in, text_of
from mcp_functions.local.inspection.key_source import local_scope, unlimited_envelope
from mcp_functions.local.lambdas.functions import FRONT_DOOR
from mcp_functions.local.loopback import json_object
from mcp_functions.protocol.constants import CALLS, METHODS, WORKER
from mcp_functions.protocol.errors import McpError
from mcp_functions.seal.claims import read_claims
from mcp_functions.seal.data_keys import KmsKey

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcp_functions.local.lambdas.service import Outcome
    from mcp_functions.seal.envelope import Envelope

INTERNAL_ERROR = -32603  # JSON-RPC's code
SERVER_ERROR = 500  # the first HTTP status of an error of the server
LONGEST = 60  # how many characters of a client's text a line shows
REMEMBERED = 200  # how many of the last requests are remembered as having a line
CRASHED = "failed unexpectedly. The server's log says why."  # the toolkit's text for a tool that raised by accident
ACTIONS = {"accept": "answered", "decline": "declined", "cancel": "cancelled"}
BETWEEN = " · "


@dataclass(eq=False)
class RoundLines:
    """Makes the line of each call.

    functions/mcp, the endpoint, forwards a call to a function. Both are invoked, but only the function gets a line.

    Attributes:
        key_arn: the ARN of the harness's key, which opens a client's state: it contains the number of the round.
        show_answers: whether the line shows the user's answers.
    """

    key_arn: str
    show_answers: bool = False
    _envelopes: dict[str, Envelope] = field(default_factory=dict, init=False)  # by folder: opens its states
    _told: dict[str, None] = field(default_factory=dict, init=False)  # ids of the requests that have a line

    def line(self, folder: str, event: bytes, outcome: Outcome) -> tuple[str, bool] | None:
        """Return the line of a call, and whether it failed; None if the forwarded call has a line already.

        Args:
            folder: the function's folder; with the suffix WORKER, its worker, which continues a task.
            event: the event as JSON.
            outcome: what the call returned.
        """
        sent = json_object(event)
        request_id = _dict(sent.get("requestContext")).get("requestId")
        if isinstance(request_id, str):
            if folder == FRONT_DOOR and request_id in self._told:
                return None
            self._remember(request_id)
        returned = json_object(outcome.payload)
        request = _message(sent)
        response = _message(returned)
        is_round = request.get("method") in CALLS and not folder.endswith(WORKER)
        ended, failed = _ended(returned, response, outcome.error)
        parts = [*self._asked(folder, sent, request, is_round=is_round)]
        result = _dict(response.get("result"))
        questions = [printable(key) for key in _dict(result.get("inputRequests"))]
        if questions:
            parts.append(f"asks {', '.join(questions)}")
        if is_round or ended != "done":
            parts.append(ended)
        parts.append(f"{outcome.milliseconds:.0f} ms")
        if outcome.init_milliseconds:
            parts.append(f"started in {outcome.init_milliseconds:.0f} ms")
        state = result.get("requestState")
        if isinstance(state, str):
            parts.append(f"state {len(state)} B")
        return BETWEEN.join(filter(None, parts)), failed

    def _remember(self, request_id: str) -> None:
        self._told[request_id] = None
        for old in list(self._told)[:-REMEMBERED]:
            self._told.pop(old, None)  # another thread may have done so

    def _asked(self, folder: str, sent: dict[str, Any], request: dict[str, Any], *, is_round: bool) -> Iterator[str]:
        """Yield what the client asked: the round or the method, the name, and the answers."""
        params = _dict(request.get("params"))
        name = params.get("name")
        if is_round:
            yield f"round {self._round(folder, params.get('requestState'))}"
        else:
            yield _method(request.get("method"), sent)
        yield printable(name) if isinstance(name, str) and name else folder
        for key, response in _dict(params.get("inputResponses")).items():
            action = ACTIONS.get(str(_dict(response).get("action")), "answered")
            shown = f" {without_controls(json.dumps(response, ensure_ascii=False))}" if self.show_answers else ""
            yield f"{printable(key)} {action}{shown}"

    def _round(self, folder: str, presented: object) -> str:
        """Return the number of the round to which a state belongs; "1" without one, "?" if it cannot be opened."""
        if not isinstance(presented, str) or not presented:
            return "1"
        if folder not in self._envelopes:
            self._envelopes[folder] = unlimited_envelope(KmsKey(self.key_arn), local_scope(folder), now=time.time)
        try:
            return str(read_claims(self._envelopes[folder].unseal(presented)).round + 1)
        except McpError:  # the function's own answer says why it refuses the state
            return "?"


def printable(text: object) -> str:
    """Return a client's text without control characters, which a terminal would obey, and not longer than a line."""
    shown = without_controls(str(text)[: LONGEST + 1])
    if len(shown) <= LONGEST:
        return shown
    return f"{shown[:LONGEST]}…"


def without_controls(text: str) -> str:
    """Return a text with question marks for control characters."""
    return "".join(one if one.isprintable() else "?" for one in text)


def _method(method: object, sent: dict[str, Any]) -> str:
    """Return the method of MCP, or that of HTTP if the body has none."""
    if isinstance(method, str) and method in METHODS:
        return method
    return str(_dict(_dict(sent.get("requestContext")).get("http")).get("method", ""))


def _ended(returned: dict[str, Any], response: dict[str, Any], error: str | None) -> tuple[str, bool]:
    """Return how a call ended, in a few words, and whether the author has to correct something."""
    if error:
        return f"failed: {error}", True
    status = returned.get("statusCode")
    refusal = response.get("error")
    if isinstance(refusal, dict):
        is_server_error = isinstance(status, int) and status >= SERVER_ERROR
        word = "failed" if is_server_error or refusal.get("code") == INTERNAL_ERROR else "refused"
        return f"{word} {refusal.get('code')}", True
    if "result" in response:
        result = _dict(response["result"])
        return _outcome(result), result.get("isError") is True
    if status is None:
        return "", False
    return f"HTTP {status}", False


def _outcome(result: dict[str, Any]) -> str:
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


def _message(carrier: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON-RPC message in the body of an event or of a result; {} if there is none."""
    try:
        return message_in(text_of(carrier))
    except ValueError:
        return {}


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
