"""Turns a call of an answer tool into a call of the tool that asked. An answer tool takes the answers (`answer_tools`).

    tools/call book-answer {"state": "ks1.…", "answers": {…}}
    tools/call book {"city": "Rome"}, requestState "ks1.…", inputResponses {…}

The state is the sealed record of the call, so it has the arguments of the first call: {"city": "Rome"}. It opens only
for its own answer tool and its own principal, which is the authenticated caller (envelope.md §9.6).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp_functions.apps.answer_tools import FORM, MODEL
from mcp_functions.protocol.errors import InvalidParams, InvalidRequestState, UnknownName
from mcp_functions.protocol.messages import is_dict_of, shows_apps
from mcp_functions.seal.binding import bind_request, caller_id
from mcp_functions.seal.request_state import RoundStart
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from mcp_functions.apps.answer_tools import AnswerTool
    from mcp_functions.protocol.messages import Principal, Request
    from mcp_functions.protocol.wire_types import ClientCapabilities, Params
    from mcp_functions.seal.binding import Binding
    from mcp_functions.seal.request_state import RequestStates

ARGUMENTS_KEY = "call"  # under this key, the record has the arguments of the first call


class AnswerCall(NamedTuple):
    """A call of an answer tool, turned into a call of the tool that asked."""

    # calls the tool that asked, with the arguments of the first call, the state and the answers
    request: Request
    start: RoundStart  # the opened state, which the tool continues from
    is_check: bool  # True if the form only asks whether the state can still be used


def find_answer_tool(name: str, declared: ClientCapabilities) -> AnswerTool:
    """Return the answer tool of a name, by the suffix.

    Raises:
        UnknownName: the client does not declare MCP Apps, so `<tool>-form` is not in its list.
    """
    if name.endswith(MODEL.suffix):
        return MODEL
    if not shows_apps(declared):
        raise UnknownName(message="Unknown tool")
    return FORM


def bind_state(answer_tool: AnswerTool, audience: str, tool: str, principal: Principal | None) -> Binding:
    """Return what the states for an answer tool are bound to: its method, the tool that asked, and the principal.

    The arguments are not bound: they are in the state itself.
    """
    binding = bind_request(audience, "tools/call", {"name": tool}, principal)
    return binding._replace(method=answer_tool.method)


def open_call(
    answer_tool: AnswerTool, tool: str, request: Request, audience: str, states: RequestStates | None
) -> AnswerCall:
    """Open the state in a call of an answer tool, and turn it into a call of the tool that asked.

    Args:
        answer_tool: the answer tool that the request calls.
        tool: the name of the tool that asked.
        request: the request that calls the answer tool.
        audience: the server that opens the states: "<service>/<stage>".
        states: opens the states for the answer tool; None if the function has no keys.

    Raises:
        InvalidParams: the arguments do not have the shape of the schema.
        InvalidRequestState: the state is not one of these tools and this principal, or has expired.
    """
    state, answers, is_check = _read_arguments(request.params.get("arguments"))
    if states is None:
        raise InvalidRequestState(reason="function_has_no_keys")
    binding = bind_state(answer_tool, audience, tool, request.principal)
    verified = states.open(state, binding, caller=caller_id(request.principal, request.address))
    first_arguments = verified.record.get(ARGUMENTS_KEY)
    if not isinstance(first_arguments, dict):  # a state for an answer tool always has them
        raise InvalidRequestState(reason="claims")
    params: Params = {
        "name": tool,
        "arguments": first_arguments,
        "requestState": state,
        "inputResponses": answers,
        "_meta": request.params["_meta"],
    }
    return AnswerCall(request.with_params(params), RoundStart(binding, verified.flow, verified), is_check)


def _read_arguments(arguments: object) -> tuple[str, dict[str, Any], bool]:
    """Return `state`, `answers` and `check`, as the schemas have them.

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
