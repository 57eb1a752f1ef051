"""The line of a round: `round 2 · reserve_table · date answered · asks phone · 3 ms · state 812 B`.

It is read from the event and the response alone, so it is the same for functions in this process and in others.
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
    from collections.abc import Iterator, Mapping

    from mcp_functions.local.lambdas.service import Outcome
    from mcp_functions.seal.envelope import Envelope

INTERNAL_ERROR, SERVER_ERROR = -32603, 500  # of JSON-RPC, and the first of HTTP
LONGEST = 60  # characters of a client's text that a line shows
REMEMBERED = 200  # requests whose function has its line already
CRASHED = "failed unexpectedly. The server's log says why."  # the toolkit's text, in a tool that raised by accident
ACTIONS = {"accept": "answered", "decline": "declined", "cancel": "cancelled"}
BETWEEN = " · "


@dataclass(eq=False)
class RoundLines:
    """Makes the line of each call; of a call that the front door forwards, the function's alone.

    Attributes:
        key_arn: of the harness's key, which opens the state that a client presents: it has the number of the round.
        show_answers: put the client's answers into the line.
    """

    key_arn: str
    show_answers: bool = False
    _envelopes: dict[str, Envelope] = field(default_factory=dict, init=False)
    _told: dict[str, None] = field(default_factory=dict, init=False)

    def line(self, folder: str, event: bytes, outcome: Outcome) -> tuple[str, bool] | None:
        """Return the line of a call, and whether it failed; None if the function behind the front door has one already.

        Args:
            folder: of the function.
            event: as JSON.
            outcome: of the call.
        """
        sent, returned = json_object(event), json_object(outcome.payload)
        if self._is_told(folder, _dict(sent.get("requestContext")).get("requestId")):
            return None
        request, response = _message(sent), _message(returned)
        params, result = _dict(request.get("params")), _dict(response.get("result"))
        method, name, state = request.get("method"), params.get("name"), result.get("requestState")
        is_call = method in CALLS and not folder.endswith(WORKER)
        questions = [printable(key) for key in _dict(result.get("inputRequests"))]
        ended, failed = _ended(returned, response, outcome.error)
        parts = [
            f"round {self._round(folder, params.get('requestState'))}" if is_call else _method(method, sent),
            printable(name) if isinstance(name, str) and name else folder,
            *self._answered(_dict(params.get("inputResponses"))),
            f"asks {', '.join(questions)}" if questions else "",
            ended if is_call or ended != "done" else "",
            f"{outcome.milliseconds:.0f} ms",
            f"started in {outcome.init_milliseconds:.0f} ms" if outcome.init_milliseconds else "",
            f"state {len(state)} B" if isinstance(state, str) else "",
        ]
        return BETWEEN.join(filter(None, parts)), failed

    def _is_told(self, folder: str, request_id: object) -> bool:
        if not isinstance(request_id, str):
            return False
        is_told = folder == FRONT_DOOR and request_id in self._told
        self._told[request_id] = None
        for old in list(self._told)[:-REMEMBERED]:
            self._told.pop(old, None)  # another thread may have done so
        return is_told

    def _answered(self, answers: Mapping[str, Any]) -> Iterator[str]:
        for key, response in answers.items():
            shown = f" {without_controls(json.dumps(response, ensure_ascii=False))}" if self.show_answers else ""
            yield f"{printable(key)} {ACTIONS.get(str(_dict(response).get('action')), 'answered')}{shown}"

    def _round(self, folder: str, presented: object) -> str:
        if not isinstance(presented, str) or not presented:
            return "1"
        if folder not in self._envelopes:
            self._envelopes[folder] = unlimited_envelope(KmsKey(self.key_arn), local_scope(folder), now=time.time)
        try:
            return str(read_claims(self._envelopes[folder].unseal(presented)).round + 1)
        except McpError:  # the function says why it refuses a state
            return "?"


def printable(text: object) -> str:
    """Return a client's text without control characters, which a terminal would obey, and not longer than a line."""
    shown = without_controls(str(text)[: LONGEST + 1])
    return shown if len(shown) <= LONGEST else f"{shown[:LONGEST]}…"


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
    refusal, status = response.get("error"), returned.get("statusCode")
    if error:
        return f"failed: {error}", True
    if isinstance(refusal, dict):
        crashed = refusal.get("code") == INTERNAL_ERROR or (isinstance(status, int) and status >= SERVER_ERROR)
        return f"{'failed' if crashed else 'refused'} {refusal.get('code')}", True
    if "result" not in response:
        return ("" if status is None else f"HTTP {status}"), False
    result = _dict(response["result"])
    return _outcome(result), result.get("isError") is True


def _outcome(result: dict[str, Any]) -> str:
    if result.get("resultType") == "task":
        return "became a task"
    if isinstance(result.get("status"), str) and "taskId" in result:
        return f"task {printable(result['status'])}"
    if result.get("inputRequests"):
        return ""
    if result.get("resultType") == "input_required":
        return "goes on without a question"
    if result.get("isError") is True:
        return "failed" if CRASHED in json.dumps(result.get("content")) else "tool error"
    return "done"


def _message(carrier: dict[str, Any]) -> dict[str, Any]:
    try:
        return message_in(text_of(carrier))
    except ValueError:
        return {}


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
