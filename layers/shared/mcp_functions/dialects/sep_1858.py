"""SEP-1858, multi-turn SSE: a turn ends with events, and its answers come back as one array.

The questions go out as requests between the data-less events `buffer_input` and `input_required`, and the stream ends.
The client POSTs the array of its responses with `Last-Event-ID`, and that response holds the result, or the next turn.
The proposal stores what an instance knows; here the id of the last event is all of it, sealed, so nothing is stored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp_functions.dialects import carrying
from mcp_functions.dialects.carrying import Asked, Carried
from mcp_functions.dialects.speaking import Dialect, asks, declared, event
from mcp_functions.protocol.errors import InvalidRequest, StateTooLarge
from mcp_functions.protocol.json_writer import base64url
from mcp_functions.protocol.messages import ResponseBody, Result

if TYPE_CHECKING:
    from mcp_functions.dialects.speaking import Place, Then
    from mcp_functions.http.events import HttpRequest
    from mcp_functions.http.gateway import Continuation
    from mcp_functions.protocol.messages import AnyResult, Request

NAME = "sep-1858"
HEADER = "last-event-id"
MAX_EVENT_ID = 6 * 1024  # characters: an HTTP API takes 10 240 bytes of headers altogether, an access token among them
NONCE_BYTES = 9
TOO_LARGE = (
    f"an event id travels in a header, which may have {MAX_EVENT_ID} characters: keep references in arguments, answers"
    " and steps instead of documents, or let the client take rounds, whose requestState travels in the body"
)


def answer(place: Place, request: Request, *, then: Then) -> AnyResult:
    """Answer a request; if it asks, and its client declares this dialect, as a turn."""
    said = then(request)
    if declared(request, NAME) is None or not asks(request, said) or not isinstance(said, Result):
        return said
    name = base64url(place.rand(NONCE_BYTES))
    requests = {f"{name}-{number}": one for number, one in enumerate(said.result["inputRequests"].items(), start=1)}
    asked = {id_: Asked(key, wanted["method"]) for id_, (key, wanted) in requests.items()}
    carried = Carried(said.result["requestState"], asked, carrying.call_of(request))
    try:
        event_id = _fitting(carrying.seal(place, NAME, request, carried))
    except StateTooLarge as error:
        return carrying.too_much(place, request, error)
    # "When a server needs to send one or more requests … it should first send a `buffer_input` SSE event."
    stream = [event(told) for told in said.notifications]
    stream.append(event(name="buffer_input", id_=f"{name}-0"))
    stream += [event({"jsonrpc": "2.0", "id": id_, **wanted}, id_=id_) for id_, (_key, wanted) in requests.items()]
    # "The server then sends its requests … followed by an `input_required` SSE event, and disconnects."
    stream.append(event(name="input_required", id_=event_id))
    return said._replace(body=ResponseBody("".join(stream), is_stream=True))


def token(http: HttpRequest, value: Any) -> str | None:  # noqa: ANN401 - JSON is any value
    """Read the event id that an array of responses comes with.

    Raises:
        InvalidRequest: responses came without one.

    """
    if type(value) is not list or not all(map(_is_response, value)):
        return None
    if not http.headers.get(HEADER) and value:
        text = "An array of responses needs the header Last-Event-ID: the id of the event input_required"
        raise InvalidRequest(text)
    return http.headers.get(HEADER)


def turn(place: Place, http: HttpRequest, value: Any) -> Continuation:  # noqa: ANN401 - JSON is any value
    """Read the array of responses as the call that it continues.

    Raises:
        InvalidRequest: a question has two answers.
        InvalidRequestState: the event id is none of this conversation.

    """
    carried = carrying.opened(place, NAME, http.headers[HEADER], http)
    answers = dict[str, Any]()
    for response in value:
        # what was not asked is not looked at: "SHOULD ignore any unexpected information"
        if (asked := carried.asked.get(str(response["id"]))) is None:
            continue
        if asked.key in answers:
            text = "Two responses have the same id"
            raise InvalidRequest(text)
        answers[asked.key] = carrying.answer(response, asked)
    return carrying.again(http, carried, answers)


def _is_response(value: Any) -> bool:  # noqa: ANN401 - JSON is any value
    match value:
        case {"jsonrpc": "2.0", "id": str() | int()} if "method" not in value:
            return bool({"result", "error"} & value.keys())
    return False


def _fitting(event_id: str) -> str:
    if len(event_id) > MAX_EVENT_ID:
        raise StateTooLarge(TOO_LARGE)
    return event_id


DIALECT = Dialect(answer, token=token, turn=turn)
