"""Lambda: calls a function with an event and records the invocation.

Events and results pass as JSON text, as they do on AWS, so that two functions never share an object.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeAlias

from mcp_functions.local.environment import STACK
from mcp_functions.local.loopback import json_object
from mcp_functions.protocol.constants import WORKER_SUFFIX

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

MAX_PAYLOAD = 6 * 1024 * 1024  # bytes of an event or of a result
MAX_INVOCATIONS = 1000  # how many records of the last invocations are kept


@dataclass(frozen=True, kw_only=True)
class Execution:
    """The figures of one call of a function."""

    request_id: str  # Lambda's id of the invocation
    milliseconds: float  # duration, without the start of the process
    error: str | None = None  # the error's type; None if the function returned
    pid: int | None = None  # the process that ran the function; None: the harness's own
    init_milliseconds: float | None = None  # duration of the process's start; None if it was running already
    memory_mb: int | None = None  # the peak of the process's memory; None if unknown


@dataclass(frozen=True, kw_only=True)
class Outcome(Execution):
    """Lambda's answer: the function's result as JSON, or its error object if it failed."""

    payload: bytes

    @property
    def failed(self) -> bool:
        """Whether the payload is an error object."""
        return self.error is not None


@dataclass(frozen=True, kw_only=True)
class Invocation(Execution):
    """The record of one finished call."""

    folder: str  # the function's folder
    http_request_id: str  # API Gateway's id of the request; "" for a worker, which continues a task without a request
    status: int | None  # the HTTP status that it returned; None if it failed, or returned no HTTP response
    event_bytes: int  # size of the event as JSON
    result_bytes: int  # size of the result as JSON


class Watcher(Protocol):
    """The author's terminal, which shows what functions do."""

    def write_call(self, folder: str, event: bytes, outcome: Outcome) -> None:
        """Show a call that has ended, with its event as JSON."""

    def show_progress(self, folder: str, done: float, total: float | None) -> None:
        """Show how far a call is: `progress` and `total` of MCP."""


Run: TypeAlias = "Callable[[str, bytes], Outcome]"  # runs the function of a folder with an event as JSON


class Throttled(Exception):
    """The concurrency limit is reached; the function was not called."""


@dataclass(eq=False)
class Lambdas:
    """The functions of one stack, and the record of their invocations.

    Attributes:
        folders: the folders of the functions; the collection may change later.
        run: calls a function and waits for it.
        watcher: sees each call that has ended, in the thread of the call.
        on_invocation: called then with the record of the invocation.
    """

    folders: Collection[str]
    run: Run
    watcher: Watcher | None = field(default=None, kw_only=True)
    on_invocation: Callable[[Invocation], None] = field(default=lambda _: None, kw_only=True)
    _invocations: deque[Invocation] = field(default_factory=lambda: deque(maxlen=MAX_INVOCATIONS), init=False)

    @property
    def invocations(self) -> list[Invocation]:
        """The last calls, in the order in which they ended."""
        return list(self._invocations)

    def folder(self, name: str) -> str | None:
        """Return the folder of a function's name in AWS; None if no function has it.

        The name of a worker, which continues the tasks of a function, gives the folder with the suffix WORKER_SUFFIX.
        """
        folder = name.removeprefix(f"{STACK}_")
        if folder == name or folder.removesuffix(WORKER_SUFFIX) not in self.folders:
            return None
        return folder

    def invoke(self, folder: str, event: bytes) -> Outcome:
        """Call one function with an event as JSON, and wait for it.

        Raises:
            Throttled: the concurrency limit is reached.
        """
        outcome = self.run(folder, event)
        if self.watcher:
            self.watcher.write_call(folder, event, outcome)
        invocation = _record(folder, event, outcome)
        self._invocations.append(invocation)
        self.on_invocation(invocation)
        return outcome


def _record(folder: str, event: bytes, outcome: Outcome) -> Invocation:
    http_request_id = ""
    match json_object(event):
        # functions/mcp, the endpoint, forwards API Gateway's id to the function that it calls
        case {"requestContext": {"requestId": str(request_id)}}:
            http_request_id = request_id
    status = None if outcome.failed else json_object(outcome.payload).get("statusCode")
    return Invocation(
        folder=folder,
        http_request_id=http_request_id,
        status=status if isinstance(status, int) else None,
        event_bytes=len(event),
        result_bytes=len(outcome.payload),
        request_id=outcome.request_id,
        milliseconds=outcome.milliseconds,
        error=outcome.error,
        pid=outcome.pid,
        init_milliseconds=outcome.init_milliseconds,
        memory_mb=outcome.memory_mb,
    )
