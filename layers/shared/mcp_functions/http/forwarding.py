"""Forwards an event to another Lambda function, and returns that function's HTTP response.

The endpoint of a deployment receives every request, and each handler runs in a function of its own. A call may have
effects, so nothing here repeats one. If a function gives no response, the client gets one of these errors:

    the call did not run, and may be repeated       Busy, TemporarilyUnavailable
    the Invoke API refused the call                 ContentTooLarge, Misconfigured
    the function may have acted                     OutcomeUnknown
    its response is too large, or is no response    ResultTooLarge, InternalError
"""

from __future__ import annotations

import json
import time
from io import BytesIO
from threading import Thread
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from mcp_functions import aws
from mcp_functions.aws.errors import read_failure
from mcp_functions.http.responses import MAX_MEGABYTES
from mcp_functions.protocol import errors
from mcp_functions.protocol.json_writer import chunks, dumps, dumps_utf8
from mcp_functions.protocol.messages import ForwardedResponse
from mcp_functions.seal.resets import PerProcess
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_functions.protocol.errors import McpError

# Codes of errors of Lambda's Invoke API. After these, the call did not run, so the client may send it again.
THROTTLED = "TooManyRequestsException"
UNAVAILABLE = {
    "ServiceException", "EC2ThrottledException", "ResourceNotReadyException", "SnapStartNotReadyException",
    "ConnectTimeoutError", "EndpointConnectionError",
}  # fmt: skip
# If the connection broke after the request was sent, the call may have run. The names of these errors, such as
# ReadTimeoutError, contain one of these words.
BROKEN_CONNECTION_WORDS = ("Read", "Streaming", "ConnectionClosed")

# What Lambda reports as `errorType` in place of a response, if it ended the function or the function ended itself.
TIMED_OUT = "Sandbox.Timedout"
TOO_LARGE = "Function.ResponseSizeTooLarge"
ENDED = {"Runtime.ExitError", "Runtime.OutOfMemory"}
ENDED_EARLY = "The function ended before it answered; whether it acted is unknown"  # the message for the client

# Seconds after which an idle connection is replaced. Lambda freezes an environment between two requests, and a frozen
# environment does not learn that the other side closed the connection.
IDLE_SECONDS = 30.0
LIMITS = aws.CallLimits(connect_seconds=1.0, read_seconds=29.0, attempts=1)  # API Gateway stops waiting after 30 s
RESERVED_SECONDS = 0.25  # the wait ends this time before the deadline, so that the client still gets the error
MIN_WAIT_SECONDS = 1.0  # the shortest wait; the deadline is an estimate, and the client may wait a little longer

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
        self._now = now
        self._client = PerProcess(make)
        self._used_at = now()

    def __call__(self) -> ClosableClient:
        """Return the client."""
        client = self._client()
        idle_seconds = self._now() - self._used_at
        if idle_seconds > IDLE_SECONDS:
            client.close()
        self._used_at = self._now()
        return client


class _Invoked(NamedTuple):
    """What the Invoke API returned for a call."""

    payload: bytes  # the function's response as JSON, or Lambda's report of an error
    is_error: bool


def forward(
    client: Callable[[], LambdaClient], function: str, event: Mapping[str, Any], *, seconds: float
) -> ForwardedResponse:
    """Invoke a function with an event, and return its HTTP response.

    Args:
        client: returns the client of the Invoke API.
        function: the name of the Lambda function.
        event: the event of the request.
        seconds: the time until the gateway stops waiting.

    Raises:
        McpError: the function gave no response, see the table above.
    """
    payload = _write_event(event)

    def invoke() -> _Invoked:
        try:
            invoked = client().invoke(FunctionName=function, Payload=payload)
            return _Invoked(invoked["Payload"].read(), is_error="FunctionError" in invoked)
        # The error is hidden, because its text may quote the event.
        except Exception as error:  # noqa: BLE001 - botocore makes its exceptions at run time
            raise _invoke_error(error) from None

    invoked = call_with_timeout(seconds - RESERVED_SECONDS, invoke)
    if invoked.is_error:
        raise _function_error(invoked.payload)
    return ForwardedResponse(_read_response(invoked.payload))


def call_with_timeout(seconds: float, call: Callable[[], T]) -> T:
    """Call a function in a thread and wait for its result; after the timeout the thread runs on, unobserved.

    Raises:
        OutcomeUnknown: the call did not end in time.
        Exception: the exception that the call raised.
    """
    outcomes: list[T | Exception] = []  # the thread puts one outcome into it

    def run() -> None:
        try:
            outcomes.append(call())
        except Exception as error:  # noqa: BLE001 - raised again in the waiting thread
            outcomes.append(error)

    thread = Thread(target=run, daemon=True)
    thread.start()
    thread.join(max(MIN_WAIT_SECONDS, seconds))
    if not outcomes:
        raise errors.OutcomeUnknown(reason="invoke_deadline")
    if isinstance(outcomes[0], Exception):
        raise outcomes[0]
    return outcomes[0]


def _write_event(event: Mapping[str, Any]) -> bytes:
    """Write an event as JSON: first all other members, then the body in parts.

    A body may have megabytes, and one emoji makes Python store a whole text in four bytes per character.
    """
    others = {name: value for name, value in event.items() if name != "body"}
    payload = BytesIO()
    # A header may hold half of a surrogate pair, which UTF-8 lacks; "backslashreplace" writes it as an escape of JSON.
    payload.write(dumps_utf8(others, "backslashreplace").removesuffix(b"}"))
    payload.write(b',"body":"')
    for part in chunks(event["body"]):
        payload.write(dumps(part)[1:-1].encode())  # without the quotation marks around the part
    payload.write(b'"}')
    return payload.getvalue()


def _read_response(payload: bytes) -> dict[str, Any]:
    """Read the HTTP response that a function returned.

    Raises:
        ResultTooLarge: API Gateway would refuse it.
        InternalError: it is no HTTP response.
    """
    if len(payload) > MAX_MEGABYTES * 1024 * 1024:
        raise errors.ResultTooLarge(MAX_MEGABYTES)
    response = _read_object(payload)
    match response:
        case {"statusCode": int(status), "headers": dict(), "body": str()} if status in range(200, 600):
            return response
    raise errors.InternalError(reason="function_error")


def _read_object(payload: bytes) -> dict[str, Any]:
    """Read a JSON object; {} if the payload is something else."""
    try:
        value = json.loads(payload)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _function_error(payload: bytes) -> McpError:
    """Return the error for a function that raised, or that Lambda ended. The function's text stays in its own log."""
    error_type = str(_read_object(payload).get("errorType"))
    if error_type == TIMED_OUT:
        return errors.OutcomeUnknown(reason="function_timed_out")
    if error_type in ENDED:
        return errors.OutcomeUnknown(ENDED_EARLY, reason="function_ended")
    if error_type == TOO_LARGE:
        return errors.ResultTooLarge(MAX_MEGABYTES)
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
    if any(part in code for part in BROKEN_CONNECTION_WORDS):
        return errors.OutcomeUnknown(reason=reason)
    return errors.Misconfigured(reason)  # every other error, such as a missing permission, needs the operator
