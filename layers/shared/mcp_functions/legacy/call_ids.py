"""The ids with which a client returns to a call that waits for it.

    id         the client sends it in    what it holds
    event      Last-Event-ID             `StreamPosition`: which messages of the call the client has received
    question   the id of its answer      `PendingQuestion`: a question, and all that the call needs to continue

The messages of such a call come in several event streams. Each stream ends with a question or with the response of the
call. The first stream is step 1 of the call, the second is step 2, and so on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from mcp_functions.legacy.errors import SessionNotFound, UnknownQuestion
from mcp_functions.legacy.sealed_ids import SealedIds
from mcp_functions.protocol.errors import InvalidRequestState

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.dispatch.seal_factory import SealFactory
    from mcp_functions.protocol.wire_types import Params, RequestId
    from mcp_functions.settings import Settings


class Owner(NamedTuple):
    """The session and the caller that send a request. Only those that received an id can use it."""

    session: str | None  # the `id` of the session; None without one
    principal: str | None  # digest of the caller; None on a server without sign-in
    caller_id: str  # the name under which the caller's invalid ids are counted


class Call(NamedTuple):
    """One request of a client, between its rounds. Sealed ids and items hold it as an array, in this order."""

    id: RequestId  # the id of the client's request
    method: str  # the method of the request
    params: Params  # the params of the request, with their meaning in 2026-07-28
    state: str | None = None  # `requestState` for the next round


class CallStream(NamedTuple):
    """Identifies one waiting call."""

    session: str  # the `id` of the session
    request: RequestId  # the id of the client's request
    nonce: str  # distinguishes this call from an earlier one with the same request id
    principal: str | None  # digest of the caller
    ends: int  # until when an answer counts, in unix seconds


class StreamPosition(NamedTuple):
    """How far a client has come in a call. The names of the fields are the keys in an event id."""

    stream: CallStream  # the call
    step: int  # the last step that the client has received; 0 for none
    # how often in a row the client has returned before there was a message; it then waits longer
    polls: int = 0
    last: bool = False  # True if no event follows


class PendingQuestion(NamedTuple):
    """A question that waits for its answer. The names of the fields are the keys in a question's id."""

    stream: CallStream  # the call
    step: int  # the step that ends with this question
    key: str  # the key of the question in its round
    method: str  # the method of the question
    call: Call  # the call that asks
    answers: Mapping[str, Any]  # the answers to earlier questions of the round, by key
    rest: Mapping[str, Any]  # the round's remaining questions, by key


FETCH_SECONDS = 300  # how long a client can fetch the outcome after its question has expired
MAX_EVENT = 4096  # characters: the id of an event travels in a header
MAX_QUESTION = 1024 * 1024  # characters: the id of a question travels in a body


class CallIds:
    """Writes and reads both kinds of ids. The errors of writing are those of `SealedIds`."""

    def __init__(self, seal_factory: SealFactory, settings: Settings) -> None:
        """Make the seals; no key is fetched yet."""
        self.max_age = settings.question_seconds + FETCH_SECONDS
        # The answer comes back in a body with the question's id, so it needs a part of the room.
        max_question = max(1, min(MAX_QUESTION, settings.max_body_bytes // 2))
        self._events = SealedIds(seal_factory, b"ks1/event", max_age=self.max_age, max_chars=MAX_EVENT)
        self._questions = SealedIds(seal_factory, b"ks1/question", max_age=self.max_age, max_chars=max_question)

    def write_event(self, position: StreamPosition) -> str:
        """Return the id of the event after which a client is at this position."""
        return self._events.write(position._asdict())

    def write_question(self, question: PendingQuestion) -> str:
        """Return the JSON-RPC id of a question."""
        return self._questions.write(question._asdict())

    def read_event(self, id_: str, owner: Owner) -> StreamPosition:
        """Return the position that an event id holds; SessionNotFound if this client did not receive the event."""
        try:
            return StreamPosition(**_read_for_owner(self._events, id_, owner))
        except InvalidRequestState as error:
            raise SessionNotFound(reason=f"event_{error.reason}") from None

    def read_question(self, id_: object, owner: Owner) -> PendingQuestion:
        """Return the question that a JSON-RPC id holds; UnknownQuestion if this server did not ask this client."""
        try:
            members = _read_for_owner(self._questions, id_, owner)
        except InvalidRequestState as error:
            raise UnknownQuestion(reason=f"question_{error.reason}") from None
        members["call"] = Call(*members["call"])  # JSON has a list
        return PendingQuestion(**members)


def _read_for_owner(ids: SealedIds, id_: object, owner: Owner) -> dict[str, Any]:
    """Return what an id holds; InvalidRequestState if it is invalid, or another caller or session received it."""
    if not isinstance(id_, str):
        raise InvalidRequestState(reason="not_a_token")
    members = ids.read(id_, owner.caller_id)
    members["stream"] = CallStream(*members["stream"])  # JSON has a list
    if (members["stream"].session, members["stream"].principal) != (owner.session, owner.principal):
        raise InvalidRequestState(reason="session")
    return members
