"""Requests to the contenders, as events of API Gateway, and checks of the responses.

Two dialects: revision 2026-07-28, with `_meta`, headers and rounds; and plain 2024-11-05, which awslabs answers.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from mcp_functions_harness.api_gateway.events import Moment, event
from mcp_functions_harness.loopback import HttpRequest

if TYPE_CHECKING:
    from collections.abc import Mapping

Dialect: TypeAlias = Literal["2026-07-28", "2024-11-05"]
Event: TypeAlias = "dict[str, Any]"

MODERN: Dialect = "2026-07-28"
PLAIN: Dialect = "2024-11-05"
HOST = "abcdefgh12.execute-api.us-east-1.amazonaws.com"
META: dict[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
}
ANSWERS = {"seat": "window", "place": "Porto"}  # by the name of the asked property


class WrongAnswer(Exception):
    """A contender's response is wrong, so it is not timed."""


def request(dialect: Dialect, method: str, params: Mapping[str, Any], path: str = "/mcp") -> Event:
    """Write the event of one request.

    Args:
        dialect: of the client.
        method: JSON-RPC's.
        params: without `_meta`.
        path: of the route.

    """
    headers = {"accept": "application/json, text/event-stream", "content-type": "application/json", "host": HOST}
    message: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": method, "params": dict(params)}
    if dialect == MODERN:
        message["params"]["_meta"] = META
        headers |= {"mcp-protocol-version": MODERN, "mcp-method": method}
        headers |= {"mcp-name": params["name"]} if "name" in params else {}
    body = json.dumps(message).encode()
    http = HttpRequest("POST", path, tuple(headers.items()), body)
    return dict(event(http, path, Moment.at(time.time())))


def result(response: Mapping[str, Any]) -> dict[str, Any]:
    """Read the result of a response.

    Raises:
        WrongAnswer: it has none.

    """
    try:
        message = json.loads(response["body"])
        if response["statusCode"] != 200 or message["id"] not in (1, "1"):
            raise WrongAnswer(str(message)[:300])
        return dict(message["result"])
    except (KeyError, TypeError, ValueError):
        raise WrongAnswer(str(response)[:300]) from None


def answered(params: Mapping[str, Any], asked: Mapping[str, Any]) -> dict[str, Any]:
    """Answer what a result asks: the params of the next round.

    Raises:
        WrongAnswer: it asks nothing.

    """
    if asked.get("resultType") != "input_required" or not asked.get("inputRequests"):
        raise WrongAnswer(str(asked)[:300])
    responses = {}
    for key, wanted in asked["inputRequests"].items():
        properties = wanted["params"]["requestedSchema"]["properties"]
        responses[key] = {"action": "accept", "content": {name: ANSWERS[name] for name in properties}}
    return {**params, "inputResponses": responses, "requestState": asked["requestState"]}


def text_of(told: Mapping[str, Any]) -> str:
    """Read the text of a tool's result.

    Raises:
        WrongAnswer: it is an error, or none.

    """
    try:
        if told.get("isError"):
            raise WrongAnswer(str(told)[:300])
        return str(told["content"][0]["text"])
    except (KeyError, IndexError):
        raise WrongAnswer(str(told)[:300]) from None
