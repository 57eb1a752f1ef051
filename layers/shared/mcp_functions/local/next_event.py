"""`next RESPONSE EVENT`: puts the state of one round's response into the next round's event, as a client does.

So `sam local invoke` can hold a whole conversation: each round's event is a file with {{requestState}} in the state's
place.
"""

from __future__ import annotations

import base64
import json
from typing import Any

from mcp_functions.local.api_gateway.events import message_in, text_of
from mcp_functions.local.problems import Problem, stop

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
    if "errorType" in response:
        stop(f"RESPONSE says that the function failed, {response['errorType']}: {response.get('errorMessage')}")
    if not isinstance(response.get("body"), str):
        stop("RESPONSE is not what a Lambda behind API Gateway returns: it has no body")
    match message_in(_body(response)):
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


def _filled(event: dict[str, Any], state: str) -> dict[str, Any]:
    text = _body(event)
    if PLACEHOLDER not in text:
        stop(f"EVENT has no {PLACEHOLDER} in its body: it does not continue a conversation")
    text = text.replace(PLACEHOLDER, json.dumps(state)[1:-1])  # the placeholder is inside a JSON string
    headers = dict(event.get("headers") or {})
    for name in headers:
        if name.lower() == "content-length":
            headers[name] = str(len(text.encode()))
    body = base64.b64encode(text.encode()).decode() if event.get("isBase64Encoded") else text
    return {**event, **({"headers": headers} if headers else {}), "body": body}


def _body(event: dict[str, Any]) -> str:
    try:
        return text_of(event)
    except ValueError:
        stop("a body says that it is base64, but it is not")


def _object(text: str, name: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        stop(f"{name} is not a JSON object" if text.strip() else f"{name} is empty")
    return value
