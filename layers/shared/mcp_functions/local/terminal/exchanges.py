"""One call of a function as a person tells it: what was answered, what it asks, how it ended.

It is read from the event and the response alone, so it is the same for functions in this process and in others.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mcp_functions.protocol.constants import METHODS

if TYPE_CHECKING:
    from collections.abc import Mapping

INTERNAL_ERROR, SERVER_ERROR = -32603, 500  # of JSON-RPC, and the first of HTTP
LONGEST = 60  # characters of a client's text that a line shows
EVENT_STREAM = "text/event-stream"
DATA = "data: "
CRASHED = "failed unexpectedly. The server's log says why."  # the toolkit's text, in a tool that raised by accident
ACTIONS = {"accept": "answered", "decline": "declined", "cancel": "cancelled"}


@dataclass(frozen=True, kw_only=True)
class Exchange:
    """The facts of one request and its response.

    Attributes:
        request_id: API Gateway's; the front door forwards it.
        method: of MCP, or of HTTP if the body has none.
        name: of the tool or prompt; "" if the request has none.
        presented: the state that the client sent; "" if there is none.
        answers: the client's responses to questions, by key.
        asks: the keys of the questions.
        state_bytes: of the state that the client receives; 0 if it receives none.
        outcome: how it ended, in a few words; "" if it ended with a question.
        failed: whether the author has to correct something.
    """

    request_id: str = ""
    method: str = ""
    name: str = ""
    presented: str = ""
    answers: Mapping[str, Any] = field(default_factory=dict, repr=False)
    asks: tuple[str, ...] = ()
    state_bytes: int = 0
    outcome: str = ""
    failed: bool = False


def read(event: bytes, payload: bytes, error: str | None) -> Exchange:
    """Read the facts of a call.

    Args:
        event: of API Gateway, as JSON; another event has no facts.
        payload: what the function returned, as JSON.
        error: the type of Lambda's error, if the call failed.
    """
    sent = _json(event)
    context = _dict(sent.get("requestContext"))
    message = _message(sent)
    params = _dict(message.get("params"))
    method = message.get("method")
    ended = _ended(_json(payload), error)
    return Exchange(
        request_id=str(context.get("requestId", "")),
        method=method if method in METHODS else f"{_dict(context.get('http')).get('method', '')}",
        name=printable(params.get("name")) if isinstance(params.get("name"), str) else "",
        presented=params["requestState"] if isinstance(params.get("requestState"), str) else "",
        answers=_dict(params.get("inputResponses")),
        **ended,
    )


def action(response: object) -> str:
    """Return what a client's response to a question says: answered, declined or cancelled."""
    named = response.get("action") if isinstance(response, dict) else None
    return ACTIONS.get(named, "answered") if isinstance(named, str) else "answered"


def printable(text: object) -> str:
    """Return a client's text without control characters, which a terminal would obey, and not longer than a line."""
    shown = without_controls(str(text)[: LONGEST + 1])
    return shown if len(shown) <= LONGEST else f"{shown[:LONGEST]}…"


def without_controls(text: str) -> str:
    """Return a text with question marks for control characters."""
    return "".join(one if one.isprintable() else "?" for one in text)


def _ended(returned: dict[str, Any], error: str | None) -> dict[str, Any]:
    if error:
        return {"outcome": f"failed: {error}", "failed": True}
    answer = _message(returned)
    result, refusal = answer.get("result"), answer.get("error")
    if isinstance(refusal, dict):
        code, status = refusal.get("code"), returned.get("statusCode")
        failed = code == INTERNAL_ERROR or (isinstance(status, int) and status >= SERVER_ERROR)
        return {"outcome": f"{'failed' if failed else 'refused'} {code}", "failed": True}
    if not isinstance(result, dict):
        return {"outcome": f"HTTP {returned.get('statusCode')}"} if "statusCode" in returned else {}
    state = result.get("requestState")
    return {
        "asks": tuple(map(printable, _dict(result.get("inputRequests")))),
        "state_bytes": len(state) if isinstance(state, str) else 0,
        "outcome": _outcome(result),
        "failed": result.get("isError") is True,
    }


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
    """Return the JSON-RPC message in a body; of a stream, the last one."""
    body = carrier.get("body")
    if not isinstance(body, str):
        return {}
    if carrier.get("isBase64Encoded"):
        try:
            body = base64.b64decode(body).decode()
        except ValueError:
            return {}
    if EVENT_STREAM in str(_dict(carrier.get("headers")).get("content-type")) and DATA in body:
        body = [line for line in body.splitlines() if line.startswith(DATA)][-1].removeprefix(DATA)
    return _json(body)


def _json(text: str | bytes) -> dict[str, Any]:
    try:
        return _dict(json.loads(text))
    except (ValueError, RecursionError):
        return {}


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
