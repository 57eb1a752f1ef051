"""The Lambda entry point: an API Gateway event comes in, and an HTTP response goes out.

`LambdaFunction._observe` is the only place that turns an exception into an error of JSON-RPC. An `McpError` has its own
code and status. Any other exception becomes -32603, and the log gets its type and frames, never its text: the text may
quote arguments or answers.
"""

from __future__ import annotations

import time
from contextlib import nullcontext, suppress
from threading import Lock
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from mcp_functions import observability
from mcp_functions.http import events, responses
from mcp_functions.http.exchange import HttpExchange
from mcp_functions.protocol.errors import Crash, InternalError, McpError, Misconfigured, is_ctrl_c

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_functions.handlers.base import Handler
    from mcp_functions.http.exchange import Endpoint
    from mcp_functions.http.lambda_types import LambdaContext, Response
    from mcp_functions.observability import Logger, Notes

P = ParamSpec("P")
T = TypeVar("T")

BAD_REQUEST = 400
WORK = "mcpTask"  # the member of an event that tells a worker to continue a task; no gateway writes it
WORK_METHOD = "work"  # what the log line of a worker has as its method


class WorkFailed(Exception):
    """A worker could not continue its task. It has no text, because Lambda logs the text and passes it on."""


def lazy_value(make: Callable[[], T]) -> Callable[[], T]:
    """Return a function that makes a value at its first call and returns the same value ever after, in any thread."""
    values: list[T] = []
    lock = Lock()

    def value() -> T:
        with lock:
            if not values:
                values.append(make())
            return values[0]

    return value


def lazy_function(make: Callable[[], Callable[P, T]]) -> Callable[P, T]:
    """Return a function that is made at its first call."""
    made = lazy_value(make)

    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        return made()(*args, **kwargs)

    return call


class LambdaFunction:
    """A Lambda entry point: `handler(event, context)`.

    Attributes:
        handlers: what the function offers, for the catalog and for tests.
        now: the clock, unix seconds.
    """

    def __init__(
        self,
        make_endpoint: Callable[[str], Endpoint],
        handlers: tuple[Handler[..., Any], ...] = (),
        *,
        now: Callable[[], float] = time.time,
        recreate: Callable[..., LambdaFunction] | None = None,
        logger: Logger | None = None,
    ) -> None:
        """Keep what the first event needs; `recreate` makes the same function with another clock."""
        self.__name__ = "handler"  # Powertools' Tracer names a segment after the function that it wraps
        self.handlers = handlers
        self.now = now
        self._make_endpoint = make_endpoint
        self._recreate = recreate
        self._logger = logger
        self._endpoint: Endpoint | None = None
        self._lock = Lock()
        self._is_cold = True

    def __call__(self, event: Mapping[str, Any], context: LambdaContext) -> Response:
        """Respond to one event.

        Args:
            event: an HTTP request in payload format 2.0, or an order to continue a task.
            context: Lambda's context.

        Raises:
            ValueError: the event is neither.
            WorkFailed: the task could not be continued. A later poll starts another worker.
        """
        if WORK in event:
            return self._work(event[WORK], context)
        http = events.read(event)
        notes = self._notes(context)
        notes.correlation_id = http.context.get("requestId")
        notes.request_bytes = len(http.body) * 3 // 4 if http.is_base64 else observability.size(http.body)
        exchange = HttpExchange(http, event, context, notes)
        with observability.correlated(self._logger, notes) if self._logger else nullcontext():
            response = self._observe(notes, lambda: exchange.respond(self._ready(context), self.now()))
            if isinstance(response, McpError):
                id_ = response.id if exchange.id is None else exchange.id
                response = responses.failure(exchange.http, response, id_)
            _note_response(notes, response)
            self._log(notes)
        return response

    def fresh(self, *, now: Callable[[], float] | None = None) -> LambdaFunction:
        """Make the same function as in a new container, with nothing cached. Tests pass their own clock."""
        clock = now or self.now
        if self._recreate:
            return self._recreate(now=clock)
        return LambdaFunction(self._make_endpoint, self.handlers, now=clock, logger=self._logger)

    def _work(self, order: Mapping[str, Any], context: LambdaContext) -> Response:
        """Continue a task. Only this function's own role can order it, through Lambda's Invoke API."""
        notes = self._notes(context)
        notes.method, notes.status = WORK_METHOD, 200
        error = self._observe(notes, lambda: _continue_task(self._ready(context), order, context))
        if error:
            notes.status = error.status
        self._log(notes)
        if error:
            raise WorkFailed
        return {}

    def _observe(self, notes: Notes, action: Callable[[], T]) -> T | McpError:
        """Run an action while its notes are the current ones; return its error if it raises one."""
        before, began = observability.take(notes), time.perf_counter()
        try:
            return action()
        except McpError as raised:
            error = raised
        except BaseException as raised:  # Lambda's runtime would log the text of any exception that leaves this
            if is_ctrl_c(raised):
                raise
            error = Crash(InternalError.sentence, raised)
        finally:
            notes.seconds = time.perf_counter() - began
            observability.put_back(before)
        note_error(notes, error)
        return error

    def _ready(self, context: LambdaContext) -> Endpoint:
        """Make the endpoint once. Lambda runs one request at a time, but the local harness runs several."""
        with self._lock:
            self._endpoint = self._endpoint or self._make_endpoint(context.function_name)
            return self._endpoint

    def _notes(self, context: LambdaContext) -> Notes:
        notes = observability.Notes()
        notes.cold_start = observability.is_cold(first=self._is_cold)
        self._is_cold = False
        notes.request_id = getattr(context, "aws_request_id", None)
        return notes

    def _log(self, notes: Notes) -> None:
        with suppress(Exception):  # a log line that fails must not cost the client its response
            observability.tell(notes, self._logger)
        listener = observability.listener.get()
        if listener:
            listener(notes)


def note_crash(notes: Notes, error: BaseException) -> None:
    """Note an unexpected exception, without its text."""
    notes.crash(error)
    notes.code = InternalError.code


def note_error(notes: Notes, error: McpError) -> None:
    """Note why a request was refused, or has failed."""
    if isinstance(error, Crash):
        note_crash(notes, error.cause)
        return
    notes.conclude("failed" if error.ours else "refused", error.reason)
    notes.code = error.code
    notes.misconfigured = isinstance(error, Misconfigured)


def _note_response(notes: Notes, response: Response) -> None:
    notes.status = response["statusCode"]
    notes.response_bytes = observability.size(response["body"])
    if not notes.outcome:
        notes.outcome = "refused" if notes.status >= BAD_REQUEST else "complete"


def _continue_task(endpoint: Endpoint, order: Mapping[str, Any], context: LambdaContext) -> None:
    if endpoint.work is None:
        message = "an order to work, but no tool here has task=…"
        raise Misconfigured(message)
    endpoint.work(order, context)
