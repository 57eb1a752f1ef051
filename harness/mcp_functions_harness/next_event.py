"""`mcp-functions next RESPONSE EVENT`: puts the state of a response into the next event, as a client does.

A file in events/<function>/ has {{requestState}} where the encrypted state of the call belongs. With `next` between two
`sam local invoke`, the recorded events become a whole conversation.
"""

import base64
import json
from typing import Any

from mcp_functions.protocol.event_types import Event, Response
from mcp_functions_harness.api_gateway.events import body_text, message_in
from mcp_functions_harness.loopback import read_object
from mcp_functions_harness.problems import Problem
from mcp_functions_harness.recording import PLACEHOLDER


def fill(response: str, event: str) -> str:
    """Put the state of a Lambda's response into the next event of the conversation; all three are JSON.

    Raises:
        Problem: the response has no state (it is an error, or final), or the event has no place for one.
    """
    next_event = _read_object(event, "EVENT")
    state = _find_state(_read_object(response, "RESPONSE"))
    return json.dumps(_with_state(next_event, state), indent=2) + "\n"


def _find_state(response: Any) -> str:  # noqa: ANN401 - whatever a Lambda returned
    if "errorType" in response:
        error = f"{response['errorType']}: {response.get('errorMessage')}"
        raise Problem(f"RESPONSE says that the function failed, {error}")
    if not isinstance(response.get("body"), str):
        raise Problem("RESPONSE is not what a Lambda behind API Gateway returns: it has no body")
    match message_in(_read_body(response)):
        case {"error": {"code": code, "message": message}}:
            raise Problem(f"RESPONSE is an error, {code}: {message}")
        case {"result": {"requestState": str(state)}}:
            return state
        case {"result": {"resultType": "input_required"}}:
            raise Problem("RESPONSE asks without a requestState: send the next event as it is")
        case {"result": _}:
            raise Problem("RESPONSE has no requestState: it is the final result, no round follows it")
    raise Problem("RESPONSE holds no JSON-RPC response in its body")


def _with_state(event: Event, state: str) -> Event:
    """Copy an event, with the state in place of the placeholder."""
    body = _read_body(event)
    if PLACEHOLDER not in body:
        raise Problem(f"EVENT has no {PLACEHOLDER} in its body: it does not continue a conversation")
    # Without its quotes, because the placeholder is inside a JSON string.
    escaped_state = json.dumps(state)[1:-1]
    body = body.replace(PLACEHOLDER, escaped_state)
    filled: Event = {**event, "body": body}
    if event.get("isBase64Encoded"):
        filled["body"] = base64.b64encode(body.encode()).decode()
    if event.get("headers"):
        filled["headers"] = dict(event["headers"])
        for name in event["headers"]:
            if name.lower() == "content-length":
                filled["headers"][name] = str(len(body.encode()))
    return filled


def _read_body(event_or_response: Event | Response) -> str:
    try:
        return body_text(event_or_response)
    except ValueError:
        raise Problem("a body says that it is base64, but it is not") from None


def _read_object(text: str, name: str) -> Any:  # noqa: ANN401
    """Read a JSON object; `name` is what an error calls it."""
    if not text.strip():
        raise Problem(f"{name} is empty")
    value = read_object(text)
    if value is None:
        raise Problem(f"{name} is not a JSON object")
    return value
