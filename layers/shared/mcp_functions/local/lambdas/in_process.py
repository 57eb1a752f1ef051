"""Functions run in the harness's own process, each call in the thread of its request: quick, and easy to debug."""

from __future__ import annotations

import json
import sys
import time
import traceback
from typing import TYPE_CHECKING

from mcp_functions.local.lambdas.context import TIMEOUT, WORKER_TIMEOUT, context_of
from mcp_functions.local.lambdas.service import MAX_PAYLOAD, Outcome
from mcp_functions.observability import PACKAGE, listener
from mcp_functions.protocol.constants import WORKER

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.local.lambdas.functions import Function


class InProcess:
    """Calls loaded functions."""

    def __init__(self, functions: Mapping[str, Function], *, stack: str, debug: bool = False) -> None:
        """Take the loaded functions by folder.

        Args:
            functions: by folder.
            stack: the physical name of a function is "<stack>-<folder>".
            debug: write the toolkit's own frames too, when a function raises.

        """
        self._functions, self._stack, self._debug = functions, stack, debug

    def run(self, folder: str, event: bytes) -> Outcome:
        """Call one function.

        Args:
            folder: of a function there is.
            event: as JSON.

        """
        own, seconds = folder.removesuffix(WORKER), WORKER_TIMEOUT if folder.endswith(WORKER) else TIMEOUT
        context, began = context_of(f"{self._stack}-{folder}", seconds), time.monotonic()
        error = None
        listening = listener.set(lambda notes: self._tell(folder, notes.raised))
        try:
            payload = _written(self._functions[own].handler(json.loads(event), context))
        except BaseException as raised:  # noqa: BLE001 - Lambda survives whatever a function raises
            payload, error = _error_object(raised, context.aws_request_id), error_type(raised)
            self._tell(folder, raised)
        finally:
            listener.reset(listening)
        return Outcome(payload, context.aws_request_id, (time.monotonic() - began) * 1000, error)

    def _tell(self, folder: str, error: BaseException | None) -> None:
        """Show the author what a function raised, text and all: on Lambda, neither a client nor the log is told."""
        if error is None:
            return
        told = traceback.TracebackException.from_exception(error)
        if not self._debug:
            own = [frame for frame in told.stack if not frame.filename.startswith(PACKAGE)]
            told.stack = traceback.StackSummary.from_list(own)
        sys.stderr.write(f"{folder} raised\n{''.join(told.format())}")


def _written(result: object) -> bytes:
    try:
        payload = json.dumps(result, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        message = f"Unable to marshal response: {error}"
        raise MarshalError(message) from error
    if len(payload) > MAX_PAYLOAD:
        message = f"Response payload size exceeded maximum allowed payload size ({MAX_PAYLOAD} bytes)."
        raise ResponseSizeTooLarge(message)
    return payload


def _error_object(error: BaseException, request_id: str) -> bytes:
    told = {
        "errorMessage": str(error),
        "errorType": error_type(error),
        "requestId": request_id,
        "stackTrace": traceback.format_tb(error.__traceback__)[1:],  # without the harness's own frame
    }
    return json.dumps(told).encode()


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
