"""The sealed ids that a client returns for a waiting call: event ids, and the JSON-RPC id of a question.

Every client returns both unchanged, so they hold what no server stores. Both are bound to the caller, the session and
an expiry time. An event id travels in a header, so it holds only a position.
"""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING, Any, NamedTuple

from mcp_functions.legacy.errors import SessionNotFound, UnknownQuestion
from mcp_functions.legacy.runner import Call
from mcp_functions.protocol.errors import InvalidRequestState
from mcp_functions.protocol.json_writer import base64url, dumps

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.legacy.exchange import Exchange
    from mcp_functions.legacy.token_seals import TokenSeal
    from mcp_functions.protocol.errors import InvalidRequest
    from mcp_functions.protocol.wire_types import RequestId

_NONCE_BYTES = 12
_ITEM_BYTES = 24  # of the digest that names the mailbox's item


class CallStream(NamedTuple):
    """The event streams of one waiting call."""

    session: str  # the session's id
    request: RequestId  # the id of the client's request
    nonce: str  # distinguishes this call from an earlier one with the same id
    principal: str | None  # digest of the caller
    ends: int  # unix seconds until which an answer counts

    @property
    def item_name(self) -> str:
        """The name of the mailbox's item; others cannot guess it, and a cancellation can compute it."""
        return item_name(self.session, self.request)


class StreamPosition(NamedTuple):
    """The position of an event in a stream."""

    stream: CallStream  # of the event
    step: int  # how many times the call had stopped for the client before this event
    polls: int = 0  # how often the client has asked since, without news
    last: bool = False  # whether no event follows


class PendingQuestion(NamedTuple):
    """One question to a client, with all the data that the call needs to continue after the answer."""

    stream: CallStream  # of the call
    step: int  # of the stream
    key: str  # of the question in its round
    method: str  # of the question
    call: Call  # the call that asks
    answers: Mapping[str, Any]  # to earlier questions of the round
    rest: Mapping[str, Any]  # the round's remaining questions, by key


def new_stream(exchange: Exchange, request: RequestId, *, ends: int) -> CallStream:
    """Return the stream of a call whose client has a session."""
    session = exchange.session.id if exchange.session else ""
    return CallStream(session, request, new_nonce(), exchange.principal, ends)


def new_nonce() -> str:
    """Return a random name."""
    return base64url(os.urandom(_NONCE_BYTES))


def item_name(session: str, request: RequestId) -> str:
    """Return the name of the mailbox's item for one request of one session."""
    text = f"ks1/mailbox\0{session}\0{dumps(request)}"
    return base64url(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:_ITEM_BYTES])


def seal_event_id(position: StreamPosition, seal: TokenSeal) -> str:
    """Return the event id of a position; StateTooLarge if the client's request id is too long for a header."""
    return seal.seal({**position._asdict(), "stream": position.stream})


def open_event_id(token: str, seal: TokenSeal, exchange: Exchange) -> StreamPosition:
    """Return the position that an event id holds; SessionNotFound if this client did not receive the event."""
    stream, claims = _open(token, seal, exchange, "event", SessionNotFound)
    return StreamPosition(stream, **claims)


def seal_question_id(question: PendingQuestion, seal: TokenSeal) -> str:
    """Return the JSON-RPC id of a question; StateTooLarge if the call and its answers do not fit into it."""
    return seal.seal({**question._asdict(), "stream": question.stream, "call": question.call})


def open_question_id(token: object, seal: TokenSeal, exchange: Exchange) -> PendingQuestion:
    """Return the question that a JSON-RPC id holds; UnknownQuestion if this server did not ask this client."""
    stream, claims = _open(token, seal, exchange, "question", UnknownQuestion)
    return PendingQuestion(stream, call=Call(*claims.pop("call")), **claims)


def _open(
    token: object, seal: TokenSeal, exchange: Exchange, kind: str, refusal: type[InvalidRequest]
) -> tuple[CallStream, dict[str, Any]]:
    """Return the stream and the other claims of an id; refuse an id that is invalid or another client's."""
    if not isinstance(token, str):
        raise refusal(reason=f"{kind}_not_a_token")
    try:
        claims = seal.open(token, exchange.caller_id)
    except InvalidRequestState as error:
        raise refusal(reason=f"{kind}_{error.reason}") from None
    stream = CallStream(*claims.pop("stream"))
    session = exchange.session
    if session is None or (stream.session, stream.principal) != (session.id, exchange.principal):
        raise refusal(reason=f"{kind}_session")
    return stream, claims
