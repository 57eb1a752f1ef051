"""Lambda: calls a function with an event, and keeps what became of it.

How a function is run is behind `run`: in this process, or in one of its own. Events and results cross as JSON text, as
they do on AWS, so that no object is shared between two functions.
"""

from __future__ import annotations

import json
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from mcp_functions.protocol.constants import WORKER

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

MAX_PAYLOAD = 6 * 1024 * 1024  # bytes of an event or of a result
REMEMBERED = 1000


@dataclass(frozen=True)
class Invocation:
    """One call of one function, after it ended.

    Attributes:
        folder: of the function.
        request_id: Lambda's.
        status: the HTTP status it returned; None if it failed, or returned no HTTP response.
        event_bytes: size of the event as JSON.
        result_bytes: size of the result as JSON.
        milliseconds: that it took, its process's start not counted.
        error: the error's type, or None.
        pid: of the process it ran in; None: in this one.
        init_milliseconds: that its process took to start; None if it was there.
        memory_mb: the most its process ever had; None if nobody can tell.

    """

    folder: str
    request_id: str
    status: int | None
    event_bytes: int
    result_bytes: int
    milliseconds: float
    error: str | None
    pid: int | None = None
    init_milliseconds: float | None = None
    memory_mb: int | None = None


@dataclass(frozen=True)
class Outcome:
    """What Lambda answers: a function's result, or its error object, as JSON; and what it took (see `Invocation`)."""

    payload: bytes
    request_id: str
    milliseconds: float
    error: str | None = None
    pid: int | None = None
    init_milliseconds: float | None = None
    memory_mb: int | None = None

    @property
    def failed(self) -> bool:
        """Whether the payload is an error object."""
        return self.error is not None


Run: TypeAlias = "Callable[[str, bytes], Outcome]"  # (folder, event as JSON)


class Throttled(Exception):
    """As many run already as may: the call was not run."""


class Lambdas:
    """The functions of one stack, and what became of every call."""

    def __init__(
        self, folders: Collection[str], run: Run, *, stack: str, ended: Callable[[Invocation], None] = lambda _: None
    ) -> None:
        """Take the functions by folder.

        Args:
            folders: that may be called.
            run: calls a function and waits for it.
            stack: the physical name of a function is "<stack>-<folder>".
            ended: called after every invocation, in its thread.

        """
        self._folders, self._run, self._stack, self._ended = folders, run, stack, ended
        self._invocations: deque[Invocation] = deque(maxlen=REMEMBERED)

    @property
    def invocations(self) -> list[Invocation]:
        """The last calls, in the order in which they ended."""
        return list(self._invocations)

    def folder(self, name: str) -> str | None:
        """Say which folder a function's physical name means; a worker's has WORKER behind that of its function."""
        folder = name.removeprefix(f"{self._stack}-")
        return folder if folder != name and folder.removesuffix(WORKER) in self._folders else None

    def invoke(self, folder: str, event: bytes) -> Outcome:
        """Call one function and wait for it.

        Args:
            folder: of a function there is.
            event: as JSON.

        Raises:
            Throttled: it was not run.

        """
        outcome = self._run(folder, event)
        invocation = Invocation(
            folder=folder,
            request_id=outcome.request_id,
            status=None if outcome.failed else _status(outcome.payload),
            event_bytes=len(event),
            result_bytes=len(outcome.payload),
            milliseconds=outcome.milliseconds,
            error=outcome.error,
            pid=outcome.pid,
            init_milliseconds=outcome.init_milliseconds,
            memory_mb=outcome.memory_mb,
        )
        self._invocations.append(invocation)
        self._ended(invocation)
        return outcome


def _status(payload: bytes) -> int | None:
    try:
        match json.loads(payload):
            case {"statusCode": int(status)}:
                return status
    except ValueError:
        pass  # a function may return bytes of its own, which no HTTP response is
    return None
