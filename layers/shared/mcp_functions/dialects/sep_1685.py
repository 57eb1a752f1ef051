"""SEP-1685, `state` beside the server's request: the client sends it back with its response, and nothing is stored.

The proposal has three wires, and a client says which is its own (`option`, among its experimental capabilities):
none, a request of the server with `state`, answered by a response with `state`; 1, `dependent_requests` with one state
for all requests of a round; 2, the same with one for each. A state is a string, or an object (`"state": "object"`).

A response that does not bring the state back still brings the id of its request, as JSON-RPC has it: so the id is the
same sealed text. That is what there is to fall back to, where the proposal has a server look into its database.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from mcp_functions.dialects import carrying
from mcp_functions.dialects.carrying import Asked, Carried
from mcp_functions.dialects.speaking import Dialect, asks, declared, event
from mcp_functions.protocol.errors import InvalidParams, InvalidRequestState, StateTooLarge
from mcp_functions.protocol.json_writer import dumps
from mcp_functions.protocol.messages import ResponseBody, Result

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.dialects.speaking import Place, Then
    from mcp_functions.http.events import HttpRequest
    from mcp_functions.http.gateway import Continuation
    from mcp_functions.protocol.messages import AnyResult, Request

NAME = "sep-1685"
SEALED = "sealed"  # what a state that is an object holds
PING: tuple[str, Mapping[str, Any]] = ("", {"method": "ping"})  # carries a state where nothing is asked
SHARED, EACH = 1, 2
WISHES = 'experimental["sep-1685"] may hold "option": 1 or 2, and "state": "string" or "object"'
SHAPE = 'dependent_responses must be {"responses": [{"result": …}, …]}, with the "state" that the round came with'


class Wish(NamedTuple):
    """What a client says of itself: which wire it speaks, and whether its states are objects."""

    option: int
    objects: bool


def answer(place: Place, request: Request, *, then: Then) -> AnyResult:
    """Answer a request; if it asks, and its client declares this dialect, in the words of that.

    Raises:
        InvalidParams: the client says something of itself that means nothing, or its answers have no shape.
        InvalidRequestState: a state is none of this conversation.

    """
    if (told := declared(request, NAME)) is None:
        return then(request)
    wish = _wish(told)
    if wish.option:
        request = _retried(place, request, wish)
    said = then(request)
    if not asks(request, said) or not isinstance(said, Result):
        return said
    try:
        return _round(place, request, said, wish) if wish.option else _server_request(place, request, said, wish)
    except StateTooLarge as error:
        return carrying.too_much(place, request, error)


def token(_http: HttpRequest, value: Any) -> str | None:  # noqa: ANN401 - JSON is any value
    """Read the state that a response brings back, or what stands in for it.

    Raises:
        InvalidRequestState: it brings back something that was never given out.

    """
    match value:
        case {"jsonrpc": "2.0", "id": str(id_)} if "method" not in value and {"result", "error"} & value.keys():
            # "servers that need state can detect its absence in the response and fall back gracefully"
            return _unpacked(value["state"]) if "state" in value else id_
    return None


def turn(place: Place, http: HttpRequest, value: Any) -> Continuation:  # noqa: ANN401 - JSON is any value
    """Read a response of the client as the call that it continues.

    Raises:
        InvalidRequestState: its state is none of this conversation, or of another request.

    """
    found = token(http, value)
    if found is None or value["id"] != found:
        reason = "another_request"
        raise InvalidRequestState(reason)
    carried = carrying.opened(place, NAME, found, http)
    (asked,) = carried.asked.values()
    return carrying.again(http, carried, _heard({asked.key: carrying.answer(value, asked)}))


def _server_request(place: Place, request: Request, said: Result, wish: Wish) -> Result:
    """Write one request of the server, as an event, and end the stream.

    Only one of a round: each response is a POST of its own, and nobody is there to put two of them together. What was
    asked besides is asked in the next turn.
    """
    requests: Mapping[str, Any] = said.result["inputRequests"]
    key, wanted = next(iter(requests.items()), PING)
    asked = {"": Asked(key, wanted["method"])}
    carried = Carried(said.result["requestState"], asked, carrying.call_of(request))
    sealed = carrying.seal(place, NAME, request, carried)
    # "The `state` field is a top-level field of the JSON-RPC message rather than a sub-field of `params`"
    message = {"jsonrpc": "2.0", "id": sealed, "state": _packed(sealed, wish), **wanted}
    return said._replace(body=ResponseBody("".join(map(event, (*said.notifications, message))), is_stream=True))


def _round(place: Place, request: Request, said: Result, wish: Wish) -> Result:
    """Write all requests of a round as one answer, and its state once or with each."""
    requests: Mapping[str, Any] = said.result["inputRequests"]
    state, bodies = said.result["requestState"], list[dict[str, Any]](map(dict, requests.values()))
    asked = [Asked(key, wanted["method"]) for key, wanted in requests.items()]

    def packed(*questions: Asked) -> Any:  # noqa: ANN401 - a string or an object
        numbered = {str(number): question for number, question in enumerate(questions)}
        return _packed(carrying.seal(place, f"{NAME}/{wish.option}", request, Carried(state, numbered, {})), wish)

    if wish.option == SHARED:
        told: dict[str, Any] = {"state": packed(*asked), "requests": bodies}
    else:
        key, ping = PING
        pairs = list(zip(asked, bodies, strict=True)) or [(Asked(key, ping["method"]), dict(ping))]
        told = {"requests": [{"state": packed(question), **body} for question, body in pairs]}
    message = {"jsonrpc": "2.0", "id": request.message["id"], "dependent_requests": told}
    if said.notifications:
        return said._replace(body=ResponseBody("".join(map(event, (*said.notifications, message))), is_stream=True))
    return said._replace(body=ResponseBody(dumps(message), is_stream=False))


def _retried(place: Place, request: Request, wish: Wish) -> Request:
    """Read `dependent_responses`, which stand beside the params of the call that is sent again."""
    message: dict[str, Any] = dict(request.message)
    told = message.pop("dependent_responses", None)
    kept = {name: value for name, value in request.params.items() if name not in ("inputResponses", "requestState")}
    if told is not None:
        responses = told.get("responses") if isinstance(told, dict) else None
        if not isinstance(responses, list) or not all(isinstance(response, dict) for response in responses):
            raise InvalidParams(SHAPE)
        read = _shared if wish.option == SHARED else _each
        kept |= read(place, request, told, responses)
    return request._replace(message={**message, "params": kept})  # type: ignore[typeddict-item]


def _shared(place: Place, request: Request, told: Mapping[str, Any], responses: list[dict[str, Any]]) -> dict[str, Any]:
    if "state" not in told:
        return {}  # what was answered to nobody knows which question: all is asked again
    carried = _opened(place, request, told["state"], SHARED)
    pairs = zip(carried.asked.values(), responses, strict=False)
    answers = {asked.key: carrying.answer(response, asked) for asked, response in pairs}
    return {"inputResponses": _heard(answers), "requestState": carried.state}


def _each(place: Place, request: Request, _told: Mapping[str, Any], responses: list[dict[str, Any]]) -> dict[str, Any]:
    states, answers = set[str](), dict[str, Any]()
    for response in responses:
        if "state" not in response:
            continue  # asked again, as if it had not come
        carried = _opened(place, request, response["state"], EACH)
        (asked,) = carried.asked.values()
        states.add(carried.state)
        answers[asked.key] = carrying.answer(response, asked)
    if len(states) > 1:
        reason = "two_conversations"
        raise InvalidRequestState(reason)
    return {"inputResponses": _heard(answers), "requestState": states.pop()} if states else {}


def _opened(place: Place, request: Request, state: object, option: int) -> Carried:
    return carrying.opened_for(place, f"{NAME}/{option}", _unpacked(state), request.principal, request.address)


def _heard(answers: Mapping[str, Any]) -> dict[str, Any]:
    return {key: answer for key, answer in answers.items() if key != PING[0]}


def _packed(sealed: str, wish: Wish) -> str | dict[str, str]:
    return {SEALED: sealed} if wish.objects else sealed


def _unpacked(state: Any) -> str:  # noqa: ANN401 - JSON is any value
    # "Clients MUST echo back the exact `state` value": an object that holds more is not the one that was given out
    match state:
        case str():
            return state
        case {"sealed": str(sealed)} if len(state) == 1:
            return sealed
    reason = "shape"
    raise InvalidRequestState(reason)


def _wish(told: Mapping[str, Any]) -> Wish:
    option, form = told.get("option", 0), told.get("state", "string")
    if type(option) is not int or option not in (0, SHARED, EACH) or form not in ("string", "object"):
        raise InvalidParams(WISHES)
    return Wish(option, form == "object")


DIALECT = Dialect(answer, token=token, turn=turn)
