"""Lambda on this machine: runs functions by their folders or names, and records each invocation.

Events and results are JSON in bytes, as on AWS, so two functions never share an object.
"""

from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from mcp_functions.protocol.constants import WORKER_SUFFIX
from mcp_functions_harness.environment import STACK
from mcp_functions_harness.loopback import json_object

MAX_PAYLOAD = 6 * 1024 * 1024  # bytes of an event or of a result
MAX_INVOCATIONS = 1000  # how many records of the last invocations are kept


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How a call of a function ended."""

    payload: bytes  # the function's result as JSON; if it failed, Lambda's error object
    request_id: str  # Lambda's id of the invocation
    milliseconds: float  # the duration, without the start of the process
    error: str | None = None  # the error's type; None if the function returned
    traceback: str = ""  # of what the function raised, for the author's terminal
    pid: int | None = None  # the process that ran the function; None: the harness's own
    init_milliseconds: float | None = None  # of the process's start; None if it was running
    memory_mb: int | None = None  # the peak of the process's memory; None if unknown


@dataclass(frozen=True, kw_only=True)
class Invocation(Outcome):
    """The record of a call. Its payload is empty, because the records of many calls are kept."""

    folder: str  # the function's folder
    http_request_id: str  # API Gateway's; "" for a worker, which continues a task without a request


class Watcher(Protocol):
    """The author's terminal, which shows what functions do."""

    def write_call(self, folder: str, event: bytes, outcome: Outcome) -> None:
        """Show a call that has ended."""

    def show_progress(self, folder: str, done: float, total: float | None) -> None:
        """Show the progress of a running call: `progress` and `total` of MCP."""


Run: TypeAlias = Callable[[str, bytes], Outcome]  # takes a folder, and an event as JSON


class Throttled(Exception):
    """The concurrency limit is reached; the function was not called."""


@dataclass(eq=False)
class Lambdas:
    """The functions of one stack, and the record of their invocations.

    The watcher and `on_invocation` are called in the thread of each call that has ended.
    """

    folders: Collection[str]  # the harness sets it again when a function comes or goes
    run: Run
    watcher: Watcher | None = field(default=None, kw_only=True)
    on_invocation: Callable[[Invocation], None] = field(default=lambda _: None, kw_only=True)
    _invocations: deque[Invocation] = field(default_factory=lambda: deque(maxlen=MAX_INVOCATIONS), init=False)

    @property
    def invocations(self) -> list[Invocation]:
        """The last calls, in the order in which they ended."""
        return list(self._invocations)

    def find_folder(self, name: str) -> str | None:
        """Find the folder of a function by its name in AWS, "local_add"; None if no function has this name.

        For the name of a worker, which continues the tasks of a function, the folder has the suffix WORKER_SUFFIX.
        """
        prefix = f"{STACK}_"
        if not name.startswith(prefix):
            return None
        folder = name.removeprefix(prefix)
        return folder if folder.removesuffix(WORKER_SUFFIX) in self.folders else None

    def invoke(self, folder: str, event: bytes) -> Outcome:
        """Call the function of a folder (with WORKER_SUFFIX: its worker), wait for its result, and record the call.

        Raises:
            Throttled: the concurrency limit is reached.
        """
        outcome = self.run(folder, event)
        if self.watcher:
            self.watcher.write_call(folder, event, outcome)
        fields = vars(outcome) | {"payload": b""}
        invocation = Invocation(**fields, folder=folder, http_request_id=http_request_id(event))
        self._invocations.append(invocation)
        self.on_invocation(invocation)
        return outcome


def http_request_id(event: bytes) -> str:
    """Return API Gateway's id of the request in an event; "" if there is none."""
    match json_object(event):
        # functions/mcp, the endpoint, passes the whole event to the function that it calls, so both have the same id
        case {"requestContext": {"requestId": str(request_id)}}:
            return request_id
    return ""
