"""Forwards an event to another Lambda function, and returns that function's HTTP response."""

from __future__ import annotations

import json
import time
from io import BytesIO
from threading import Thread
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from mcp_functions import aws
from mcp_functions.aws.errors import read_failure
from mcp_functions.http.lazy_values import lazy_value
from mcp_functions.protocol import errors
from mcp_functions.protocol.json_writer import chunks, dumps, dumps_utf8
from mcp_functions.protocol.messages import ForwardedResponse
from mcp_functions.seal.resets import register_for_reset

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_functions.protocol.errors import McpError

# Codes of Lambda's Invoke API for a call that did not run, so that the client may send it again.
THROTTLED = "TooManyRequestsException"
UNAVAILABLE = {
    "ServiceException", "EC2ThrottledException", "ResourceNotReadyException", "SnapStartNotReadyException",
    "ConnectTimeoutError", "EndpointConnectionError",
}  # fmt: skip
# Parts of error names for a connection that broke after the request was sent: the call may have run.
SILENT = ("Read", "Streaming", "ConnectionClosed")
# Types of errors that Lambda reports for a function whose process it ended, or that ended itself.
TIMED_OUT = "Sandbox.Timedout"
TOO_LARGE = "Function.ResponseSizeTooLarge"
ENDED = {"Runtime.ExitError", "Runtime.OutOfMemory"}
ENDED_EARLY = "The function ended before it answered; whether it acted is unknown"

IDLE_SECONDS = 30.0  # an older idle connection is replaced: a frozen environment does not see that it was closed
LIMITS = aws.CallLimits(connect_seconds=1.0, read_seconds=29.0, attempts=1)
ANSWER_SECONDS = 0.25  # the time before the deadline in which the client can learn about a timeout
LEAST_SECONDS = 1.0  # the time limit of a call whose deadline is over
MEGABYTES = 6  # the largest response of a Lambda function

T = TypeVar("T")


class LambdaClient(Protocol):
    """The method of boto3's Lambda client that forwarding uses."""

    def invoke(self, *, FunctionName: str, Payload: bytes) -> Mapping[str, Any]:  # noqa: N803 - boto3's names
        """Invoke a function and return its response."""


class ClosableClient(LambdaClient, Protocol):
    """A client whose connections can be closed, which it then opens again when it needs them."""

    def close(self) -> None:
        """Close the connections."""


def lambda_client() -> ClosableClient:
    """Make the client that invokes functions. It has time limits and does not retry: a call may have effects."""
    client: ClosableClient = aws.make_client("lambda", LIMITS)
    return client


class CachedClient:
    """Makes one client at the first call, and closes connections that were idle for too long to be trusted."""

    def __init__(self, make: Callable[[], ClosableClient], now: Callable[[], float] = time.monotonic) -> None:
        """Store the function that makes the client, and a clock in seconds."""
        self._make = make
        self._now = now
        self._client = lazy_value(make)
        self._used = now()
        register_for_reset(self)

    def reset(self) -> None:
        """Drop the client: its connections, locks and credentials belong to the process that made them."""
        self._client = lazy_value(self._make)

    def __call__(self) -> ClosableClient:
        """Return the client."""
        client = self._client()
        idle = self._now() - self._used
        if idle > IDLE_SECONDS:
            client.close()
        self._used = self._now()
        return client


def forward(
    client: Callable[[], LambdaClient], function: str, event: Mapping[str, Any], *, seconds: float
) -> ForwardedResponse:
    """Invoke a function with an event, and return its HTTP response in at most `seconds`."""
    payload = _payload(event)

    def invoke() -> tuple[bytes, bool]:
        try:
            invoked = client().invoke(FunctionName=function, Payload=payload)
            return invoked["Payload"].read(), "FunctionError" in invoked
        except Exception as error:  # noqa: BLE001 - botocore makes its exceptions at run time
            raise _invoke_error(error) from None

    response, failed = call_with_timeout(seconds - ANSWER_SECONDS, invoke)
    if failed:
        raise _function_error(response)
    return ForwardedResponse(_response(response))


def call_with_timeout(seconds: float, call: Callable[[], T]) -> T:
    """Call a function in a thread and wait for its result; after the timeout the thread runs on, unobserved.

    Raises:
        OutcomeUnknown: the call did not end in time.
        Exception: the exception that the call raised.
    """
    outcomes: list[T | Exception] = []

    def run() -> None:
        try:
            outcomes.append(call())
        except Exception as error:  # noqa: BLE001 - raised again in the waiting thread
            outcomes.append(error)

    thread = Thread(target=run, daemon=True)
    thread.start()
    thread.join(max(LEAST_SECONDS, seconds))
    if not outcomes:
        raise errors.OutcomeUnknown(reason="invoke_deadline")
    if isinstance(outcomes[0], Exception):
        raise outcomes[0]
    return outcomes[0]


def _payload(event: Mapping[str, Any]) -> bytes:
    """Write an event as JSON, and its body in parts, because one emoji makes a whole text four times as large.

    A header may hold half of a surrogate pair, which is written as an escape.
    """
    rest = {name: value for name, value in event.items() if name != "body"}
    payload = BytesIO()
    payload.write(dumps_utf8(rest, "backslashreplace").removesuffix(b"}") + b',"body":"')
    for part in chunks(event["body"]):
        payload.write(dumps(part)[1:-1].encode())
    payload.write(b'"}')
    return payload.getvalue()


def _response(payload: bytes) -> dict[str, Any]:
    if len(payload) > MEGABYTES * 1024 * 1024:
        raise errors.ResultTooLarge(MEGABYTES)
    response = _json(payload)
    match response:
        case {"statusCode": int(status), "headers": dict(), "body": str()} if status in range(200, 600):
            return response
    raise errors.InternalError(reason="function_error")


def _json(payload: bytes) -> dict[str, Any]:
    """Read a JSON object; {} if the payload is something else."""
    try:
        value = json.loads(payload)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _function_error(payload: bytes) -> McpError:
    """Return the error for a function that raised, or that Lambda ended. The function's text stays in its own log."""
    kind = str(_json(payload).get("errorType"))
    if kind == TIMED_OUT:
        return errors.OutcomeUnknown(reason="function_timed_out")
    if kind in ENDED:
        return errors.OutcomeUnknown(ENDED_EARLY, reason="function_ended")
    if kind == TOO_LARGE:
        return errors.ResultTooLarge(MEGABYTES)
    return errors.InternalError(reason="function_error")


def _invoke_error(error: Exception) -> McpError:
    """Return the error for a call that the Invoke API refused, or that did not come through."""
    code = read_failure(error).code
    reason = f"invoke_{code}"
    if code == THROTTLED:
        return errors.Busy(reason)
    if code in UNAVAILABLE:
        return errors.TemporarilyUnavailable(reason)
    if code == "RequestTooLargeException":
        return errors.ContentTooLarge(reason=reason)
    if any(part in code for part in SILENT):
        return errors.OutcomeUnknown(reason=reason)
    return errors.Misconfigured(reason)
