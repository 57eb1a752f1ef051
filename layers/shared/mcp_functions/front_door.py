"""The MCP endpoint: an MCP client knows one URL, and behind it every handler is a Lambda of its own.

It answers `server/discover` and the lists from catalog.json, and hands every call, unchanged, to the function that the
validated body names. It has no key and cannot read a state; the function checks everything again.
"""

from __future__ import annotations

import json
import os
import time
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcp_functions import catalog, jsonrpc, settings
from mcp_functions.errors import InternalError, McpError, MethodNotFound, NotAnsweredInTime, TemporarilyUnavailable
from mcp_functions.gateway import Endpoint, LambdaFunction
from mcp_functions.messages import Answer, Forwarded, complete
from mcp_functions.names import CALLS, LISTS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_functions.messages import Request
    from mcp_functions.settings import Settings

# What Lambda's Invoke API raises when it cannot take the call now: it was not run, so the client may send it again.
BUSY = {
    "TooManyRequestsException",
    "ServiceException",
    "EC2ThrottledException",
    "ResourceNotReadyException",
    "SnapStartNotReadyException",
    "ConnectTimeoutError",
    "EndpointConnectionError",
}


def serve_catalog(
    path: str | Path, *, instructions: str | None = None, now: Callable[[], float] = time.time
) -> LambdaFunction:
    """Make the Lambda entry point of the MCP endpoint.

    Args:
        path: catalog.json, written by `python -m mcp_functions.local catalog`.
        instructions: what a model should know about this server as a whole.
        now: the clock, unix seconds.

    """

    def wire(_function_name: str) -> Endpoint:
        found = settings.read(os.environ)
        offered = json.loads(Path(path).read_text(encoding="utf-8"))
        return Endpoint(found, FrontDoor(offered, found, lru_cache(maxsize=1)(lambda_client), instructions).answer)

    return LambdaFunction(wire, now=now)


def lambda_client() -> Any:  # noqa: ANN401 - boto3's clients have no type of their own
    """Make the client that invokes: bounded in time, and never twice, for a call may have effects."""
    import boto3  # noqa: PLC0415 - not for lists
    from botocore.config import Config  # noqa: PLC0415

    return boto3.client("lambda", config=Config(connect_timeout=1, read_timeout=29, retries={"total_max_attempts": 1}))


class FrontDoor:
    """Answers from a catalog, and forwards calls to the functions it names."""

    def __init__(
        self, offered: Mapping[str, Any], found: Settings, client: Callable[[], Any], instructions: str | None
    ) -> None:
        """Hold the catalog; the client is made at the first call."""
        self._catalog = offered
        self._settings = found
        self._client = client
        self._instructions = instructions

    def answer(self, request: Request) -> Answer | Forwarded:
        """Answer one admitted request, or pass it on.

        Raises:
            McpError: the catalog has no such name, or the function could not be reached.

        """
        method, params = request.message["method"], request.params
        if method in CALLS:
            function = catalog.function_of(self._catalog, method, params)
            if method == "tools/call":
                catalog.check_headers(self._catalog, params, request.headers)
            return self._forward(function, request)
        if method == "completion/complete":
            return self._forward(catalog.completing(self._catalog, params), request)
        if method == "server/discover":
            result = catalog.discover(self._catalog, self._settings.cache, self._instructions)
        elif method in LISTS:
            result = catalog.page(self._catalog, method, params, self._settings.cache, self._settings.page_size)
        else:
            raise MethodNotFound
        return Answer(complete(result, self._settings.server_info))

    def _forward(self, function: str, request: Request) -> Forwarded:
        name = f"{self._settings.stack}-{function}"
        try:
            invoked = self._client().invoke(FunctionName=name, Payload=jsonrpc.dumps(request.event).encode())
            payload = invoked["Payload"].read()
        except Exception as error:  # noqa: BLE001 - botocore makes its exceptions at run time
            raise _unreached(error) from None
        response = _response(payload) if "FunctionError" not in invoked else None
        if response is None:
            reason = "function_error"
            raise InternalError(reason=reason)
        return Forwarded(response)


def _response(payload: bytes) -> dict[str, Any] | None:
    try:
        response = json.loads(payload)
    except ValueError:
        return None
    return response if isinstance(response, dict) and "statusCode" in response else None


def _unreached(error: Exception) -> McpError:
    code = (getattr(error, "response", None) or {}).get("Error", {}).get("Code", "") or type(error).__name__
    if code in BUSY:
        return TemporarilyUnavailable(f"invoke_{code}")
    # Connected, and then silence: the call may have run, so nothing here says that it may be sent again.
    silent = "Read" in code or "ConnectionClosed" in code
    return NotAnsweredInTime(reason=f"invoke_{code}") if silent else InternalError(reason=f"invoke_{code}")
