"""The Lambda Runtime API of one environment, version 2018-06-01.

    the process asks            it gets          the environment reads from `events`
    GET  invocation/next        the next task    Ready, before the task is there
    POST invocation/ID/response 202 or 413       Response, or ResponseTooLarge
    POST invocation/ID/error    202              FunctionError
    POST init/error             202              FunctionError
    (the process ends)                           Exit, which `Process` adds

A web page can send requests to this machine too. So requests from a browser, or with another Host header, are refused.
"""

import re
from dataclasses import dataclass
from queue import SimpleQueue
from typing import TypeAlias

from mcp_functions_harness.loopback import HttpRequest, HttpResponse, Loopback, json_response

BASE = "/2018-06-01/runtime"
RESULT = re.compile(rf"{BASE}/invocation/([^/]+)/(response|error)")
MAX_RESPONSE = 6_291_556  # bytes: "6 MB", by the number in Lambda's own error message
MAX_POSTED = 64 * 1024 * 1024  # bytes that are read, so that the process gets a 413


@dataclass
class Task:
    """One event for a process."""

    request_id: str
    event: bytes  # JSON
    arn: str  # the function's ARN
    trace_id: str
    deadline_ms: int = 0  # unix milliseconds
    is_taken: bool = False  # whether the process has received it


@dataclass(frozen=True)
class Ready:
    """The process asks for an event, so its init or its last invocation has ended."""


@dataclass(frozen=True)
class Response:
    """The function returned."""

    payload: bytes


@dataclass(frozen=True)
class FunctionError:
    """The function reported an error, at its init or later."""

    payload: bytes


@dataclass(frozen=True)
class ResponseTooLarge:
    """The function returned more than Lambda allows."""


@dataclass(frozen=True)
class Exit:
    """The process ended with this status; a negative one is a signal."""

    status: int


ProcessEvent: TypeAlias = Ready | Response | FunctionError | ResponseTooLarge | Exit


class RuntimeApi:
    """The endpoint in AWS_LAMBDA_RUNTIME_API, for one process."""

    def __init__(self) -> None:
        """Start a server on a free port."""
        self.events: SimpleQueue[ProcessEvent] = SimpleQueue()  # in order; its Exit is the last
        self._tasks: SimpleQueue[Task | None] = SimpleQueue()  # None: the environment has ended
        self._current: Task | None = None  # the task whose result is awaited
        self._loopback = Loopback(max_body=MAX_POSTED)
        self._loopback.start(self._answer)

    @property
    def address(self) -> str:
        """The host and the port of this API."""
        return self._loopback.url.removeprefix("http://")

    def give(self, task: Task) -> None:
        """Give the process its next event."""
        self._tasks.put(task)

    def stop(self) -> None:
        """Stop the server. A request for the next task, if one still waits, is refused."""
        self._tasks.put(None)
        self._loopback.stop()

    def _answer(self, request: HttpRequest) -> HttpResponse:
        if _is_from_browser(request) or request.values("host") != [self.address]:
            return _refused(403, "Forbidden", "Only the process of this environment may ask here")
        body = request.body or b""
        if (request.method, request.target) == ("GET", f"{BASE}/invocation/next"):
            return self._give_next()
        if (request.method, request.target) == ("POST", f"{BASE}/init/error"):
            self.events.put(FunctionError(body))
            return _accepted()
        result = RESULT.fullmatch(request.target)
        if request.method == "POST" and result:
            return self._take_result(result[1], result[2], body)
        return _refused(404, "UnknownOperation", "Only next, response, error and init/error are served here")

    def _give_next(self) -> HttpResponse:
        self.events.put(Ready())
        task = self._tasks.get()
        if task is None:
            return _refused(410, "Gone", "The environment has ended")
        self._current = task
        task.is_taken = True
        headers = {
            "content-type": "application/json",
            "lambda-runtime-aws-request-id": task.request_id,
            "lambda-runtime-deadline-ms": str(task.deadline_ms),
            "lambda-runtime-invoked-function-arn": task.arn,
            "lambda-runtime-trace-id": task.trace_id,
        }
        return HttpResponse(200, tuple(headers.items()), task.event)

    def _take_result(self, request_id: str, kind: str, body: bytes) -> HttpResponse:
        if self._current is None or request_id != self._current.request_id:
            return _refused(400, "InvalidRequestID", "Invalid request ID")
        self._current = None
        if kind == "error":
            self.events.put(FunctionError(body))
            return _accepted()
        if len(body) > MAX_RESPONSE:
            self.events.put(ResponseTooLarge())
            exceeded = f"Exceeded maximum allowed payload size ({MAX_RESPONSE} bytes)."
            return _refused(413, "RequestEntityTooLarge", exceeded)
        self.events.put(Response(body))
        return _accepted()


def _is_from_browser(request: HttpRequest) -> bool:
    if request.values("origin"):
        return True
    # "none": the request was "explicitly caused by a user's interaction with the user agent" (Fetch Metadata)
    return any(site != "none" for site in request.values("sec-fetch-site"))


def _accepted() -> HttpResponse:
    return json_response(202, {"status": "OK"})


def _refused(status: int, kind: str, message: str) -> HttpResponse:
    return json_response(status, {"errorMessage": message, "errorType": kind})
