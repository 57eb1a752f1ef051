"""Lambda's Invoke API on this machine, with which one function calls another.

    POST /2015-03-31/functions/<function>/invocations

AWS clients send it here, because the harness sets AWS_ENDPOINT_URL_LAMBDA. The header `x-amz-invocation-type` says
whether the caller waits for the result ("RequestResponse", the default) or not ("Event").
"""

import json
import re
import threading
from threading import Lock, Thread
from urllib.parse import unquote

from mcp_functions_harness.environment import arn
from mcp_functions_harness.lambdas.service import MAX_PAYLOAD, Lambdas, Throttled
from mcp_functions_harness.loopback import HttpRequest, HttpResponse, json_response

PATH = re.compile(r"/2015-03-31/functions/([^/?]+)/invocations(?:\?.*)?")
FUNCTION = re.compile(  # AWS's "FunctionName": a name or an ARN, perhaps with a version or alias
    r"(?:(?:arn:aws:lambda:[a-z0-9-]+:)?\d{12}:function:)?"  # an ARN may begin at the account
    r"([A-Za-z0-9_-]+)"  # the function's name
    r"(?::[A-Za-z0-9_$-]+)?"  # a version or an alias, which changes nothing here
)
RETRY_SECONDS = 0.1  # the pause before an event is tried again that was throttled
DRAIN_SECONDS = 2.0  # the longest wait for each event that still runs when the harness stops


class InvokeApi:
    """Answers the Invoke operation for the functions of one stack."""

    def __init__(self, lambdas: Lambdas) -> None:
        """Invoke the functions of `lambdas`."""
        self._lambdas = lambdas
        self._lock = Lock()  # guards _running
        self._running: list[Thread] = []  # one thread for each event
        self._stopped = threading.Event()

    def answer(self, request: HttpRequest) -> HttpResponse:
        """Answer one signed request."""
        path = PATH.fullmatch(request.target)
        if path is None or request.method != "POST":
            return _error(404, "UnknownOperationException", "Only Invoke is served here")
        if not request.is_signed:
            return _error(403, "MissingAuthenticationTokenException", "Missing Authentication Token")
        named = unquote(path[1])
        parts = FUNCTION.fullmatch(named)
        name = parts[1] if parts else named
        folder = self._lambdas.find_folder(name)
        if folder is None:
            return _error(404, "ResourceNotFoundException", f"Function not found: {arn(name)}", Type="User")
        return self._invoke(folder, request.body or b"{}", request.header("x-amz-invocation-type"))

    def _invoke(self, folder: str, event: bytes, invocation_type: str) -> HttpResponse:
        if len(event) > MAX_PAYLOAD:
            sizes = f"Request must be smaller than {MAX_PAYLOAD} bytes for the InvokeFunction operation"
            return _error(413, "RequestTooLargeException", sizes, Type="User")
        try:
            json.loads(event)
        except ValueError:
            return _error(400, "InvalidRequestContentException", "Could not parse request body into json", Type="User")
        if invocation_type in {"", "RequestResponse"}:
            return self._wait_for(folder, event)
        if invocation_type == "Event":
            self._run_later(folder, event)
            return HttpResponse(202)
        return _error(400, "InvalidParameterValueException", "Unknown invocation type", Type="User")

    def _wait_for(self, folder: str, event: bytes) -> HttpResponse:
        try:
            outcome = self._lambdas.invoke(folder, event)
        except Throttled:
            limit = "ReservedFunctionConcurrentInvocationLimitExceeded"
            return _error(429, "TooManyRequestsException", "Rate Exceeded.", Type="User", Reason=limit)
        headers = {
            "content-type": "application/json",
            "x-amz-executed-version": "$LATEST",
            "x-amzn-requestid": outcome.request_id,
        }
        if outcome.error:
            headers["x-amz-function-error"] = "Unhandled"
        return HttpResponse(200, tuple(headers.items()), outcome.payload)

    def _run_later(self, folder: str, event: bytes) -> None:
        thread = Thread(target=self._run, args=(folder, event), daemon=True)
        with self._lock:
            self._running = [running for running in self._running if running.is_alive()]
            thread.start()
            self._running.append(thread)

    def _run(self, folder: str, event: bytes) -> None:
        # AWS: "Lambda retries … throttling errors … for up to 6 hours". Here it retries until the harness stops.
        while not self._stopped.is_set():
            try:
                self._lambdas.invoke(folder, event)
            except Throttled:
                self._stopped.wait(RETRY_SECONDS)
            else:
                return

    def drain(self) -> None:
        """Wait up to DRAIN_SECONDS for each event that still runs."""
        self._stopped.set()
        with self._lock:
            running = list(self._running)
        for thread in running:
            thread.join(DRAIN_SECONDS)


def _error(status: int, kind: str, message: str, **members: str) -> HttpResponse:
    """Make an error of AWS; an error of Invoke itself has the member Type."""
    return json_response(status, {**members, "Message": message}, ("x-amzn-errortype", kind))
