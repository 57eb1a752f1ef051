"""`next RESPONSE EVENT`: puts the state of one round's response into the next round's event, as a client does.

So `sam local invoke` can hold a whole conversation: each round's event is a file with {{requestState}} in the state's
place.
"""

from __future__ import annotations

import base64
import json
from typing import Any

from mcp_functions.local.problems import Problem

PLACEHOLDER = "{{requestState}}"
DATA = "data:"  # a line of an SSE event


def follow(response: str, event: str) -> str:
    """Put the state of a response into an event.

    Args:
        response: the Lambda's result, as JSON.
        event: the next round's API Gateway event, as JSON.

    Raises:
        Problem: the response has no state (it is an error, or final), or the event has no place for one.
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


def _message(response: dict[str, Any]) -> object:
    """Find the JSON-RPC response in a body of JSON or of SSE events, whose last one is the response."""
    if "errorType" in response:
        problem = f"RESPONSE says that the function failed, {response['errorType']}: {response.get('errorMessage')}"
        raise Problem(problem)
    if not isinstance(response.get("body"), str):
        problem = "RESPONSE is not what a Lambda behind API Gateway returns: it has no body"
        raise Problem(problem)
    text = _body(response)
    events = [event.splitlines() for event in text.replace("\r\n", "\n").split("\n\n")]
    data = ["\n".join(line.removeprefix(DATA) for line in lines if line.startswith(DATA)) for lines in events]
    for candidate in (text, *reversed(data)):
        try:
            message = json.loads(candidate)
        except ValueError:
            continue
        if isinstance(message, dict) and ("result" in message or "error" in message):
            return message
    return None


def _filled(event: dict[str, Any], state: str) -> dict[str, Any]:
    text = _body(event)
    if PLACEHOLDER not in text:
        problem = f"EVENT has no {PLACEHOLDER} in its body: it does not continue a conversation"
        raise Problem(problem)
    text = text.replace(PLACEHOLDER, json.dumps(state)[1:-1])  # the placeholder is inside a JSON string
    headers = dict(event.get("headers") or {})
    for name in headers:
        if name.lower() == "content-length":
            headers[name] = str(len(text.encode()))
    body = base64.b64encode(text.encode()).decode() if event.get("isBase64Encoded") else text
    return {**event, **({"headers": headers} if headers else {}), "body": body}


def _body(message: dict[str, Any]) -> str:
    body = message.get("body")
    if not isinstance(body, str):
        return ""
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
