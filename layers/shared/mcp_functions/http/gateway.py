"""The Lambda entry point of MCP endpoints: an event of API Gateway comes in, and an HTTP response goes out.

    handler = LambdaFunction(make_endpoint)
    handler(event, context)      {"statusCode": 200, "headers": {…}, "body": "…", "isBase64Encoded": false}

    event  ->  HttpRequest (`events`)  ->  steps (`exchange`)  ->  Endpoint.answer  ->  response

Nothing after `events` has the caller's token, because API Gateway has checked it. The first event makes the endpoint.
Whatever happens to a request, it gets a response and a line in the log.

A worker is a second Lambda function with the same entry point. Its event is an order to continue a task, which is a
call that goes on after its response.
"""

from __future__ import annotations

import time
from threading import Lock
from typing import TYPE_CHECKING, Any

from mcp_functions import observability
from mcp_functions.http import events, responses
from mcp_functions.http.exchange import HttpExchange
from mcp_functions.http.request_log import RequestLog, note_response
from mcp_functions.protocol.errors import FunctionStopped, Misconfigured, is_ctrl_c, to_mcp_error

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TypeAlias

    from mcp_functions.handlers.base import Handler
    from mcp_functions.http.exchange import Endpoint
    from mcp_functions.observability.lines import Logger
    from mcp_functions.protocol.event_types import LambdaContext, Response, WorkerOrder

    Clock: TypeAlias = Callable[[], float]  # returns the unix seconds


class WorkFailed(Exception):
    """A worker could not continue its task. The exception has no text, because Lambda would log the text."""


class LambdaFunction:
    """A Lambda entry point: `handler(event, context)`.

    Attributes:
        handlers: the handlers that the function offers, for the catalog and for tests.
        now: the clock, unix seconds.
    """

    __name__ = "handler"  # Powertools' Tracer reads the name of a Lambda entry point

    def __init__(
        self,
        make_endpoint: Callable[[str, Clock], Endpoint],
        handlers: tuple[Handler[..., Any], ...] = (),
        *,
        now: Clock = time.time,
        logger: Logger | None = None,
    ) -> None:
        """Keep what the first event needs. `make_endpoint` gets the name of the Lambda function and the clock."""
        self.handlers = handlers
        self.now = now
        self._make_endpoint = make_endpoint
        self._log = RequestLog(logger)
        self._endpoint: Endpoint | None = None
        self._lock = Lock()

    def __call__(self, event: Mapping[str, Any], context: LambdaContext) -> Response:
        """Respond to one event: an HTTP request in payload format 2.0, or an order to continue a task.

        Raises:
            ValueError: the event is neither.
            WorkFailed: the task could not be continued.
        """
        match event:
            case {events.WORKER_ORDER: order}:
                self._continue_task(order, context)
                return {}
        now = self.now()
        http = events.without_credentials(self._log.read(event, context, now))
        with self._log.taking_notes(http) as notes:
            try:
                endpoint = self._get_endpoint(context)
            except BaseException as error:  # a setting is missing or wrong
                if is_ctrl_c(error):
                    raise
                notes.add_error(error)
                response = responses.failure(to_mcp_error(error), None)
            else:
                response = HttpExchange(http, endpoint, notes).respond(now)
            note_response(notes, response)
        return response

    def fresh(self, *, now: Clock | None = None) -> LambdaFunction:
        """Make the same function as in a new container, with nothing cached. Tests pass their own clock."""
        return LambdaFunction(self._make_endpoint, self.handlers, now=now or self.now, logger=self._log.logger)

    def _continue_task(self, order: WorkerOrder, context: LambdaContext) -> None:
        """Carry out a worker's order. A worker has no response, so only the log line shows an error.

        Raises:
            WorkFailed: the task could not be continued. When the client asks for the result, another worker starts.
        """
        has_failed = False
        with self._log.taking_notes() as notes:
            notes.method = "work"
            notes.status = 200
            try:
                _run_task(self._get_endpoint(context), order, context)
            except BaseException as error:  # an author's `sys.exit` must not end the environment
                if is_ctrl_c(error):
                    raise
                notes.add_error(error)
                notes.status = to_mcp_error(error).status
                has_failed = True
        if has_failed:  # raised here, so that it has no cause, whose text Lambda would log
            raise WorkFailed

    def _get_endpoint(self, context: LambdaContext) -> Endpoint:
        """Make the endpoint once. Lambda runs one request at a time, but the local harness runs several."""
        with self._lock:
            if self._endpoint is None:
                self._endpoint = self._make_endpoint(context.function_name, self.now)
            return self._endpoint


def _run_task(endpoint: Endpoint, order: WorkerOrder, context: LambdaContext) -> None:
    """Carry out the order of a worker; Misconfigured if no call of this function may become a task."""
    if endpoint.is_stopped:
        # The task waits. When a client asks for its result, that request invokes another worker.
        observability.current().conclude("refused", FunctionStopped.__name__)
    elif endpoint.run_task is None:
        raise Misconfigured(reason="an order to work, but no tool here has task=…")
    else:
        endpoint.run_task(order, context)
