"""What a turn leaves in a dialect: the modern requestState, and what is needed to send the original call again.

Sealed under a label of its own, bound to the principal, and behind the name of the function that alone can open it. The
requestState inside is bound to the call as ever, and expires as ever: nothing is trusted because it came out of a seal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from mcp_functions import observability
from mcp_functions.http import identity
from mcp_functions.protocol import headers, results
from mcp_functions.protocol.constants import CALLS, META_CLIENT_CAPABILITIES, META_LOG_LEVEL, META_PROTOCOL_VERSION
from mcp_functions.protocol.errors import HandlerError, InvalidRequest, InvalidRequestState
from mcp_functions.protocol.messages import Result, complete
from mcp_functions.seal.request_state import Binding, payer, principal_digest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.dialects.speaking import Place
    from mcp_functions.http.events import HttpRequest
    from mcp_functions.http.gateway import Continuation
    from mcp_functions.protocol.errors import StateTooLarge
    from mcp_functions.protocol.messages import Principal, Request
    from mcp_functions.protocol.wire_types import JSONRPCRequest

KEPT = (META_PROTOCOL_VERSION, META_CLIENT_CAPABILITIES, META_LOG_LEVEL, "progressToken")
REPEATED = "mcp-param-"
ROUNDS = ("_meta", "inputResponses", "requestState")
TOO_MUCH = "This conversation has more to remember than it can carry. Call and answer more briefly."
ERROR = "The client answered {} with an error, so this call cannot go on"


class Asked(NamedTuple):
    """A question of the turn: its key in the engine, and its method."""

    key: str
    method: str


class Carried(NamedTuple):
    """What a turn left.

    Attributes:
        state: the modern requestState.
        asked: what the dialect calls a question, to the question.
        call: the original one, where the client will not send it again.

    """

    state: str
    asked: Mapping[str, Asked]
    call: Mapping[str, Any]


def seal(place: Place, wire: str, request: Request, carried: Carried) -> str:
    """Seal what a turn leaves.

    Args:
        place: the function.
        wire: a dialect, or one of its wires (`<dialect>/<wire>`): what one leaves, no other opens.
        request: of this turn.
        carried: what to seal.

    Raises:
        StateTooLarge: it is over the deployment's limit.
        TemporarilyUnavailable, Misconfigured: nothing can be sealed now.

    """
    record = {"state": carried.state, "asked": {id_: list(asked) for id_, asked in carried.asked.items()}}
    bound = _bound(place, wire, principal_digest(request.principal))
    states = place.states(place.answer_within, label(wire))
    sealed = states.seal(bound, None, asked={}, record={**record, "call": dict(carried.call)})
    return f"{place.folder}.{sealed}"


def opened(place: Place, wire: str, token: str, http: HttpRequest) -> Carried:
    """Open what a turn left, for whoever calls now.

    Raises:
        InvalidRequestState: this function did not seal it for this wire, or for somebody else, or it has expired.

    """
    principal = identity.identify(http, place.settings, place.now()).principal
    return opened_for(place, wire, token, principal, http.address)


def opened_for(place: Place, wire: str, token: str, principal: Principal | None, address: str) -> Carried:
    """Open it likewise, for a principal that is known already."""
    folder, _dot, sealed = token.partition(".")
    if folder != place.folder:
        reason = "another_function"
        raise InvalidRequestState(reason)
    states = place.states(place.answer_within, label(wire))
    bound = _bound(place, wire, principal_digest(principal))
    record = states.open(sealed, bound, caller=payer(principal, address)).record
    asked = {id_: Asked(*known) for id_, known in record["asked"].items()}
    return Carried(record["state"], asked, record["call"])


def label(wire: str) -> bytes:
    """Say under which label a dialect seals."""
    return f"ks1/{wire.partition('/')[0]}".encode()


def call_of(request: Request) -> dict[str, Any]:
    """Take of a call what is needed to send it again."""
    message, meta = request.message, request.params["_meta"]
    return {
        "id": message["id"],
        "method": message["method"],
        "params": {name: value for name, value in request.params.items() if name not in ROUNDS},
        "meta": {name: meta[name] for name in KEPT if name in meta},
        "headers": {name: value for name, value in request.headers.items() if name.startswith(REPEATED)},
    }


def again(http: HttpRequest, carried: Carried, answers: Mapping[str, Any]) -> Continuation:
    """Write the original call once more, with answers and state, as a client of the released revision would.

    A header that came with the answers stays, so that one which contradicts the call is refused with it.
    """
    call = carried.call
    params = {**call["params"], "inputResponses": dict(answers), "requestState": carried.state, "_meta": call["meta"]}
    message: JSONRPCRequest = {"jsonrpc": "2.0", "id": call["id"], "method": call["method"], "params": params}
    named = {"mcp-method": call["method"], "mcp-name": headers.encode(call["params"][CALLS[call["method"]]])}
    return http._replace(headers={**call["headers"], **named, **http.headers}), message


def too_much(place: Place, request: Request, error: StateTooLarge) -> Result:
    """Refuse a turn that cannot be carried: in words that a model can act on, and in the author's log with the remedy.

    Raises:
        HandlerError: it is no tool, so that the words are an error's.

    """
    observability.current().reason = error.reason
    if request.message["method"] != "tools/call":
        raise HandlerError(TOO_MUCH, reason=error.reason)
    return Result(complete(results.tool_error(TOO_MUCH), place.settings.server_info))


def answer(response: Mapping[str, Any], asked: Asked) -> dict[str, Any]:
    """Read what a client answered to one question.

    Raises:
        InvalidRequest: it is neither a result nor an error.
        HandlerError: the client itself failed, and not its user.

    """
    match response:
        case {"result": dict(result)} if "error" not in response:
            return result
        case {"error": dict()} if "result" not in response:
            raise HandlerError(ERROR.format(asked.method))
    text = "A response holds a result or an error, which is an object"
    raise InvalidRequest(text)


def _bound(place: Place, wire: str, principal: str | None) -> Binding:
    return Binding(place.audience, wire, "", "", principal)
