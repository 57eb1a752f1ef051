"""What every dialect has: its name, what it reads and writes, how a client asks for it, and an event stream's words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

from mcp_functions.protocol.constants import CALLS, META_EARLIER
from mcp_functions.protocol.json_writer import dumps
from mcp_functions.protocol.messages import Result

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_functions.http.events import HttpRequest
    from mcp_functions.http.gateway import Continuation
    from mcp_functions.protocol.messages import AnyResult, Request
    from mcp_functions.seal.request_state import RequestStates
    from mcp_functions.settings import Settings

Then: TypeAlias = "Callable[[Request], AnyResult]"


class Place(NamedTuple):
    """The function that speaks.

    Attributes:
        folder: it lives in, which stands in clear before whatever it seals.
        settings: of the deployment.
        audience: who may read what it seals.
        states: makes what seals, for a lifetime in seconds and a label of its own.
        answer_within: seconds, the longest that any of its handlers waits for an answer.
        now: the clock, unix seconds.
        rand: `n` random bytes.

    """

    folder: str
    settings: Settings
    audience: str
    states: Callable[[int, bytes], RequestStates]
    answer_within: int
    now: Callable[[], float]
    rand: Callable[[int], bytes]


class Answering(Protocol):
    """Answers a request of a client that declares the dialect; whatever else comes, `then` answers."""

    def __call__(self, place: Place, request: Request, *, then: Then) -> AnyResult:
        """Answer it."""


def _no_turn(_place: Place, _http: HttpRequest, _value: object) -> Continuation | None:
    return None


def _no_token(_http: HttpRequest, _value: object) -> str | None:
    return None


def _no_task(_request: Request) -> str | None:
    return None


@dataclass(frozen=True)
class Dialect:
    """One proposal.

    Attributes:
        answer: a request that declares it.
        token: reads out of what is no request at all the sealed text that it brings back; None if it is not this one's.
        turn: opens that text, and reads the request that it continues.
        task: reads the id of the task that a request of this dialect is about; None if it is about none.

    """

    answer: Answering
    token: Callable[[HttpRequest, Any], str | None] = _no_token
    turn: Callable[[Place, HttpRequest, Any], Continuation | None] = _no_turn
    task: Callable[[Request], str | None] = _no_task


def declared(request: Request, name: str) -> Mapping[str, Any] | None:
    """Read what a client says about a dialect, on this very request; None if it did not ask for it.

    A client of 2025 said it once, when it began its session, and is answered as its revision says.
    """
    if META_EARLIER in request.params["_meta"]:
        return None
    experimental = request.capabilities.get("experimental")
    wish = experimental.get(name) if isinstance(experimental, dict) else None
    return wish if isinstance(wish, dict) else None


def asks(request: Request, said: AnyResult) -> bool:
    """Tell whether a call was answered with questions, or has to be sent again to go on."""
    if not isinstance(said, Result) or request.message["method"] not in CALLS:
        return False
    return said.result.get("resultType") == "input_required"


def event(message: Mapping[str, Any] | None = None, *, name: str = "message", id_: str | None = None) -> str:
    """Write one event of a stream: with a message as its data, or data-less."""
    named = "" if id_ is None else f"id: {id_}\n"
    data = "" if message is None else f"data: {dumps(message)}\n"
    return f"event: {name}\n{named}{data}\n"
