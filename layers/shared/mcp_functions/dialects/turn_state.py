"""A turn is a response with questions, and the request in which the client answers them. A token connects the two.

    1. `seal_turn`        makes the token, which the response takes to the client
    2. `open_turn`        opens the token, with which the client returns its answers
    3. `repeat_call`      makes a call of the released revision from the answers

    token = folder of the function + "." + sealed {requestState of the released revision, questions, call}

The token is sealed (encrypted and authenticated) for one dialect and one principal. The requestState inside is bound to
the call and expires, so a client that holds a token can do nothing else with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict, cast

from mcp_functions import observability
from mcp_functions.protocol import headers, results
from mcp_functions.protocol.constants import (
    CALL_METHODS,
    META_CLIENT_CAPABILITIES,
    META_LOG_LEVEL,
    META_PROTOCOL_VERSION,
)
from mcp_functions.protocol.errors import HandlerError, InvalidRequest, InvalidRequestState
from mcp_functions.protocol.messages import Result, complete, value_at
from mcp_functions.seal.binding import Binding, caller_id, principal_digest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.dialects.dialect import DialectContext
    from mcp_functions.http.events import HttpRequest
    from mcp_functions.http.exchange import Continuation
    from mcp_functions.protocol.errors import StateTooLarge
    from mcp_functions.protocol.messages import Principal, Request
    from mcp_functions.protocol.wire_types import (
        InputResponse,
        InputResponses,
        JSONRPCMessage,
        JSONRPCRequest,
        Meta,
        Params,
        RequestId,
    )

KEPT_META = (META_PROTOCOL_VERSION, META_CLIENT_CAPABILITIES, META_LOG_LEVEL, "progressToken")
PARAMETER_HEADER = "mcp-param-"  # headers that repeat an argument of a call begin with this
ROUND_PARAMS = ("_meta", "inputResponses", "requestState")  # the params that differ in each turn
TOO_LARGE = "This conversation has more to remember than it can carry. Call and answer more briefly."


class TurnQuestion(NamedTuple):
    """A question of a turn."""

    key: str  # the key that the handler gave to `elicit`
    method: str  # the method of the request to the client, for example "elicitation/create"


class TurnCall(TypedDict, total=False):
    """The parts of a call that `repeat_call` needs."""

    id: RequestId
    method: str
    params: Params
    meta: Meta
    headers: dict[str, str]


class Turn(NamedTuple):
    """The data of a turn, which its token holds."""

    request_state: str  # the requestState of the released revision
    asked: Mapping[str, TurnQuestion]  # the questions, by their id in the dialect
    call: TurnCall  # {} if the client itself sends the call again


def seal_turn(context: DialectContext, format_name: str, request: Request, turn: Turn) -> str:
    """Return the token that holds a turn; it opens only with the same `format_name`.

    A format is a dialect, or one of its options: "sep-1685" and "sep-1685/1".

    Raises:
        StateTooLarge: the token would be longer than the deployment allows.
    """
    questions = {id_: list(question) for id_, question in turn.asked.items()}
    record = {"state": turn.request_state, "asked": questions, "call": turn.call}
    binding = _binding(context, format_name, request.principal)
    states = context.states(context.answer_within, label(format_name))
    return f"{context.folder}.{states.seal(binding, None, asked={}, record=record)}"


def open_turn(context: DialectContext, format_name: str, token: str, principal: Principal | None, address: str) -> Turn:
    """Return the turn in a token; InvalidRequestState if it has expired, or others received it."""
    folder, _dot, sealed = token.partition(".")
    if folder != context.folder:
        raise InvalidRequestState(reason="another_function")
    states = context.states(context.answer_within, label(format_name))
    binding = _binding(context, format_name, principal)
    record = states.open(sealed, binding, caller=caller_id(principal, address)).record
    asked = {id_: TurnQuestion(*question) for id_, question in record["asked"].items()}
    return Turn(record["state"], asked, record["call"])


def label(format_name: str) -> bytes:
    """Return the label of a dialect's seal: b"ks1/sep-1685" for all formats of SEP-1685."""
    dialect, _slash, _option = format_name.partition("/")
    return f"ks1/{dialect}".encode()


def call_of(request: Request) -> TurnCall:
    """Return the call of a turn."""
    meta: Mapping[str, Any] = request.params["_meta"]
    call = {
        "id": request.message["id"],
        "method": request.method,
        "params": {name: value for name, value in request.params.items() if name not in ROUND_PARAMS},
        "meta": {name: meta[name] for name in KEPT_META if name in meta},
        "headers": {name: value for name, value in request.headers.items() if name.startswith(PARAMETER_HEADER)},
    }
    return cast("TurnCall", call)


def repeat_call(http: HttpRequest, turn: Turn, answers: InputResponses) -> Continuation:
    """Return the original call with answers and state, as a client of the released revision sends it."""
    call = turn.call
    method = call["method"]
    params = call["params"].copy()
    name = value_at(params, CALL_METHODS[method])
    params |= {"inputResponses": dict(answers), "requestState": turn.request_state, "_meta": call["meta"]}
    message: JSONRPCRequest = {"jsonrpc": "2.0", "id": call["id"], "method": method, "params": params}
    expected_headers = {**call["headers"], "mcp-method": method, "mcp-name": headers.encode(name)}
    # The received headers win. If one contradicts the call, the released revision refuses the request.
    return http._replace(headers={**expected_headers, **http.headers}), message


def too_large(context: DialectContext, request: Request, error: StateTooLarge) -> Result:
    """Return the result for a turn whose token is too large; HandlerError if the method has no such result."""
    observability.current().reason = error.reason
    if request.method != "tools/call":
        raise HandlerError(error.reason, message=TOO_LARGE)
    return Result(complete(results.tool_error(TOO_LARGE), context.settings.server_info))


def response_result(response: JSONRPCMessage, question: TurnQuestion) -> InputResponse:
    """Return the result in a client's response to one question.

    Raises:
        InvalidRequest: the response has neither a result nor an error, or both.
        HandlerError: the client could not ask its user.
    """
    result: Any = response.get("result")
    if isinstance(result, dict) and "error" not in response:
        return cast("InputResponse", result)
    if isinstance(response.get("error"), dict) and "result" not in response:
        raise HandlerError(message=f"The client answered {question.method} with an error, so this call cannot go on")
    raise InvalidRequest(message="A response holds a result or an error, which is an object")


def _binding(context: DialectContext, format_name: str, principal: Principal | None) -> Binding:
    return Binding(context.audience, format_name, "", "", principal_digest(principal))
