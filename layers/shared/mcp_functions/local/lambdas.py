"""Lambda: calls a function with an event and a context, and keeps what it returned or how it failed.

Events and results cross as JSON text, as they do on AWS, so that no object is shared between two functions.
"""

from __future__ import annotations

import json
import sys
import time
import traceback
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mcp_functions.local.context import Context, context_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_functions.local.functions import Function

MAX_PAYLOAD = 6 * 1024 * 1024  # bytes of an event or of a result
REMEMBERED = 1000


@dataclass(frozen=True)
class Invocation:
    """One call of one function, after it ended.

    Attributes:
        folder: of the function.
        request_id: Lambda's.
        status: the HTTP status it returned; None if it raised, or returned no HTTP response.
        event_bytes: size of the event as JSON.
        result_bytes: size of the result as JSON.
        milliseconds: that it took.
        error: the exception's type, or None.

    """

    folder: str
    request_id: str
    status: int | None
    event_bytes: int
    result_bytes: int
    milliseconds: float
    error: str | None


@dataclass(frozen=True)
class Outcome:
    """What Lambda answers: a function's result, or its error object, as JSON."""

    payload: bytes
    request_id: str
    failed: bool


class Lambdas:
    """The functions of one stack, and what became of every call."""

    def __init__(
        self,
        functions: Mapping[str, Function],
        *,
        stack: str,
        debug: bool = False,
        ended: Callable[[Invocation], None] = lambda _: None,
    ) -> None:
        """Take the loaded functions by folder.

        Args:
            functions: by folder.
            stack: the physical name of a function is "<stack>-<folder>".
            debug: write the traceback of a function that raises to stderr, and not only where it was.
            ended: called after every invocation, in its thread.

        """
        self._functions, self._stack, self._debug, self._ended = functions, stack, debug, ended
        self._invocations: deque[Invocation] = deque(maxlen=REMEMBERED)

    @property
    def invocations(self) -> list[Invocation]:
        """The last calls, in the order in which they ended."""
        return list(self._invocations)

    def folder(self, name: str) -> str | None:
        """Say which folder a function's physical name means."""
        folder = name.removeprefix(f"{self._stack}-")
        return folder if folder != name and folder in self._functions else None

    def invoke(self, folder: str, event: bytes) -> Outcome:
        """Call one function and wait for it.

        Args:
            folder: of a function there is.
            event: as JSON.

        """
        context, began = context_of(f"{self._stack}-{folder}"), time.monotonic()
        try:
            result = self._functions[folder].handler(json.loads(event), context)
            outcome, error = _returned(result, context), None
        except BaseException as raised:  # noqa: BLE001 - Lambda survives whatever a function raises
            outcome, error = _raised(raised, context), raised
            self._tell(folder, raised)
        invocation = _invocation(folder, event, outcome, began, error)
        self._invocations.append(invocation)
        self._ended(invocation)
        return outcome

    def _tell(self, folder: str, error: BaseException) -> None:
        where = traceback.extract_tb(error.__traceback__)[-1]
        text = f"{folder} raised {type(error).__name__} at {where.filename}:{where.lineno} in {where.name}\n"
        sys.stderr.write("".join(traceback.format_exception(error)) if self._debug else text)


def _returned(result: object, context: Context) -> Outcome:
    try:
        payload = json.dumps(result, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        message = f"Unable to marshal response: {error}"
        raise MarshalError(message) from error
    if len(payload) > MAX_PAYLOAD:
        message = f"Response payload size exceeded maximum allowed payload size ({MAX_PAYLOAD} bytes)."
        raise ResponseSizeTooLarge(message)
    return Outcome(payload, context.aws_request_id, failed=False)


def _raised(error: BaseException, context: Context) -> Outcome:
    told = {
        "errorMessage": str(error),
        "errorType": error_type(error),
        "requestId": context.aws_request_id,
        "stackTrace": traceback.format_tb(error.__traceback__)[1:],  # without the harness's own frame
    }
    return Outcome(json.dumps(told).encode(), context.aws_request_id, failed=True)


def _invocation(folder: str, event: bytes, outcome: Outcome, began: float, error: BaseException | None) -> Invocation:
    milliseconds = (time.monotonic() - began) * 1000
    status = None if error else _status(outcome.payload)
    told = error_type(error) if error else None
    return Invocation(folder, outcome.request_id, status, len(event), len(outcome.payload), milliseconds, told)


def _status(payload: bytes) -> int | None:
    match json.loads(payload):
        case {"statusCode": int(status)}:
            return status
    return None


class MarshalError(Exception):
    """The function returned what is not JSON."""


class ResponseSizeTooLarge(Exception):
    """The function returned more than Lambda carries."""


def error_type(error: BaseException) -> str:
    """Name an exception as Lambda does."""
    match error:
        case MarshalError():
            return "Runtime.MarshalError"
        case ResponseSizeTooLarge():
            return "Function.ResponseSizeTooLarge"
        case SystemExit():
            return "Runtime.ExitError"
    return type(error).__name__
