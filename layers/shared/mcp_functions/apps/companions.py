"""The companion tools of a tool that asks: `<tool>-form` for its form, `<tool>-answer` for a model that relays.

    tools/call book {"city": "Rome"}                            ->  a result with a question, and a state
    tools/call book-answer {"state": "ks1.…", "answers": {…}}   ->  `open_call` makes of it the next round of `book`

A channel is one of these two ways to ask (`Channel`). The state is sealed under the label of its channel, so that
the other channel cannot open it. It contains the original arguments, and is bound to the tool and the principal
(envelope.md §9.6).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp_functions.apps.channels import APP, CHANNELS
from mcp_functions.protocol.errors import InvalidParams, InvalidRequestState, UnknownName
from mcp_functions.protocol.messages import is_dict_of, shows_apps
from mcp_functions.seal.binding import bind_request, caller_id
from mcp_functions.seal.request_state import RoundStart
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.apps.channels import Channel
    from mcp_functions.protocol.messages import Principal, Request
    from mcp_functions.seal.binding import Binding
    from mcp_functions.seal.request_state import RequestStates

ARGUMENTS = "call"  # the member of the sealed record with the original arguments

ANSWER_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "action": {"type": "string", "enum": ["accept", "decline", "cancel"]},
        "content": {"type": "object", "description": "The filled-in fields, if the user accepts"},
    },
    "required": ["action"],
}
INPUT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "state": {"type": "string", "description": "As the pending result has it, unchanged"},
        "answers": {"type": "object", "description": "By the question's key", "additionalProperties": ANSWER_SCHEMA},
    },
    "required": ["state"],
}
FORM_SCHEMA: dict[str, Any] = {
    **INPUT_SCHEMA,
    "properties": {
        **INPUT_SCHEMA["properties"],
        "check": {"type": "boolean", "description": "Only ask whether the state can still be used"},
    },
}


class CompanionCall(NamedTuple):
    """A call of a companion, as the call that it continues."""

    request: Request  # a request to the original tool, with its arguments, the state and the answers
    start: RoundStart  # what the round knows of earlier rounds
    is_check: bool  # whether the form only asks whether the state can still be used


def describe(channel: Channel, tool: Mapping[str, Any]) -> dict[str, Any]:
    """Write the entry of a companion in `tools/list`.

    Args:
        channel: the way on which the companion's answers come.
        tool: the entry of the tool that asks.
    """
    name = f"{tool['name']}{channel.suffix}"
    if channel is APP:
        text = f"Takes the answers that a person gives in the form of {tool['name']}. Only the form calls it."
        return {"name": name, "description": text, "inputSchema": FORM_SCHEMA, "_meta": {"ui": {"visibility": ["app"]}}}
    text = (
        f"Continue a call of {tool['name']} that is not finished. Pass on what the user has answered, in the user's "
        f"place never, and only after {tool['name']} has asked and the user has replied."
    )
    return {"name": name, "description": text, "inputSchema": INPUT_SCHEMA}


def channel_of(name: str, declared: Mapping[str, Any]) -> Channel:
    """Return the channel of a companion, by the last part of its name.

    Raises:
        UnknownName: the client does not declare MCP Apps, so its list does not have the form's companion.
    """
    channel = CHANNELS[f"-{name.rpartition('-')[2]}"]
    if channel is APP and not shows_apps(declared):
        raise UnknownName(message="Unknown tool")
    return channel


def bind(channel: Channel, audience: str, tool: str, principal: Principal | None) -> Binding:
    """Return the binding of a channel's states: the tool and the principal, and no arguments, which are inside."""
    return bind_request(audience, "tools/call", {"name": tool}, principal)._replace(method=channel.method)


def open_call(
    channel: Channel, tool: str, request: Request, audience: str, states: RequestStates | None
) -> CompanionCall:
    """Open the state in a call of a companion, and write the call that it continues.

    Args:
        channel: the channel of the companion.
        tool: the name of the tool that asked.
        request: the request that calls the companion.
        audience: the audience of the states: the functions that open them.
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
    """Read the state, the answers and `check`, as `INPUT_SCHEMA` or `FORM_SCHEMA` has them.

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
