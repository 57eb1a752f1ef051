"""What came of a request of 2026-07-28, which was made for a client of 2025."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from mcp_functions import observability
from mcp_functions.protocol.errors import InsufficientScope, InternalError
from mcp_functions.protocol.messages import value_at

if TYPE_CHECKING:
    from mcp_functions.protocol.event_types import Response
    from mcp_functions.protocol.wire_types import Error, InputRequests, JSONRPCMessage, ResultObject


class RoundOutcome(NamedTuple):
    """The outcome of one request: a result or an error."""

    result: ResultObject  # {} if there is an error
    error: Error | None = None
    notifications: tuple[JSONRPCMessage, ...] = ()  # sent before the result
    access_denied: Response | None = None  # the HTTP response, if its status is 401 or 403

    @property
    def is_final(self) -> bool:
        """Whether the call has ended; otherwise it needs another round."""
        return self.result.get("resultType") != "input_required"

    @property
    def questions(self) -> InputRequests:
        """The questions that the next round needs answers to, by key."""
        return {} if self.is_final else self.result.get("inputRequests", {})

    @property
    def needs_time(self) -> bool:
        """Whether the call needs another round only for lack of time, and asks nothing."""
        return not self.is_final and not self.questions

    @property
    def state(self) -> str | None:
        """The `requestState` with which the next round continues."""
        return self.result.get("requestState")

    def note(self) -> None:
        """Note for the log how the request ended."""
        notes = observability.current()
        if self.questions:
            notes.conclude("input_required")
        elif self.needs_time:
            notes.conclude("shed")  # the log's name for a round that ended for lack of time
        elif self.error:
            # With `retryable` the function did not fail: it only refused a caller, who may try again.
            is_retryable = value_at(self.error, "data", "retryable") is True
            has_failed = self.error.get("code") == InternalError.code and not is_retryable
            notes.conclude("failed" if has_failed else "refused", "function")
            notes.code = self.error.get("code")
        else:
            notes.conclude("complete")
            notes.tool_error = self.result.get("isError") is True


def access_denied(response: Response) -> RoundOutcome:
    """Return the outcome for a problem with the access token, which this HTTP response tells the client.

    An event of a later stream has no HTTP status, so there is also a JSON-RPC error.
    """
    error: Error = {"code": InsufficientScope.code, "message": InsufficientScope.default_message}
    return RoundOutcome({}, error, access_denied=response)


def read_response(response: Response) -> RoundOutcome:
    """Read the HTTP response of another function: one JSON message, or an event stream."""
    if response["statusCode"] in (401, 403):
        return access_denied(response)
    texts = [response["body"]]
    if response["body"].startswith("event:"):
        texts = [line.removeprefix("data: ") for line in texts[0].split("\n") if line.startswith("data: ")]
    try:
        *notifications, last = map(json.loads, texts)
    except ValueError:  # the body is not JSON, or a stream without a message
        notifications, last = [], None
    if not isinstance(last, dict) or not (last.get("result") or last.get("error")):
        return RoundOutcome({}, InternalError().to_json())
    return RoundOutcome(last.get("result") or {}, last.get("error"), tuple(notifications))
