"""Replays a document's messages exactly: it sends the client's messages and expects the server's.

Only these may differ, because the released revision 2026-07-28 takes precedence over the seeds:
- `_meta` in requests and results: "Every request MUST include the required `_meta` fields" (basic/patterns/mrtr);
  servers "SHOULD include" `serverInfo` "in every result's `_meta`" (basic).
- every round carries a sealed `requestState`, because an answer counts only with a state that proves the question.
  "The InputRequiredResult MAY include a requestState field." The client echoes it, as it MUST.
- `mode`: "servers MAY omit the mode field for form mode elicitation requests" (client/elicitation); this one does not.
- the order of keys, which JSON does not have.
"""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support import wire

if TYPE_CHECKING:
    from mcp_functions.http.gateway import LambdaFunction

EXAMPLES = Path(__file__).parent / "examples"
SERVER_INFO = "io.modelcontextprotocol/serverInfo"
ASKABLE: dict[str, Any] = {"elicitation": {}, "sampling": {}, "roots": {}}


def example(name: str) -> Any:  # noqa: ANN401 - JSON: a list of messages, or the shapes of one
    """Return what a document shows, copied by value."""
    return json.loads((EXAMPLES / f"{name}.json").read_text(encoding="utf-8"))


def replay(handler: LambdaFunction, messages: list[dict[str, Any]], *, state: str | None = None) -> str | None:
    """Hold a document's conversation, request after request, and compare every response as a whole.

    Args:
        handler: the function that the document calls.
        messages: requests and responses in turn, as the document has them.
        state: what the round before left, if the document begins in the middle.

    Returns:
        The state that the last round left, or None.

    """
    for request, response in zip(messages[::2], messages[1::2], strict=True):
        received = send(handler, request, state=state)
        assert received == permitted(response, received)
        state = received["result"].get("requestState")
    return state


def send(handler: LambdaFunction, request: dict[str, Any], *, state: str | None = None) -> dict[str, Any]:
    """Send one request of a document and return the response, judged by the official types."""
    params = {key: value for key, value in request["params"].items() if key != "requestState"}
    echoed = {} if state is None else {"requestState": state}
    sent = wire.message(request["method"], params | echoed, id=request["id"], capabilities=ASKABLE)
    answer = handler(wire.event(sent), wire.Context(f"local-{handler.handlers[0].name}"))
    assert answer["statusCode"] == 200
    return wire.read(answer, request["method"])


def permitted(response: dict[str, Any], received: dict[str, Any]) -> dict[str, Any]:
    """Return a document's response with what may differ taken from the one received."""
    expected = deepcopy(response)
    result, got = expected["result"], received["result"]
    assert got["_meta"].keys() == {SERVER_INFO}
    result["_meta"] = got["_meta"]
    if result["resultType"] == "input_required":
        assert isinstance(got["requestState"], str)
        result["requestState"] = got["requestState"]
        for asked in result["inputRequests"].values():
            if asked["method"] == "elicitation/create":
                asked["params"].setdefault("mode", "form")
    return expected
