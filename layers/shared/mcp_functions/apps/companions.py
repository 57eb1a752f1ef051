"""The companions of a tool that asks: second tools, which take the answers for clients without elicitation.

    tools/call book {"city": "Rome"}                           ->  a result with a question and a state
    tools/call book-answer {"state": "ks1.…", "answers": {…}}  ->  `open_call` turns it into the next round of `book`

The form in the host calls `book-form`, and the model calls `book-answer`. Each of these two ways is a `Channel`. A
state opens only in its own channel, and only for its tool and its principal (envelope.md §9.6). The state holds the
arguments of the first call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp_functions.apps.channels import APP, MODEL
from mcp_functions.protocol.errors import InvalidParams, InvalidRequestState, UnknownName
from mcp_functions.protocol.messages import is_dict_of, shows_apps
from mcp_functions.seal.binding import bind_request
from mcp_functions.seal.principals import caller_id
from mcp_functions.seal.request_state import RoundStart
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.apps.channels import Channel
    from mcp_functions.protocol.messages import Principal, Request
    from mcp_functions.seal.binding import Binding
    from mcp_functions.seal.request_state import RequestStates


ANSWER_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "action": {"type": "string", "enum": ["accept", "decline", "cancel"]},
        "content": {"type": "object", "description": "The filled-in fields, if the user accepts"},
    },
    "required": ["action"],
}
MODEL_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "state": {"type": "string", "description": "As the pending result has it, unchanged"},
        "answers": {"type": "object", "description": "By the question's key", "additionalProperties": ANSWER_SCHEMA},
    },
    "required": ["state"],
}
CHECK_SCHEMA = {"type": "boolean", "description": "Only ask whether the state can still be used"}
FORM_SCHEMA = {**MODEL_SCHEMA, "properties": {**MODEL_SCHEMA["properties"], "check": CHECK_SCHEMA}}


def form_companion(tool: str) -> dict[str, Any]:
    """Write the entry of the companion that the form of a tool calls."""
    return {
        "name": f"{tool}{APP.suffix}",
        "description": f"Takes the answers that a person gives in the form of {tool}. Only the form calls it.",
        "inputSchema": FORM_SCHEMA,
        "_meta": {"ui": {"visibility": ["app"]}},
    }


def model_companion(tool: str) -> dict[str, Any]:
    """Write the entry of the companion that the model calls."""
    text = (
        f"Continue a call of {tool} that is not finished. Pass on what the user has answered, in the user's "
        f"place never, and only after {tool} has asked and the user has replied."
    )
    return {"name": f"{tool}{MODEL.suffix}", "description": text, "inputSchema": MODEL_SCHEMA}


ARGUMENTS = "call"  # the member of the sealed record with the arguments of the first call


class CompanionCall(NamedTuple):
    """A call of a companion, turned into a call of its tool."""

    request: Request  # calls the tool, with the arguments of the first call, the state and the answers
    start: RoundStart  # what the round knows of earlier rounds
    is_check: bool  # True if the form only asks whether the state can still be used


def channel_of(name: str, declared: Mapping[str, Any]) -> Channel:
    """Return the channel of a companion, by the suffix of its name.

    Raises:
        UnknownName: the client does not declare MCP Apps, so its list does not have the form's companion.
    """
    if not name.endswith(APP.suffix):
        return MODEL
    if not shows_apps(declared):
        raise UnknownName(message="Unknown tool")
    return APP


def bind(channel: Channel, audience: str, tool: str, principal: Principal | None) -> Binding:
    """Return the binding of a channel's states: the tool and the principal. The arguments are in the states."""
    return bind_request(audience, "tools/call", {"name": tool}, principal)._replace(method=channel.method)


def open_call(
    channel: Channel, tool: str, request: Request, audience: str, states: RequestStates | None
) -> CompanionCall:
    """Open the state in a call of a companion, and turn it into a call of the tool.

    Args:
        channel: the channel of the companion.
        tool: the name of the tool that asked.
        request: the request that calls the companion.
        audience: the functions that open the states.
        states: opens the states of the channel; None if the function has no keys.

    Raises:
        InvalidParams: the arguments do not have the companion's shape.
        InvalidRequestState: the state is not one of this channel, tool and principal, or has expired.
    """
    state, answers, is_check = _read_arguments(request.params.get("arguments"))
    if states is None:
        raise InvalidRequestState(reason="function_has_no_keys")
    binding = bind(channel, audience, tool, request.principal)
    verified = states.open(state, binding, caller=caller_id(request.principal, request.address))
    original = verified.record.get(ARGUMENTS)
    if not isinstance(original, dict):  # a state of this channel always has them
        raise InvalidRequestState(reason="claims")
    params = {
        "name": tool,
        "arguments": original,
        "requestState": state,
        "inputResponses": answers,
        "_meta": request.params["_meta"],
    }
    start = RoundStart(binding, verified.flow, verified)
    return CompanionCall(request.with_params(params), start, is_check)


def _read_arguments(arguments: object) -> tuple[str, dict[str, Any], bool]:
    """Read the state, the answers and `check`, as the schemas have them.

    Raises:
        InvalidParams: one of them has the wrong type, or there is no state.
    """
    if not isinstance(arguments, dict):
        arguments = {}
    state = arguments.get("state")
    answers = arguments.get("answers", {})
    is_check = arguments.get("check", False)
    if not isinstance(state, str):
        raise InvalidParams(message="state must be a string")
    if not is_dict_of(dict, answers):
        raise InvalidParams(message="answers must be an object of objects")
    if not isinstance(is_check, bool):
        raise InvalidParams(message="check must be true or false")
    return state, answers, is_check
