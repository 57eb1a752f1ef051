"""The Lambda Runtime API of one environment: what its process asks, and what it is told (2018-06-01).

`next` waits for an event; `response` and `error` end an invocation, `init/error` ends the environment. What came in is
told to the environment in order, one message each.

A page in a browser can send requests to this machine too. So what a browser sends, and what names another host than
this address, is refused before it can take an event or end an environment.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from queue import SimpleQueue
from typing import TYPE_CHECKING, TypeAlias

from mcp_functions.local.loopback import HttpResponse, Loopback, json_response

if TYPE_CHECKING:
    from mcp_functions.local.loopback import HttpRequest

BASE = "/2018-06-01/runtime"
ENDED = re.compile(rf"{BASE}/invocation/([^/]+)/(response|error)")
MAX_RESPONSE = 6_291_556  # bytes, the number in Lambda's own error
MAX_POSTED = 64 * 1024 * 1024  # bytes that are read, so that who posts too much hears why


@dataclass
class Task:
    """One event for a process: to be done by `deadline_ms` (unix milliseconds), `taken` once it was handed over."""

    request_id: str
    event: bytes
    arn: str
    trace_id: str
    deadline_ms: int = 0
    taken: bool = False


@dataclass(frozen=True)
class Ready:
    """The process asks for an event: its init is over, or its last invocation."""


@dataclass(frozen=True)
class Responded:
    """The function returned."""

    payload: bytes


@dataclass(frozen=True)
class Raised:
    """The function failed, in its own words; `at_init` before it was ready."""

    payload: bytes
    at_init: bool = False


@dataclass(frozen=True)
class TooMuch:
    """The function returned more than Lambda carries."""


@dataclass(frozen=True)
class Exited:
    """The process is gone; `status` as subprocess has it, a signal below zero."""

    status: int


Told: TypeAlias = Ready | Responded | Raised | TooMuch | Exited


class RuntimeApi:
    """The endpoint that AWS_LAMBDA_RUNTIME_API names, for one process.

    Attributes:
        told: what the process said, and that it ended.

    """

    def __init__(self) -> None:
        """Listen."""
        self.told: SimpleQueue[Told] = SimpleQueue()
        self._tasks: SimpleQueue[Task | None] = SimpleQueue()
        self._current: Task | None = None
        self._loopback = Loopback(max_body=MAX_POSTED)
        self._loopback.start(self._answer)

    @property
    def address(self) -> str:
        """Host and port."""
        return self._loopback.url.removeprefix("http://")

    def hand(self, task: Task) -> None:
        """Give the process its next event."""
        self._tasks.put(task)

    def stop(self) -> None:
        """Answer nobody any more; the process has ended."""
        self._tasks.put(None)
        self._loopback.stop()

    def _answer(self, request: HttpRequest) -> HttpResponse:
        if _is_of_a_page(request) or _values(request, "host") != [self.address]:
            return _refused(403, "Forbidden", "Only the process of this environment may ask here")
        body = request.body or b""
        if (request.method, request.target) == ("GET", f"{BASE}/invocation/next"):
            return self._next()
        if (request.method, request.target) == ("POST", f"{BASE}/init/error"):
            self.told.put(Raised(body, at_init=True))
            return _accepted()
        if request.method == "POST" and (ended := ENDED.fullmatch(request.target)):
            return self._ended(ended[1], ended[2], body)
        return _refused(404, "UnknownOperation", "Only next, response, error and init/error are served here")

    def _next(self) -> HttpResponse:
        self.told.put(Ready())
        task = self._tasks.get()
        if task is None:
            return _refused(410, "Gone", "The environment has ended")
        self._current, task.taken = task, True
        headers = {
            "content-type": "application/json",
            "lambda-runtime-aws-request-id": task.request_id,
            "lambda-runtime-deadline-ms": str(task.deadline_ms),
            "lambda-runtime-invoked-function-arn": task.arn,
            "lambda-runtime-trace-id": task.trace_id,
        }
        return HttpResponse(200, tuple(headers.items()), task.event)

    def _ended(self, request_id: str, how: str, body: bytes) -> HttpResponse:
        if self._current is None or request_id != self._current.request_id:
            return _refused(400, "InvalidRequestID", "Invalid request ID")
        self._current = None
        if how == "error":
            self.told.put(Raised(body))
            return _accepted()
        if len(body) > MAX_RESPONSE:
            self.told.put(TooMuch())
            exceeded = f"Exceeded maximum allowed payload size ({MAX_RESPONSE} bytes)."
            return _refused(413, "RequestEntityTooLarge", exceeded)
        self.told.put(Responded(body))
        return _accepted()


def _is_of_a_page(request: HttpRequest) -> bool:
    # "none": the request was "explicitly caused by a user's interaction with the user agent" (Fetch Metadata)
    return bool(_values(request, "origin")) or any(site != "none" for site in _values(request, "sec-fetch-site"))


def _values(request: HttpRequest, name: str) -> list[str]:
    return [value for key, value in request.headers if key.lower() == name]


def _accepted() -> HttpResponse:
    return json_response(202, {"status": "OK"})


def _refused(status: int, kind: str, message: str) -> HttpResponse:
    return json_response(status, {"errorMessage": message, "errorType": kind})
