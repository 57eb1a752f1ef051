"""The Lambda entry point of MCP endpoints: an event of API Gateway comes in, and an HTTP response goes out.

    handler = LambdaFunction(make_endpoint)
    handler(event, context)      {"statusCode": 200, "headers": {…}, "body": "…", "isBase64Encoded": false}

The first event makes the endpoint. A worker, which continues a task after the response, has the same entry point. Its
event is an order, which `worker_orders` carries out.
"""

from __future__ import annotations

import time
from threading import Lock
from typing import TYPE_CHECKING, Any

from mcp_functions.http import cors, events, worker_orders
from mcp_functions.http.exchange import HttpExchange
from mcp_functions.http.request_log import RequestLog, note_response
from mcp_functions.protocol.errors import is_ctrl_c

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


class LambdaFunction:
    """A Lambda entry point: `handler(event, context)`.

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
            WorkFailed: the task could not be continued.
        """
        if worker_orders.KEY in event:
            worker_orders.carry_out(event[worker_orders.KEY], context, self._log, self._get_endpoint)
            return {}
        http = events.read(event)
        with self._log.taking_notes(context, http) as notes:
            response = self._respond(HttpExchange(http, event, context, notes), context, notes)
            note_response(notes, response)
        self._add_cors_headers(response, http)
        return response

    def fresh(self, *, now: Clock | None = None) -> LambdaFunction:
        """Make the same function as in a new container, with nothing cached. Tests pass their own clock."""
        return LambdaFunction(self._make_endpoint, self.handlers, now=now or self.now, logger=self._log.logger)

    def _respond(self, exchange: HttpExchange, context: LambdaContext, notes: Notes) -> Response:
        """Respond to a request. Every exception becomes an error response, so that the client gets one."""
        try:
            return exchange.respond(self._get_endpoint(context), self.now())
        except BaseException as error:  # also SystemExit: an author's `sys.exit` must not end the environment
            if is_ctrl_c(error):
                raise
            notes.add_error(error)
            return exchange.error_response(error)

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
