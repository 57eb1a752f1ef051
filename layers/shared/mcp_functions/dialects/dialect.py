"""The interface of a dialect, and the helpers that dialects share."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mcp_functions.protocol.constants import CALL_METHODS, META_CLIENT_REVISION
from mcp_functions.protocol.json_writer import dumps
from mcp_functions.protocol.messages import Result, value_at

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeGuard

    from mcp_functions.http.events import HttpRequest
    from mcp_functions.http.exchange import Continuation
    from mcp_functions.protocol.messages import AnyResult, Request
    from mcp_functions.protocol.wire_types import JSONObject, JSONValue
    from mcp_functions.seal.request_state import RequestStates
    from mcp_functions.settings import Settings


class DialectContext(NamedTuple):
    """The function that answers in a dialect, and what its dialects use."""

    answer_current: Callable[[Request], AnyResult]  # answers a request of the released revision
    folder: str  # the function's folder, with which each of its tokens begins
    settings: Settings
    audience: str  # the function and its stage; tokens of another audience do not open
    states: Callable[[int, bytes], RequestStates]  # (seconds, label) -> what seals and opens tokens
    answer_within: int  # the longest time that a handler waits for an answer, in seconds
    now: Callable[[], float]  # unix seconds


class Dialect:
    """One proposal. A dialect overrides `answer`, and of the other methods those that its messages need."""

    name: str  # the name of the experimental capability with which clients ask for it

    def answer(self, context: DialectContext, request: Request) -> AnyResult:
        """Answer a request of a client that asks for the dialect."""
        raise NotImplementedError

    def read_token(self, http: HttpRequest, body: JSONValue) -> str | None:  # noqa: ARG002
        """Return the token in a body that is not a request; None if the body has no token of this dialect."""
        return None

    def continue_call(self, context: DialectContext, http: HttpRequest, body: JSONValue, token: str) -> Continuation:
        """Open that token, and return the call that continues with the answers in the body."""
        raise NotImplementedError

    def read_task_id(self, request: Request) -> str | None:  # noqa: ARG002
        """Return the id of the task that a request of this dialect names; None for other requests."""
        return None


def declaration(request: Request, name: str) -> JSONObject | None:
    """Return what a client declares about a dialect in this request; None if it does not ask for the dialect.

    A client of 2025 declares it only once, at the start of its session, and gets no dialect.
    """
    if META_CLIENT_REVISION in request.params["_meta"]:
        return None
    declared = value_at(request.capabilities, "experimental", name)
    return declared if isinstance(declared, dict) else None


def is_unfinished(result: AnyResult, request: Request) -> TypeGuard[Result]:
    """Return whether a result says that a call needs another round, with or without questions."""
    if not isinstance(result, Result) or request.method not in CALL_METHODS:
        return False
    return result.result.get("resultType") == "input_required"


def is_response(body: JSONValue) -> bool:
    """Return whether a JSON value is a JSON-RPC response: a client answers a question with one."""
    if not isinstance(body, dict) or body.get("jsonrpc") != "2.0" or "method" in body:
        return False
    return isinstance(body.get("id"), str | int) and ("result" in body or "error" in body)


def stream_event(message: object = None, *, name: str = "message", id_: str | None = None) -> str:
    """Return one event of a stream; it has no data without a message."""
    id_line = "" if id_ is None else f"id: {id_}\n"
    data = "" if message is None else f"data: {dumps(message)}\n"
    return f"event: {name}\n{id_line}{data}\n"
