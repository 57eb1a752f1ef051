"""The Lambda function of the front: `handler = serve_oauth()`.

It keeps nothing between two requests that another container would need. A request that fails tells a browser nothing,
and a client an error of OAuth; the log has the reason.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from threading import Lock
from typing import TYPE_CHECKING, Any

from mcp_functions import aws, observability, settings
from mcp_functions.http import events
from mcp_functions.http.outcomes import BAD_REQUEST, note_crash, note_error
from mcp_functions.oauth import failures, front
from mcp_functions.oauth.errors import OAuthError
from mcp_functions.protocol.errors import FunctionStopped, McpError, is_ctrl_c

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mcp_functions.http.events import HttpRequest
    from mcp_functions.http.lambda_types import LambdaContext, Response
    from mcp_functions.oauth.safe_fetch import Network
    from mcp_functions.observability import Logger, Notes
    from mcp_functions.seal.data_keys import Wrapping


def serve_oauth(
    *,
    wrapping: Sequence[Wrapping] | None = None,
    network: Network | None = None,
    logger: Logger | None = None,
    now: Callable[[], float] = time.time,
) -> SignInFunction:
    """Make the Lambda entry point of the authorization front.

    Args:
        wrapping: another KMS than the keys of MCP_KMS_KEYS, as in `serve`.
        network: what fetches of metadata documents use, for tests.
        logger: writes the line of each request, as in `serve`.
        now: the clock, unix seconds, for tests.
    """
    aws.prepare(aws.find_endpoint(os.environ, "kms"))  # at init, where Lambda gives a full CPU
    return SignInFunction(wrapping, network, logger, now)


class SignInFunction:
    """A Lambda entry point: `handler(event, context)`.

    Attributes:
        handlers: of MCP; there are none, so the catalog has nothing of this function.
        now: the clock, unix seconds.
    """

    def __init__(
        self,
        wrapping: Sequence[Wrapping] | None,
        network: Network | None,
        logger: Logger | None,
        now: Callable[[], float],
    ) -> None:
        """Keep what the first event needs; see `serve_oauth`."""
        self.__name__ = "handler"  # Powertools' Tracer names a segment after the function that it wraps
        self.handlers: tuple[Any, ...] = ()
        self.now = now
        self._wrapping, self._network, self._logger = wrapping, network, logger
        self._front: front.Front | None = None
        self._lock = Lock()
        self._is_cold = True

    def __call__(self, event: Mapping[str, Any], context: LambdaContext) -> Response:
        """Respond to one event.

        Raises:
            ValueError: the event is not an HTTP request in payload format 2.0.
        """
        http = events.read(event)
        notes = self._notes(http, context)
        before, began = observability.set_current(notes), time.perf_counter()
        try:
            with observability.correlated(self._logger, notes):
                response = self._respond(event, http, context, notes)
                notes.seconds = time.perf_counter() - began
                self._log(notes, response)
        finally:
            observability.restore_current(before)
        return response

    def fresh(self, *, now: Callable[[], float] | None = None) -> SignInFunction:
        """Make the same function as in a new container, with nothing cached. Tests pass their own clock."""
        return SignInFunction(self._wrapping, self._network, self._logger, now or self.now)

    def _respond(self, event: Mapping[str, Any], http: HttpRequest, context: LambdaContext, notes: Notes) -> Response:
        """Answer a request, or turn its exception into a response: the only place that does."""
        try:
            return self._ready(context).answer(event, http)
        except OAuthError as error:
            notes.conclude("refused", error.description)
            return failures.refused(error, http)
        except McpError as error:
            note_error(notes, error)
            return failures.failed(error, http)
        except BaseException as error:  # Lambda's runtime would log the text of any exception that leaves this
            if is_ctrl_c(error):
                raise
            note_crash(notes, error)
            return failures.failed(McpError(), http)

    def _ready(self, context: LambdaContext) -> front.Front:
        """Make the front once. Lambda runs one request at a time, but the local harness runs several.

        Raises:
            FunctionStopped: the operator stopped the front.
            Misconfigured: a variable is missing or invalid.
        """
        with self._lock:
            if self._front is None:
                common = settings.read(os.environ)
                if common.folder(context.function_name) in common.stopped_functions:
                    raise FunctionStopped
                self._front = front.make(os.environ, context.function_name, self._wrapping, self._network, self.now)
            return self._front

    def _notes(self, http: HttpRequest, context: LambdaContext) -> Notes:
        notes = observability.Notes()
        notes.cold_start = observability.is_cold(first=self._is_cold)
        self._is_cold = False
        notes.request_id = getattr(context, "aws_request_id", None)
        notes.correlation_id = http.context.get("requestId")
        notes.request_bytes = observability.size(http.body)
        return notes

    def _log(self, notes: Notes, response: Response) -> None:
        notes.status, notes.response_bytes = response["statusCode"], observability.size(response["body"])
        if not notes.outcome:
            notes.outcome = "refused" if notes.status >= BAD_REQUEST else "complete"
        with suppress(Exception):  # a log line that fails must not cost the client its response
            observability.write_line(notes, self._logger)
        listener = observability.listener.get()
        if listener:
            listener(notes)
