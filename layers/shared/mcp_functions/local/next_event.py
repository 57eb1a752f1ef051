"""`next RESPONSE EVENT`: carries a state from one round's response into the next round's event, as a client would.

With it `sam local invoke` holds a whole conversation: every round's event is a file, in which `{{requestState}}` stands
for the state.
"""

from __future__ import annotations

import base64
import json
from typing import Any

from mcp_functions.local.problems import Problem

PLACEHOLDER = "{{requestState}}"


def follow(response: str, event: str) -> str:
    """Fill the state of a response into an event.

    Args:
        response: what the Lambda returned, as JSON.
        event: the next round's API Gateway event, as JSON.

    Raises:
        Problem: the response carries no state (it was an error, or the end), or the event has no place for one.

    """
    return json.dumps(_filled(_object(event, "EVENT"), _state(_object(response, "RESPONSE"))), indent=2) + "\n"


def _state(response: dict[str, Any]) -> str:
    match _message(response):
        case {"error": {"code": code, "message": message}}:
            problem = f"RESPONSE is an error, {code}: {message}"
        case {"result": {"requestState": str(state)}}:
            return state
        case {"result": {"resultType": "input_required"}}:
            problem = "RESPONSE asks without a requestState: send the next event as it is"
        case {"result": _}:
            problem = "RESPONSE has no requestState: it is the final result, no round follows it"
        case _:
            problem = "RESPONSE holds no JSON-RPC response in its body"
    raise Problem(problem)


def _message(response: dict[str, Any]) -> Any:  # noqa: ANN401 - JSON is any value
    match response:
        case {"errorType": kind, "errorMessage": message}:
            problem = f"RESPONSE says that the function failed, {kind}: {message}"
            raise Problem(problem)
        case {"body": str(body)}:
            text = _body(response, body)
        case _:
            problem = "RESPONSE is not what a Lambda behind API Gateway returns: it has no body"
            raise Problem(problem)
    for candidate in (text, *reversed(_sse(text))):
        try:
            message = json.loads(candidate)
        except ValueError:
            continue
        if isinstance(message, dict) and ("result" in message or "error" in message):
            return message
    return None


def _sse(text: str) -> list[str]:
    """Read the data of every event of an SSE stream."""
    events = [event.splitlines() for event in text.replace("\r\n", "\n").split("\n\n")]
    return ["\n".join(line[5:].removeprefix(" ") for line in lines if line.startswith("data:")) for lines in events]


def _filled(event: dict[str, Any], state: str) -> dict[str, Any]:
    body = event.get("body")
    text = _body(event, body) if isinstance(body, str) else ""
    if PLACEHOLDER not in text:
        problem = f"EVENT has no {PLACEHOLDER} in its body: it does not continue a conversation"
        raise Problem(problem)
    text = text.replace(PLACEHOLDER, json.dumps(state)[1:-1])  # it stands inside a JSON string
    headers = dict(event.get("headers") or {})
    lengths = {name: str(len(text.encode())) for name in headers if name.lower() == "content-length"}
    encoded = base64.b64encode(text.encode()).decode() if event.get("isBase64Encoded") else text
    return {**event, **({"headers": headers | lengths} if lengths else {}), "body": encoded}


def _body(message: dict[str, Any], body: str) -> str:
    try:
        return base64.b64decode(body, validate=True).decode() if message.get("isBase64Encoded") else body
    except ValueError:
        problem = "a body says that it is base64, but it is not"
        raise Problem(problem) from None


def _object(text: str, name: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        problem = f"{name} is not a JSON object" if text.strip() else f"{name} is empty"
        raise Problem(problem)
    return value
