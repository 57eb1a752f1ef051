"""The Lambda entry point of MCP endpoints: an event comes in, and an HTTP response goes out.

    an HTTP request, in an event of API Gateway     `HttpExchange` responds
    the order to continue a task                    the endpoint continues the task; nobody gets a response

A task is a call that goes on after its response, in a second Lambda function, the worker.
"""

from __future__ import annotations

import time
from threading import Lock
from typing import TYPE_CHECKING, Any

from mcp_functions.http import cors, events
from mcp_functions.http.exchange import HttpExchange
from mcp_functions.http.request_log import RequestLog, note_response
from mcp_functions.protocol.errors import FunctionStopped, Misconfigured, is_ctrl_c, to_mcp_error

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TypeAlias

    from mcp_functions.handlers.base import Handler
    from mcp_functions.http.events import HttpRequest, LambdaContext, Response
    from mcp_functions.http.exchange import Endpoint
    from mcp_functions.observability import Notes
    from mcp_functions.observability.lines import Logger

    Clock: TypeAlias = Callable[[], float]  # returns the unix seconds
    EndpointMaker: TypeAlias = Callable[[str, Clock], Endpoint]  # takes the name of the Lambda function

WORKER_ORDER = "mcpTask"  # the member of an event that orders a worker to continue a task; API Gateway writes none


class WorkFailed(Exception):
    """A worker could not continue its task. The exception has no text, because Lambda would log the text."""


class LambdaFunction:
    """A Lambda entry point: `handler(event, context)`. The first event makes the endpoint, which the function serves.

    Attributes:
        handlers: the handlers that the function offers, for the catalog and for tests.
        now: the clock, unix seconds.
    """

    def __init__(
        self,
        make_endpoint: EndpointMaker,
        handlers: tuple[Handler[..., Any], ...] = (),
        *,
        now: Clock = time.time,
        logger: Logger | None = None,
    ) -> None:
        """Keep what the first event needs; `logger` is the author's, if it writes the log lines."""
        self.__name__ = "handler"  # Powertools' Tracer reads the name of the entry point; an object has none by itself
        self.handlers = handlers
        self.now = now
        self._make_endpoint = make_endpoint
        self._log = RequestLog(logger)
        self._endpoint: Endpoint | None = None
        self._lock = Lock()

    def __call__(self, event: Mapping[str, Any], context: LambdaContext) -> Response:
        """Respond to one event.

        Args:
            event: an HTTP request in payload format 2.0, or an order to continue a task.
            context: the context that Lambda passes.

        Raises:
            ValueError: the event is neither.
            WorkFailed: the task could not be continued. When the client asks for the result, another worker starts.
        """
        if WORKER_ORDER in event:
            self._continue_task(event[WORKER_ORDER], context)
            return {}
        http = events.read(event)
        with self._log.taking_notes(context, http) as notes:
            exchange = HttpExchange(http, event, context, notes)
            try:
                response = exchange.respond(self._get_endpoint(context), self.now())
            except BaseException as error:  # also SystemExit: an author's `sys.exit` must not end the environment
                if is_ctrl_c(error):
                    raise
                notes.add_error(error)
                response = exchange.error_response(error)
            note_response(notes, response)
        self._add_cors_headers(response, http)
        return response

    def fresh(self, *, now: Clock | None = None) -> LambdaFunction:
        """Make the same function as in a new container, with nothing cached. Tests pass their own clock."""
        return LambdaFunction(self._make_endpoint, self.handlers, now=now or self.now, logger=self._log.logger)

    def _continue_task(self, order: Mapping[str, Any], context: LambdaContext) -> None:
        """Continue a task. Only a role that may call Lambda's Invoke API can order it, so no client can."""
        has_failed = False
        with self._log.taking_notes(context) as notes:
            notes.method = "work"
            notes.status = 200
            try:
                _run_task(self._get_endpoint(context), order, context, notes)
            except BaseException as error:  # also SystemExit, as in `__call__`
                if is_ctrl_c(error):
                    raise
                notes.add_error(error)
                notes.status = to_mcp_error(error).status
                has_failed = True
        if has_failed:
            raise WorkFailed

    def _get_endpoint(self, context: LambdaContext) -> Endpoint:
        """Make the endpoint once. Lambda runs one request at a time, but the local harness runs several."""
        with self._lock:
            if self._endpoint is None:
                self._endpoint = self._make_endpoint(context.function_name, self.now)
            return self._endpoint

    def _add_cors_headers(self, response: Response, http: HttpRequest) -> None:
        """Let web pages read the response, also if it is an error; without an endpoint, no page is known."""
        if self._endpoint and self._endpoint.settings.allowed_origins:
            origin = http.headers.get("origin")
            response["headers"].update(cors.response_headers(origin, self._endpoint.settings.allowed_origins))


def _run_task(endpoint: Endpoint, order: Mapping[str, Any], context: LambdaContext, notes: Notes) -> None:
    """Continue a task, unless the operator stopped the function.

    Raises:
        Misconfigured: no tool of the function may become a task.
    """
    if endpoint.is_stopped:
        # The task waits. A client asks for its result now and then, and that request invokes another worker.
        notes.conclude("refused", FunctionStopped.__name__)
        return
    if endpoint.run_task is None:
        raise Misconfigured(reason="an order to work, but no tool here has task=…")
    endpoint.run_task(order, context)
