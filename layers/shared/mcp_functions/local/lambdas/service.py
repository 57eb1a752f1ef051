"""Lambda: calls a function with an event and records the invocation.

Events and results pass as JSON text, as they do on AWS, so that two functions never share an object.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, TypeAlias

from mcp_functions.local.loopback import json_object
from mcp_functions.protocol.constants import WORKER

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

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
    status: int | None  # the HTTP status that it returned; None if it failed, or returned no HTTP response
    event_bytes: int  # size of the event as JSON
    result_bytes: int  # size of the result as JSON


Run: TypeAlias = "Callable[[str, bytes], Outcome]"  # runs the function of a folder with an event as JSON


class Throttled(Exception):
    """The concurrency limit is reached; the function was not called."""


@dataclass(eq=False)
class Lambdas:
    """The functions of one stack, and the record of their invocations.

    Attributes:
        folders: the folders of the functions; the collection may change later.
        run: calls a function and waits for it.
        stack: the stack's name; a function's name in AWS is "<stack>_<folder>".
        on_invocation: called with the record of every invocation, in the thread of the invocation.
        observers: called before `on_invocation`, with the folder, the event as JSON and the outcome.
    """

    folders: Collection[str]
    run: Run
    stack: str = field(kw_only=True)
    on_invocation: Callable[[Invocation], None] = field(default=lambda _: None, kw_only=True)
    observers: Sequence[Callable[[str, bytes, Outcome], None]] = field(default=(), kw_only=True)
    _invocations: deque[Invocation] = field(default_factory=lambda: deque(maxlen=MAX_INVOCATIONS), init=False)

    @property
    def invocations(self) -> list[Invocation]:
        """The last calls, in the order in which they ended."""
        return list(self._invocations)

    def folder(self, name: str) -> str | None:
        """Return the folder of a function's name in AWS; None if no function has it.

        The name of a worker, which continues the tasks of a function, gives the folder with the suffix WORKER.
        """
        folder = name.removeprefix(f"{self.stack}_")
        if folder == name or folder.removesuffix(WORKER) not in self.folders:
            return None
        return folder

    def invoke(self, folder: str, event: bytes) -> Outcome:
        """Call one function with an event as JSON, and wait for it.

        Raises:
            Throttled: the concurrency limit is reached.
        """
        outcome = self.run(folder, event)
        for observe in self.observers:
            observe(folder, event, outcome)
        status = None if outcome.failed else json_object(outcome.payload).get("statusCode")
        invocation = Invocation(
            folder=folder,
            status=status if isinstance(status, int) else None,
            event_bytes=len(event),
            result_bytes=len(outcome.payload),
            **{figure.name: getattr(outcome, figure.name) for figure in fields(Execution)},
        )
        self._invocations.append(invocation)
        self.on_invocation(invocation)
        return outcome
