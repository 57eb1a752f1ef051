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
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_functions.protocol.errors import McpError

# Error codes of Lambda's Invoke API for a call that did not run, so that the client may send it again.
THROTTLED_CODE = "TooManyRequestsException"
UNAVAILABLE_CODES = {
    "ServiceException", "EC2ThrottledException", "ResourceNotReadyException", "SnapStartNotReadyException",
    "ConnectTimeoutError", "EndpointConnectionError",
}  # fmt: skip
# A connection that broke after the request was sent has an error whose name contains one of these words. The function
# may have run, so the client must not repeat the call blindly.
UNKNOWN_OUTCOME_WORDS = ("Read", "Streaming", "ConnectionClosed")
# The `errorType` that Lambda reports for a function that did not end by itself.
TIMED_OUT_TYPE = "Sandbox.Timedout"
RESPONSE_TOO_LARGE_TYPE = "Function.ResponseSizeTooLarge"
PROCESS_ENDED_TYPES = {"Runtime.ExitError", "Runtime.OutOfMemory"}
PROCESS_ENDED_MESSAGE = "The function ended before it answered; whether it acted is unknown"

# A connection that was idle for longer is replaced. While Lambda freezes an environment, the other side may close the
# connection, and the environment does not notice it.
MAX_IDLE_SECONDS = 30.0
LIMITS = aws.CallLimits(connect_seconds=1.0, read_seconds=29.0, attempts=1)
TIMEOUT_RESPONSE_SECONDS = 0.25  # the time that remains before the deadline to tell the client about a timeout
MIN_CALL_SECONDS = 1.0  # the time limit of a call, even if the deadline is nearer: a small call still succeeds
MAX_RESPONSE_MEGABYTES = 6  # Lambda's limit for the response of a function

T = TypeVar("T")


class LambdaClient(Protocol):
    """The method of boto3's Lambda client that forwarding uses."""

    def invoke(self, *, FunctionName: str, Payload: bytes) -> Mapping[str, Any]:  # noqa: N803 - boto3's names
        """Invoke a function and return its response."""


class InvokeOutcome(NamedTuple):
    """What Lambda's Invoke API returned for a call."""

    payload: bytes
    has_failed: bool  # True if the function raised, or if Lambda ended it; the payload then describes the error


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
        if idle > MAX_IDLE_SECONDS:
            client.close()
        self._used = self._now()
        return client


def forward(
    client: Callable[[], LambdaClient], function: str, event: Mapping[str, Any], *, seconds: float
) -> ForwardedResponse:
    """Invoke a function with an event, and return its HTTP response in at most `seconds`.

    Raises:
        McpError: the function failed, or did not answer in time, or could not be invoked.
    """
    payload = _payload(event)

    def invoke() -> InvokeOutcome:
        try:
            invoked = client().invoke(FunctionName=function, Payload=payload)
            return InvokeOutcome(invoked["Payload"].read(), has_failed="FunctionError" in invoked)
        except Exception as error:  # noqa: BLE001 - botocore makes its exceptions at run time
            raise _invoke_error(error) from None  # the error of AWS may name the function and the account

    outcome = call_with_timeout(seconds - TIMEOUT_RESPONSE_SECONDS, invoke)
    if outcome.has_failed:
        raise _function_error(outcome.payload)
    return ForwardedResponse(_response(outcome.payload))


def call_with_timeout(seconds: float, call: Callable[[], T]) -> T:
    """Call a function in a thread and wait for its result. After a timeout the thread continues; its result is lost.

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
    thread.join(max(MIN_CALL_SECONDS, seconds))
    if not outcomes:
        raise errors.OutcomeUnknown(reason="invoke_deadline")
    if isinstance(outcomes[0], Exception):
        raise outcomes[0]
    return outcomes[0]


def _payload(event: Mapping[str, Any]) -> bytes:
    """Write an event as JSON, and its body in parts.

    If a text has one emoji, Python needs four bytes for each of its characters. So no copy of the whole body is made. A
    header may hold half of a surrogate pair, which is written as an escape.
    """
    rest = {name: value for name, value in event.items() if name != "body"}
    payload = BytesIO()
    payload.write(dumps_utf8(rest, "backslashreplace").removesuffix(b"}") + b',"body":"')
    for part in chunks(event["body"]):
        payload.write(dumps(part)[1:-1].encode())
    payload.write(b'"}')
    return payload.getvalue()


def _response(payload: bytes) -> dict[str, Any]:
    if len(payload) > MAX_RESPONSE_MEGABYTES * 1024 * 1024:
        raise errors.ResultTooLarge(MAX_RESPONSE_MEGABYTES)
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
    error_type = str(_json(payload).get("errorType"))
    if error_type == TIMED_OUT_TYPE:
        return errors.OutcomeUnknown(reason="function_timed_out")
    if error_type in PROCESS_ENDED_TYPES:
        return errors.OutcomeUnknown(PROCESS_ENDED_MESSAGE, reason="function_ended")
    if error_type == RESPONSE_TOO_LARGE_TYPE:
        return errors.ResultTooLarge(MAX_RESPONSE_MEGABYTES)
    return errors.InternalError(reason="function_error")


def _invoke_error(error: Exception) -> McpError:
    """Return the error for a call that the Invoke API refused, or whose connection failed."""
    code = read_failure(error).code
    reason = f"invoke_{code}"
    if code == THROTTLED_CODE:
        return errors.Busy(reason)
    if code in UNAVAILABLE_CODES:
        return errors.TemporarilyUnavailable(reason)
    if code == "RequestTooLargeException":
        return errors.ContentTooLarge(reason=reason)
    if any(word in code for word in UNKNOWN_OUTCOME_WORDS):
        return errors.OutcomeUnknown(reason=reason)
    return errors.Misconfigured(reason)
