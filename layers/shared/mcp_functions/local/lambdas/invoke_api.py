"""Lambda's Invoke API: with AWS_ENDPOINT_URL_LAMBDA, boto3's `invoke` reaches the same functions."""

from __future__ import annotations

import json
import re
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING
from urllib.parse import unquote

from mcp_functions.local.environment import arn
from mcp_functions.local.lambdas.service import MAX_PAYLOAD, Throttled
from mcp_functions.local.loopback import HttpResponse, json_response

if TYPE_CHECKING:
    from mcp_functions.local.lambdas.service import Lambdas
    from mcp_functions.local.loopback import HttpRequest

PATH = re.compile(r"/2015-03-31/functions/([^/?]+)/invocations(?:\?.*)?")
# a name, a partial ARN or a whole one, each with or without a qualifier
NAME = re.compile(r"(?:(?:arn:aws:lambda:[a-z0-9-]+:)?\d{12}:function:)?([A-Za-z0-9_-]+)(?::[A-Za-z0-9_$-]+)?")
RETRY_SECONDS = 0.1  # after which an event that was throttled is tried again
WAIT_SECONDS = 2.0  # for events under way when the harness stops


class InvokeApi:
    """Answers the Invoke operation for the functions of one stack."""

    def __init__(self, lambdas: Lambdas) -> None:
        """Invoke what `lambdas` holds."""
        self._lambdas = lambdas
        self._lock, self._running, self._stopped = Lock(), list[Thread](), Event()

    def answer(self, request: HttpRequest) -> HttpResponse:
        """Answer one signed request.

        The signature is not checked; but a page in a browser cannot send one to another origin without asking first.
        """
        path = PATH.fullmatch(request.target)
        if path is None or request.method != "POST":
            return _error(404, "UnknownOperationException", "Only Invoke is served here")
        if not request.header("authorization").startswith("AWS4-"):
            return _error(403, "MissingAuthenticationTokenException", "Missing Authentication Token")
        named = NAME.fullmatch(unquote(path[1]))
        folder = self._lambdas.folder(named[1]) if named else None
        if folder is None:
            shown = named[1] if named else unquote(path[1])
            return _error(404, "ResourceNotFoundException", f"Function not found: {arn(shown)}", Type="User")
        return self._invoke(folder, request.body or b"{}", request.header("x-amz-invocation-type"))

    def _invoke(self, folder: str, event: bytes, how: str) -> HttpResponse:
        if len(event) > MAX_PAYLOAD:
            sizes = f"Request must be smaller than {MAX_PAYLOAD} bytes for the InvokeFunction operation"
            return _error(413, "RequestTooLargeException", sizes, Type="User")
        try:
            json.loads(event)
        except ValueError:
            return _error(400, "InvalidRequestContentException", "Could not parse request body into json", Type="User")
        match how or "RequestResponse":
            case "RequestResponse":
                return self._wait(folder, event)
            case "Event":
                self._start(folder, event)
                return HttpResponse(202)
            case "DryRun":
                return HttpResponse(204)
        return _error(400, "InvalidParameterValueException", "Unknown invocation type", Type="User")

    def _wait(self, folder: str, event: bytes) -> HttpResponse:
        try:
            outcome = self._lambdas.invoke(folder, event)
        except Throttled:
            limit = "ReservedFunctionConcurrentInvocationLimitExceeded"
            return _error(429, "TooManyRequestsException", "Rate Exceeded.", Type="User", Reason=limit)
        failed = (("x-amz-function-error", "Unhandled"),) if outcome.failed else ()
        common = (("content-type", "application/json"), ("x-amz-executed-version", "$LATEST"))
        return HttpResponse(200, (*common, *failed, ("x-amzn-requestid", outcome.request_id)), outcome.payload)

    def _start(self, folder: str, event: bytes) -> None:
        thread = Thread(target=self._run, args=(folder, event), daemon=True)
        with self._lock:
            self._running = [running for running in self._running if running.is_alive()]
            thread.start()
            self._running.append(thread)

    def _run(self, folder: str, event: bytes) -> None:
        # "Lambda retries … throttling errors … for up to 6 hours"
        while not self._stopped.is_set():
            try:
                self._lambdas.invoke(folder, event)
            except Throttled:
                self._stopped.wait(RETRY_SECONDS)
            else:
                return

    def drain(self) -> None:
        """Wait a moment for events that are under way."""
        self._stopped.set()
        with self._lock:
            running = list(self._running)
        for thread in running:
            thread.join(WAIT_SECONDS)


def _error(status: int, kind: str, message: str, **more: str) -> HttpResponse:
    return json_response(status, {**more, "Message": message}, ("x-amzn-errortype", kind))
