"""What a client carries for a call that waits: the ids of its events, and of the question that it is asked.

Both are echoed by every client anyway, so they hold what no server keeps. Both are bound to who was asked, to the
session, and to a time; an id of an event is a header, so it only says where in which stream it stands.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, NamedTuple

from mcp_functions.legacy.running import Call
from mcp_functions.protocol.errors import InvalidRequestState
from mcp_functions.protocol.json_writer import base64url, dumps

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_functions.legacy.running import Exchange
    from mcp_functions.legacy.sealing import Sealer
    from mcp_functions.protocol.wire_types import RequestId

_NONCE_BYTES = 12


class Stream(NamedTuple):
    """One call that waits.

    Attributes:
        session: its id.
        request: the id of the client's request.
        nonce: tells it from an earlier call of that id.
        principal: digest of who called.
        ends: unix seconds until which an answer counts.

    """

    session: str
    request: RequestId
    nonce: str
    principal: str | None
    ends: int

    @property
    def item(self) -> str:
        """The name of what the mailbox keeps for it; nobody outside can guess it, and a cancellation can."""
        return item_of(self.session, self.request)

    def belongs_to(self, exchange: Exchange) -> bool:
        """Whether this client's session and caller are those that it was begun by."""
        return bool(exchange.session) and (self.session, self.principal) == (
            exchange.session and exchange.session.id,
            exchange.principal,
        )


class Place(NamedTuple):
    """Where in a stream an event stands.

    Attributes:
        stream: that it belongs to.
        step: how many times it had stopped for the client before it.
        polls: how often the client has come in vain since.
        last: whether nothing follows.

    """

    stream: Stream
    step: int
    polls: int = 0
    last: bool = False


class Question(NamedTuple):
    """One question that a client was asked, and all that its answer goes on with.

    Attributes:
        stream: that it belongs to.
        step: of the stream.
        key: among the questions of its round.
        method: of the question.
        call: that asks.
        answers: to questions of the same round.
        rest: questions of the same round that are still to be asked, by key.

    """

    stream: Stream
    step: int
    key: str
    method: str
    call: Call
    answers: Mapping[str, Any]
    rest: Mapping[str, Any]


def begun(exchange: Exchange, request: RequestId, *, ends: int, rand: Callable[[int], bytes]) -> Stream:
    """Begin the stream of a call; its client has a session."""
    session = exchange.session.id if exchange.session else ""
    return Stream(session, request, nonce(rand), exchange.principal, ends)


def nonce(rand: Callable[[int], bytes]) -> str:
    """Make a name that nothing else has."""
    return base64url(rand(_NONCE_BYTES))


def item_of(session: str, request: RequestId) -> str:
    """Name the item of one request in one session."""
    text = f"ks1/mailbox\0{session}\0{dumps(request)}"
    return base64url(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:24])


def place_id(place: Place, seal: Sealer) -> str:
    """Write an event's id.

    Raises:
        StateTooLarge: the client's own id is too long to be carried so.
        TemporarilyUnavailable, Misconfigured: there is no key.

    """
    return seal.seal({**place._asdict(), "stream": place.stream})


def place_of(token: str, seal: Sealer, caller: str) -> Place:
    """Read an event's id.

    Raises:
        InvalidRequestState: it is none.
        TemporarilyUnavailable, Misconfigured: nobody can tell now.

    """
    claims = seal.open(token, caller)
    return Place(Stream(*claims.pop("stream")), **claims)


def question_id(question: Question, seal: Sealer) -> str:
    """Write a question's id, as above."""
    return seal.seal({**question._asdict(), "stream": question.stream, "call": question.call})


def question_of(token: object, seal: Sealer, caller: str) -> Question:
    """Read a question's id, as above."""
    if not isinstance(token, str):
        reason = "not_a_token"
        raise InvalidRequestState(reason)
    claims = seal.open(token, caller)
    return Question(Stream(*claims.pop("stream")), call=Call(*claims.pop("call")), **claims)
