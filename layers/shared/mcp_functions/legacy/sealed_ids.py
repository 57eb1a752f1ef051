"""The ids that clients of 2025 carry for the server, and return unchanged. They hold data that no server stores.

    id         the client sends it in    what it holds
    session    Mcp-Session-Id            `Session`: what the client sent in `initialize`
    event      Last-Event-ID             `StreamPosition`: which messages of a call the client has seen
    question   the id of its response    `PendingQuestion`: a question, and the call that asks it

An id is sealed: encrypted and authenticated (envelope.md, section 14). An id of an event or of a question is valid only
for the caller and the session that received it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from mcp_functions.legacy.errors import SessionNotFound, UnknownQuestion
from mcp_functions.legacy.runner import Call
from mcp_functions.protocol.errors import InvalidRequestState
from mcp_functions.protocol.json_writer import dumps

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.dispatch.seal_factory import SealFactory
    from mcp_functions.legacy.exchange import Exchange
    from mcp_functions.protocol.wire_types import RequestId
    from mcp_functions.seal.envelope import Seal
    from mcp_functions.settings import Settings


class CallStream(NamedTuple):
    """Identifies one waiting call, and so the event streams that bring its messages."""

    session: str  # the session's id
    request: RequestId  # the id of the client's request
    nonce: str  # distinguishes this call from an earlier one with the same id
    principal: str | None  # digest of the caller
    ends: int  # until when an answer counts, in unix seconds


class StreamPosition(NamedTuple):
    """The position of an event in a stream. An event id holds it, with these names."""

    stream: CallStream  # the stream that has the event
    step: int  # the number of the last delivery that the client has received; 0 for none
    polls: int = 0  # how often in a row the client has returned too early, when no message was there
    last: bool = False  # True if no event follows


class PendingQuestion(NamedTuple):
    """One question to a client, with all the data that the call needs to continue. A question's id holds it."""

    stream: CallStream  # the streams of the call
    step: int  # the number of the delivery that ends with this question, from 1
    key: str  # the key of the question in its round
    method: str  # the method of the question
    call: Call  # the call that asks
    answers: Mapping[str, Any]  # the answers to earlier questions of the round, by key
    rest: Mapping[str, Any]  # the round's remaining questions, by key


# Labels: an id of one kind does not open as another.
SESSION = b"ks1/session"
EVENT = b"ks1/event"
QUESTION = b"ks1/question"
FETCH_SECONDS = 300  # how long a client can fetch the outcome after its question has expired
MAX_SESSION = 4096  # characters; a session's id and an event's id travel in headers
MAX_EVENT = 4096
MAX_QUESTION = 1024 * 1024  # characters of a question's id, which travels in a body


class IdSeal:
    """Seals JSON objects of one kind into ids, and opens them."""

    def __init__(self, seal: Seal, label: bytes) -> None:
        """Use a seal for one kind of id. An author's codec ignores labels, so the label is also sealed inside."""
        self._seal = seal
        self._prefix = label + b"\0"

    def seal(self, claims: Mapping[str, Any]) -> str:
        """Return an id that holds the claims.

        Raises:
            StateTooLarge: the id would be too long for its place in the message.
            TemporarilyUnavailable, Misconfigured: no key is available.
        """
        # A text may hold half of a surrogate pair, such as "\ud83d" alone. UTF-8 refuses it without "surrogatepass".
        document = dumps(claims).encode("utf-8", "surrogatepass")
        return self._seal.seal(self._prefix + document)

    def open(self, token: str, caller_id: str) -> dict[str, Any]:
        """Return the claims of an id.

        Args:
            token: the id.
            caller_id: the name under which the caller's invalid ids are counted, because each may cost a call of KMS.

        Raises:
            InvalidRequestState: this seal did not make the id.
            TemporarilyUnavailable, Misconfigured: no key is available.
        """
        plaintext = self._seal.unseal(token, caller=caller_id)
        if not plaintext.startswith(self._prefix):
            raise InvalidRequestState(reason="label")
        document = plaintext.removeprefix(self._prefix).decode("utf-8", "surrogatepass")
        claims: dict[str, Any] = json.loads(document)
        return claims


class IdSeals(NamedTuple):
    """The seals of one deployment."""

    sessions: IdSeal
    events: IdSeal
    questions: IdSeal


def make_seals(seal_factory: SealFactory, settings: Settings) -> IdSeals:
    """Return the seals; no key is fetched yet."""
    kept_seconds = settings.question_seconds + FETCH_SECONDS
    # A question's id comes back in a request body, which must have room for the answer too.
    max_question = max(1, min(MAX_QUESTION, settings.max_body_bytes // 2))
    sessions = seal_factory.seal(SESSION, max_age=settings.session_seconds, max_chars=MAX_SESSION)
    events = seal_factory.seal(EVENT, max_age=kept_seconds, max_chars=MAX_EVENT)
    questions = seal_factory.seal(QUESTION, max_age=kept_seconds, max_chars=max_question)
    return IdSeals(IdSeal(sessions, SESSION), IdSeal(events, EVENT), IdSeal(questions, QUESTION))


def open_event_id(token: str, seal: IdSeal, exchange: Exchange) -> StreamPosition:
    """Return the position that an event id holds; SessionNotFound if this client did not receive the event."""
    try:
        claims = _open_for_client(token, seal, exchange)
    except InvalidRequestState as error:
        raise SessionNotFound(reason=f"event_{error.reason}") from None
    return StreamPosition(**claims)


def open_question_id(token: object, seal: IdSeal, exchange: Exchange) -> PendingQuestion:
    """Return the question that a JSON-RPC id holds; UnknownQuestion if this server did not ask this client."""
    try:
        claims = _open_for_client(token, seal, exchange)
    except InvalidRequestState as error:
        raise UnknownQuestion(reason=f"question_{error.reason}") from None
    claims["call"] = Call(*claims["call"])  # JSON has a list
    return PendingQuestion(**claims)


def _open_for_client(token: object, seal: IdSeal, exchange: Exchange) -> dict[str, Any]:
    """Return the claims of an id of a waiting call.

    Raises:
        InvalidRequestState: the id is invalid, or another caller or session received it.
    """
    if not isinstance(token, str):
        raise InvalidRequestState(reason="not_a_token")
    claims = seal.open(token, exchange.caller_id)
    stream = CallStream(*claims["stream"])  # JSON has a list
    session = exchange.session
    if session is None or stream.session != session.id or stream.principal != exchange.principal:
        raise InvalidRequestState(reason="session")
    return {**claims, "stream": stream}
