"""The response that ends a call for its client.

The outcome of the call decides:

    a result                         the result, as the client's revision has it
    questions for pages alone        error -32042, with which the client opens the pages
    other questions, or no time      an explanation why the call is not finished
    error: a capability is missing   an explanation
    another error                    the error
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp_functions.apps.unasked import describe_request, unfinished_text
from mcp_functions.legacy import responses, translation
from mcp_functions.legacy.errors import RESOURCE_NOT_FOUND, URL_ELICITATION_REQUIRED
from mcp_functions.legacy.obstacles import Obstacle, obstacle_to_using
from mcp_functions.protocol.errors import (
    HandlerError,
    MissingRequiredClientCapability,
    ResourceNotFound,
    capability_names,
)
from mcp_functions.protocol.messages import value_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mcp_functions.legacy.exchange import Exchange
    from mcp_functions.legacy.modern_requests import Call
    from mcp_functions.legacy.runner import Outcome
    from mcp_functions.protocol.wire_types import JSONObject

ADVICE = (
    "If the tool has an argument for it, ask the user yourself and call it again with the answer. "
    "Otherwise tell the user that a client of MCP revision 2026-07-28 can finish this call."
)


def final_message(exchange: Exchange, call: Call, outcome: Outcome) -> dict[str, Any]:
    """Return the response to a call whose last round had this outcome."""
    error = outcome.error
    if not error:
        result = translation.legacy_result(call.method, outcome.result, exchange.revision)
        return responses.result_message(call.id, result)
    if error.get("code") == MissingRequiredClientCapability.code:
        return _missing_capability(exchange, call, error["data"])
    # Other modern errors have the code of ResourceNotFound too, but only this one names the `uri`.
    is_not_found = error.get("code") == ResourceNotFound.code and value_at(error, "data", "uri") is not None
    if call.method == "resources/read" and is_not_found:
        error = {**error, "code": RESOURCE_NOT_FOUND}
    return responses.error_message(call.id, error)


def unfinished_message(call: Call, outcome: Outcome, obstacle: Obstacle) -> dict[str, Any]:
    """Return the response to a call that cannot continue, because the server cannot ask or cannot run another round."""
    questions = outcome.questions
    if not questions:
        return explanation_message(call, (), Obstacle.TAKES_TOO_LONG)
    asks_only_for_pages = all(value_at(question, "params", "mode") == "url" for question in questions.values())
    if asks_only_for_pages:
        return _pages_message(call, questions)
    return explanation_message(call, map(describe_request, questions.values()), obstacle)


def client_error_message(call: Call, request: JSONObject, error: object) -> dict[str, Any]:
    """Return the response to a call whose question the client answered with a JSON-RPC error.

    The error is not the user's decision: "decline" and "cancel" are results. Only the error's code is repeated,
    because its text may contain anything.
    """
    asks_user = request["method"] == "elicitation/create"
    reason = str(Obstacle.CLIENT_FAILED if asks_user else Obstacle.CLIENT_REFUSED)
    code = value_at(error, "code")
    if type(code) is int:
        reason += f" (it answered with JSON-RPC error {code})"
    return explanation_message(call, [describe_request(request)], reason)


def explanation_message(call: Call, questions: Iterable[str], reason: str) -> dict[str, Any]:
    """Return a response that explains why a call did not finish: a tool result for the model, otherwise an error."""
    text = unfinished_text(reason, questions, ADVICE)
    if call.method == "tools/call":
        return responses.result_message(call.id, {"content": [{"type": "text", "text": text}], "isError": True})
    return responses.error_message(call.id, HandlerError(text).to_json())


def _missing_capability(exchange: Exchange, call: Call, details: Mapping[str, Any]) -> dict[str, Any]:
    """Return the response to a call that needs a capability. The modern error has `details` as its `data`."""
    required = details.get("requiredCapabilities", {})
    if "extensions" in required:
        return explanation_message(call, (), Obstacle.RUNS_AS_TASK)
    names = capability_names(required)
    questions = details.get("asks", {}).values() or [f"something that needs the capability {', '.join(names)}"]
    return explanation_message(call, questions, obstacle_to_using(exchange, names))


def _pages_message(call: Call, questions: Mapping[str, Any]) -> dict[str, Any]:
    """Return the error with which a client opens the pages and then repeats its call.

    2025-11-25, client/elicitation, "URL Elicitation Required Error".
    """
    pages = [{**each["params"], "elicitationId": f"{call.id}-{key}"} for key, each in questions.items()]
    error = {"code": URL_ELICITATION_REQUIRED, "message": pages[0]["message"], "data": {"elicitations": pages}}
    return responses.error_message(call.id, error)
