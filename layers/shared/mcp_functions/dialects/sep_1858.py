"""SEP-1858, multi-turn SSE: the server asks in an event stream, and the client sends its answers as one array.

    client   POST of the call
    server   event `buffer_input`, without data
             one event for each question, with a request of the server
             event `input_required`, without data; the stream ends
    client   POST of the array of its responses, with the id of the last event in `Last-Event-ID`
    server   the result of the call, or the next questions

The proposal stores state in the server. Here the id of the last event holds it: a token, that is a sealed (encrypted
and authenticated) text. The quotations in this file are from SEP-1858.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from mcp_functions.dialects import turn_state
from mcp_functions.dialects.dialect import Dialect, is_response, is_unfinished, stream_event
from mcp_functions.dialects.turn_state import Turn, TurnQuestion
from mcp_functions.http import identity
from mcp_functions.protocol.errors import InvalidRequest, StateTooLarge
from mcp_functions.protocol.json_writer import base64url
from mcp_functions.protocol.messages import ResponseBody

if TYPE_CHECKING:
    from mcp_functions.dialects.dialect import DialectContext
    from mcp_functions.http.events import HttpRequest
    from mcp_functions.http.exchange import Continuation
    from mcp_functions.protocol.messages import AnyResult, Request
    from mcp_functions.protocol.wire_types import InputResponses, JSONValue

HEADER = "last-event-id"
MAX_EVENT_ID = 6 * 1024  # characters; an HTTP API allows 10 240 bytes of headers, with the token
NONCE_BYTES = 9  # random bytes in the ids of a turn's questions
TOO_LARGE = (
    f"an event id travels in a header, which may have {MAX_EVENT_ID} characters: keep references in arguments, answers"
    " and steps instead of documents, or let the client take rounds, whose requestState travels in the body"
)


class MultiTurnStreams(Dialect):
    """The dialect `sep-1858`."""

    name = "sep-1858"

    def answer(self, context: DialectContext, request: Request) -> AnyResult:
        """Answer a request; the questions of a call are written as events. StateTooLarge if the last id is too long."""
        result = context.answer_current(request)
        if not is_unfinished(result, request):
            return result  # finished, or an error: nothing to translate
        id_prefix = base64url(os.urandom(NONCE_BYTES))
        asked: dict[str, TurnQuestion] = {}  # by the ids of their requests
        requests: list[str] = []  # as events
        for number, (key, question) in enumerate(result.result["inputRequests"].items(), start=1):
            id_ = f"{id_prefix}-{number}"
            asked[id_] = TurnQuestion(key, question["method"])
            requests.append(stream_event({"jsonrpc": "2.0", "id": id_, **question}, id_=id_))
        turn = Turn(result.result["requestState"], asked, turn_state.call_of(request))
        last_event_id = turn_state.seal_turn(context, self.name, request, turn)
        if len(last_event_id) > MAX_EVENT_ID:
            raise StateTooLarge(TOO_LARGE)
        # "When a server needs to send one or more requests … it should first send a `buffer_input` SSE event."
        # "The server then sends its requests … followed by an `input_required` SSE event, and disconnects."
        stream = [
            *map(stream_event, result.notifications),
            stream_event(name="buffer_input", id_=f"{id_prefix}-0"),
            *requests,
            stream_event(name="input_required", id_=last_event_id),
        ]
        return result._replace(body=ResponseBody("".join(stream), is_stream=True))

    def read_token(self, http: HttpRequest, body: JSONValue) -> str | None:
        """Return the event id that comes with an array of responses; InvalidRequest if there is none."""
        if not isinstance(body, list) or not all(map(is_response, body)):
            return None
        event_id = http.headers.get(HEADER)
        if body and not event_id:
            raise InvalidRequest(
                message="An array of responses needs the header Last-Event-ID: the id of the event input_required"
            )
        return event_id

    def continue_call(self, context: DialectContext, http: HttpRequest, body: JSONValue, token: str) -> Continuation:
        """Return the call that an array of responses continues.

        Raises:
            InvalidRequest: a question has two answers.
            InvalidRequestState: the event id is invalid.
        """
        principal = identity.admit(http, context.settings, context.now()).principal
        turn = turn_state.open_turn(context, self.name, token, principal, http.address)
        answers: InputResponses = {}
        for response in body:
            question = turn.asked.get(str(response["id"]))
            if question is None:  # "SHOULD ignore any unexpected information"
                continue
            if question.key in answers:
                raise InvalidRequest(message="Two responses have the same id")
            answers[question.key] = turn_state.response_result(response, question)
        return turn_state.repeat_call(http, turn, answers)


DIALECT = MultiTurnStreams()
