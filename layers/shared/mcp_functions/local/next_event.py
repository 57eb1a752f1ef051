"""`next RESPONSE EVENT`: puts the state of one round's response into the next round's event, as a client does.

So `sam local invoke` can hold a whole conversation: each round's event is a file with {{requestState}} in the state's
place.
"""

from __future__ import annotations

import base64
import json
from typing import Any

from mcp_functions.attack.client import EVENT_STREAM, Response
from mcp_functions.local.problems import Problem

PLACEHOLDER = "{{requestState}}"


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
    """Find the JSON-RPC response in a body of JSON or of SSE events."""
    if "errorType" in response:
        problem = f"RESPONSE says that the function failed, {response['errorType']}: {response.get('errorMessage')}"
        raise Problem(problem)
    if not isinstance(response.get("body"), str):
        problem = "RESPONSE is not what a Lambda behind API Gateway returns: it has no body"
        raise Problem(problem)
    text = _body(response)
    media_type = "application/json" if text.lstrip().startswith("{") else EVENT_STREAM
    return Response(200, {"content-type": media_type}, text.encode()).message


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
