"""The MCP endpoint: an MCP client knows one URL, and behind it every handler is a Lambda of its own.

It answers `server/discover` and the lists from catalog.json, and hands every call, unchanged, to the function that the
validated body names. It cannot read a state; the function checks everything again. Its own key is for clients of 2025,
whose sessions and questions it seals; no request of 2026-07-28 uses it.
"""

from __future__ import annotations

import json
import os
import time
from io import BytesIO
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeVar

from mcp_functions import aws, observability, settings
from mcp_functions.handlers import catalog
from mcp_functions.http import identity, metadata
from mcp_functions.http.gateway import Endpoint, LambdaFunction, lazy_value
from mcp_functions.protocol import headers
from mcp_functions.protocol.constants import CALLS, TASKS
from mcp_functions.protocol.errors import (
    Busy,
    ContentTooLarge,
    InternalError,
    McpError,
    Misconfigured,
    OutcomeUnknown,
    ResultTooLarge,
    TemporarilyUnavailable,
)
from mcp_functions.protocol.json_writer import chunks, dumps, dumps_utf8
from mcp_functions.protocol.messages import ForwardedResponse
from mcp_functions.seal.forgetting import forgetful

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from os import PathLike

    from mcp_functions.http.events import HttpRequest
    from mcp_functions.http.lambda_types import Response
    from mcp_functions.legacy import Legacy
    from mcp_functions.observability import Logger
    from mcp_functions.protocol.messages import Request, Result
    from mcp_functions.settings import Settings

# What Lambda's Invoke API raises when it cannot take the call now: it was not run, so the client may send it again.
THROTTLED = "TooManyRequestsException"  # so many requests came; the access log counts them
BUSY = {
    "ServiceException", "EC2ThrottledException", "ResourceNotReadyException", "SnapStartNotReadyException",
    "ConnectTimeoutError", "EndpointConnectionError",
}  # fmt: skip
# What it says of a function that Lambda ended, if the client can do something about it.
TIMED_OUT, TOO_LARGE = "Sandbox.Timedout", "Function.ResponseSizeTooLarge"
ENDED = {"Runtime.ExitError", "Runtime.OutOfMemory"}  # the process was killed, or left; Lambda's words for a function
ENDED_EARLY = "The function ended before it answered; whether it acted is unknown"

# A connection that was idle for longer is opened anew: a frozen environment does not hear that it was closed.
IDLE_SECONDS = 30.0
CONNECT_SECONDS, READ_SECONDS = 1.0, 29.0
ANSWER_SECONDS = 0.25  # before the deadline, in which a client that waited in vain hears so
LEAST_SECONDS = 1.0  # for a call, however late it is
MEGABYTES = 6  # that Lambda carries

T = TypeVar("T")


def serve_catalog(
    path: str | PathLike[str],
    *,
    instructions: str | None = None,
    logger: Logger | None = None,
    now: Callable[[], float] = time.time,
) -> LambdaFunction:
    """Make the Lambda entry point of the MCP endpoint.

    Args:
        path: catalog.json, written by `python -m mcp_functions.local catalog`.
        instructions: what a model should know about this server as a whole.
        logger: writes the line of each request, as in `serve`.
        now: the clock, unix seconds.

    """
    aws.prepare(aws.find(os.environ, "lambda"))  # at init, where Lambda gives a full CPU

    def wire(function_name: str) -> Endpoint:
        found = settings.read(os.environ)
        with open(path, encoding="utf-8") as file:  # noqa: PTH123 - pathlib would be a fifth of what a list imports
            offered = json.load(file)
        identity.announce(found)
        door = FrontDoor(offered, found, KeptClient(lambda_client), instructions, now=now)
        documents = metadata.documents(found, offered.get("scopes", ()))
        parameters = catalog.parameters(offered) if found.allowed_origins else []
        service = f"{found.stack}/{function_name.removeprefix(f'{found.stack}-')}"
        earlier = _earlier(found, service, door, offered, now) if found.earlier_revisions else None
        endpoint = Endpoint(found, door.answer, documents, parameters, legacy=earlier)
        if not found.dialects:
            return endpoint
        from mcp_functions import dialects  # noqa: PLC0415 - of few deployments

        return dialects.at_door(endpoint, offered, door.forward)

    return LambdaFunction(wire, now=now, logger=logger)


def _earlier(
    found: Settings, service: str, front: FrontDoor, offered: Mapping[str, Any], now: Callable[[], float]
) -> Callable[[HttpRequest, Mapping[str, Any], Any], Response | None]:
    """Make what answers clients of 2025, when the first of them comes. What it seals only it can open."""

    @lazy_value
    def door() -> Legacy:
        from mcp_functions.dispatch.vault import Vault  # noqa: PLC0415
        from mcp_functions.legacy import Legacy  # noqa: PLC0415 - not on the way of 2026-07-28

        vault = Vault(found, service, now=now) if found.kms_keys else None
        return Legacy(found, front.answer, offered, vault, now=now)

    return lambda http, event, context: door()(http, event, context)  # noqa: PLW0108 - made when it is needed


def lambda_client() -> Any:  # noqa: ANN401 - boto3's clients have no type of their own
    """Make the client that invokes: bounded in time, and never twice, for a call may have effects."""
    target = aws.find(os.environ, "lambda")
    if target is None:
        return boto3_client()
    from mcp_functions.aws.clients import Invoker  # noqa: PLC0415 - imported at init

    return Invoker(target, connect_seconds=CONNECT_SECONDS, read_seconds=READ_SECONDS, attempts=1)


def boto3_client() -> Any:  # noqa: ANN401 - see lambda_client
    """Make boto3's, where the environment does not say all that our own needs."""
    from mcp_functions.aws import by_boto3  # noqa: PLC0415 - not for lists

    return by_boto3.client("lambda", connect_seconds=CONNECT_SECONDS, read_seconds=READ_SECONDS, attempts=1)


class KeptClient:
    """Keeps one client, and its connection as long as that can be trusted: no call is sent a second time."""

    def __init__(self, make: Callable[[], Any], now: Callable[[], float] = time.monotonic) -> None:
        """Remember how to make it; it is made at the first call.

        Args:
            make: the client.
            now: a clock, seconds.

        """
        self._make, self._now = make, now
        self._client, self._used = lazy_value(make), now()
        forgetful(self)

    def reset(self) -> None:
        """Forget the client: its connections, locks and credentials belong to the process that made them."""
        self._client = lazy_value(self._make)

    def __call__(self) -> Any:  # noqa: ANN401 - see lambda_client
        """Return the client."""
        client, idle = self._client(), self._now() - self._used
        if idle > IDLE_SECONDS:
            client.close()  # its connections; the next call opens another
        self._used = self._now()
        return client


class FrontDoor:
    """Answers from a catalog, and forwards calls to the functions it names."""

    def __init__(
        self,
        offered: Mapping[str, Any],
        found: Settings,
        client: Callable[[], Any],
        instructions: str | None,
        *,
        now: Callable[[], float] = time.time,
    ) -> None:
        """Hold the catalog; the client is made at the first call, and `now` is the clock of deadlines."""
        self._catalog = offered
        self._settings = found
        self._client = client
        self._lists = catalog.Lists(offered, found, instructions)
        self._now = now

    def answer(self, request: Request) -> Result | ForwardedResponse:
        """Answer one admitted request, or pass it on.

        Raises:
            McpError: the catalog has no such name, or the function could not be reached.

        """
        method, params = request.message["method"], request.params
        if method in CALLS:
            function = catalog.function_of(self._catalog, method, params)
            observability.current().handler = catalog.name_of(self._catalog, method, params[CALLS[method]])
            if method == "tools/call":
                declared = catalog.declared(self._catalog, params["name"])
                catalog.check_parameters(declared, params, request.headers)
            return self.forward(function, request)
        if method == "completion/complete":
            function = catalog.completing(self._catalog, params)
            observability.current().handler = catalog.name_of(self._catalog, *catalog.referred(params))
            return self.forward(function, request)
        if method in TASKS and self._catalog.get("tasks"):
            headers.admit_task(request.message, request.headers)
            request.must_take_tasks()
            return self.forward(catalog.keeping(self._catalog, method, params), request)
        return self._lists.answer(method, params)

    def forward(self, function: str, request: Request) -> ForwardedResponse:
        """Pass a request on to a function of the catalog, unchanged.

        Raises:
            McpError: it could not be reached, or has failed.

        """
        name = f"{self._settings.stack}-{function}{self._settings.qualifier}"
        event = _payload(request.event)

        def invoke() -> tuple[bytes, bool]:
            invoked = self._client().invoke(FunctionName=name, Payload=event)
            return invoked["Payload"].read(), "FunctionError" in invoked

        began = time.perf_counter()
        try:
            # the deadline counts from the client's request, so that it hears from here before the gateway gives up
            payload, failed = within(request.deadline - self._now() - ANSWER_SECONDS, invoke)
        except Exception as error:  # noqa: BLE001 - botocore makes its exceptions at run time
            raise _unreached(error) from None
        finally:
            observability.current().forward_seconds = time.perf_counter() - began
        if failed:
            raise _failure(payload)
        return ForwardedResponse(_response(payload))


def _payload(event: Mapping[str, Any]) -> bytes:
    """Write an event as it came; half of a surrogate pair, which a header may hold, can only be an escape."""
    payload = BytesIO()
    before = b"{"
    for name, value in event.items():
        payload.write(before + dumps(name).encode() + b":")
        payload.writelines(_member(value))
        before = b","
    payload.write(b"}")
    return payload.getvalue()


def _member(value: object) -> Iterator[bytes]:
    """Write a member of an event; the body in parts, for one emoji makes a text of all of it four times as large."""
    if not isinstance(value, str):
        yield dumps_utf8(value, "backslashreplace")
        return
    yield b'"'
    for part in chunks(value):
        yield dumps(part)[1:-1].encode("utf-8", "backslashreplace")
    yield b'"'


def within(seconds: float, call: Callable[[], T]) -> T:
    """Wait for a call, but no longer than that: then it goes on, and nobody hears how it ends.

    Raises:
        OutcomeUnknown: it did not end.
        Exception: it ended so.

    """
    ended: list[T] = []
    failed: list[Exception] = []

    def run() -> None:
        try:
            ended.append(call())
        except Exception as error:  # noqa: BLE001 - raised again, where somebody waits
            failed.append(error)

    thread = Thread(target=run, daemon=True)
    thread.start()
    thread.join(max(LEAST_SECONDS, seconds))
    if failed:
        raise failed[0]
    if not ended:
        reason = "invoke_deadline"
        raise OutcomeUnknown(reason=reason)
    return ended[0]


def _response(payload: bytes) -> dict[str, Any]:
    if len(payload) > MEGABYTES * 1024 * 1024:
        raise ResultTooLarge(MEGABYTES)
    try:
        match response := json.loads(payload):
            case {"statusCode": int(status), "headers": dict(), "body": str()} if 200 <= status <= 599:  # noqa: PLR2004
                return dict(response)
    except (ValueError, RecursionError):
        pass
    reason = "function_error"
    raise InternalError(reason=reason)


def _failure(payload: bytes) -> McpError:
    """Say what became of a function that raised, or that Lambda ended; its own words are for its own log."""
    try:
        told = json.loads(payload)
    except (ValueError, RecursionError):
        told = None
    match told:
        case {"errorType": str(error)} if error == TIMED_OUT:
            return OutcomeUnknown(reason="function_timed_out")
        case {"errorType": str(error)} if error in ENDED:
            return OutcomeUnknown(ENDED_EARLY, reason="function_ended")
        case {"errorType": str(error)} if error == TOO_LARGE:
            return ResultTooLarge(MEGABYTES)
    return InternalError(reason="function_error")


def _unreached(error: Exception) -> McpError:
    if isinstance(error, McpError):
        return error
    code = (getattr(error, "response", None) or {}).get("Error", {}).get("Code", "") or type(error).__name__
    if code == THROTTLED:
        return Busy(f"invoke_{code}")
    if code in BUSY:
        return TemporarilyUnavailable(f"invoke_{code}")
    if code == "RequestTooLargeException":
        return ContentTooLarge(reason=f"invoke_{code}")
    # Connected, and then silence: the call may have run, so nothing here says that it may be sent again.
    silent = any(word in code for word in ("Read", "Streaming", "ConnectionClosed"))
    return OutcomeUnknown(reason=f"invoke_{code}") if silent else Misconfigured(f"invoke_{code}")
