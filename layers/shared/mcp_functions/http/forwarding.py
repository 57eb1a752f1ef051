"""Forwards an event to another Lambda function, and returns that function's HTTP response.

The endpoint of a deployment receives every request, and each handler runs in a function of its own. A call may have
effects, so nothing here repeats one. If a function gives no response, the client gets an error that tells whether the
function may have acted.
"""

from __future__ import annotations

import json
import time
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeVar

from mcp_functions import aws
from mcp_functions.aws.errors import read_failure
from mcp_functions.http.responses import MAX_MEGABYTES
from mcp_functions.protocol import errors
from mcp_functions.protocol.json_writer import dumps
from mcp_functions.protocol.messages import ForwardedResponse
from mcp_functions.seal.resets import PerProcess

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_functions.aws.clients import LambdaClient
    from mcp_functions.protocol.errors import McpError
    from mcp_functions.protocol.event_types import Event, Response

RESERVED_SECONDS = 0.25  # the time to send the client an error before the gateway's deadline
MIN_WAIT_SECONDS = 1.0  # even after the deadline: the function may have acted, and can still answer
# The client's error for each error of the Invoke API or of the connection. Every other one, such as a missing
# permission, needs the operator.
ERRORS: dict[str, type[McpError]] = {
    # The call did not run, so the client may repeat it.
    "TooManyRequestsException": errors.Busy,
    "ServiceException": errors.TemporarilyUnavailable,
    "EC2ThrottledException": errors.TemporarilyUnavailable,
    "ResourceNotReadyException": errors.TemporarilyUnavailable,
    "SnapStartNotReadyException": errors.TemporarilyUnavailable,
    "ConnectTimeoutError": errors.TemporarilyUnavailable,
    "EndpointConnectionError": errors.TemporarilyUnavailable,
    "RequestTooLargeException": errors.ContentTooLarge,
    # The connection broke after the request was sent, so the function may have acted.
    "ConnectionClosedError": errors.OutcomeUnknown,
    "IncompleteReadError": errors.OutcomeUnknown,
    "ReadTimeoutError": errors.OutcomeUnknown,
    "ResponseStreamingError": errors.OutcomeUnknown,
}

T = TypeVar("T")


def forward(get_client: Callable[[], Any], function: str, event: Event, *, seconds: float) -> ForwardedResponse:
    """Invoke a Lambda function with an event, and return its HTTP response.

    The gateway stops waiting in `seconds`. The client of the Invoke API is ours or boto3's.

    Raises:
        McpError: the function gave no response, or one that API Gateway would refuse.
    """
    # A header may hold half of a surrogate pair. UTF-8 cannot encode it, and "backslashreplace" writes it as JSON does.
    event_json = dumps(event).encode(errors="backslashreplace")

    def invoke() -> bytes:
        try:
            invoked = get_client().invoke(FunctionName=function, Payload=event_json)
            payload: bytes = invoked["Payload"].read()
        except Exception as error:  # noqa: BLE001 - botocore makes its exceptions at run time
            code = read_failure(error).code
            error_class = ERRORS.get(code, errors.Misconfigured)
            raise error_class(reason=f"invoke_{code}") from None  # the cause may quote the event
        if "FunctionError" in invoked:
            raise _function_error(payload)
        return payload

    payload = call_with_timeout(seconds - RESERVED_SECONDS, invoke)
    return ForwardedResponse(_read_response(payload))


def call_with_timeout(seconds: float, call: Callable[[], T]) -> T:
    """Call a function in a thread, and wait for its result, but at least `MIN_WAIT_SECONDS`.

    Python cannot stop a thread. After the timeout it runs on, and nobody reads its result.

    Raises:
        OutcomeUnknown: the call did not end in time.
        Exception: the exception that the call raised.
    """
    outcomes: list[T | Exception] = []  # empty until the thread ends

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


def _function_error(payload: bytes) -> McpError:
    """Return the error for a function that raised, or that Lambda ended. The function's text stays in its own log."""
    match _read_object(payload).get("errorType"):
        case "Sandbox.Timedout":
            return errors.OutcomeUnknown(reason="function_timed_out")
        case "Runtime.ExitError" | "Runtime.OutOfMemory":
            message = "The function ended before it answered; whether it acted is unknown"
            return errors.OutcomeUnknown("function_ended", message=message)
        case "Function.ResponseSizeTooLarge":
            return errors.ResultTooLarge()
    return errors.InternalError(reason="function_error")  # the function raised


def _read_response(payload: bytes) -> Response:
    """Read the HTTP response that a function returned.

    Raises:
        ResultTooLarge: API Gateway would refuse it.
        InternalError: it is no HTTP response.
    """
    if len(payload) > MAX_MEGABYTES * 1024 * 1024:
        raise errors.ResultTooLarge
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


# The gateway waits for 30 s.
LIMITS = aws.CallLimits(connect_seconds=1.0, read_seconds=29.0, attempts=1)
# Seconds after which an idle connection is replaced. Lambda freezes an environment between two requests, and a frozen
# environment does not learn that the other side closed the connection.
IDLE_SECONDS = 30.0


def lambda_client() -> LambdaClient:
    """Make the client that invokes functions. It has time limits and does not retry: a call may have effects."""
    client: LambdaClient = aws.make_client("lambda", LIMITS)
    return client


class CachedClient:
    """Makes one client at the first call, and closes connections that were idle for too long to be trusted."""

    def __init__(self, make: Callable[[], LambdaClient], now: Callable[[], float] = time.monotonic) -> None:
        """Store the function that makes the client, and a clock in seconds."""
        self._now = now
        self._client = PerProcess(make)
        self._used_at = now()

    def __call__(self) -> LambdaClient:
        """Return the client."""
        client = self._client()
        idle_seconds = self._now() - self._used_at
        if idle_seconds > IDLE_SECONDS:
            client.close()
        self._used_at = self._now()
        return client
