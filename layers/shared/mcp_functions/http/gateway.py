"""The door between HTTP and JSON-RPC: an event comes in, a request goes on; an answer or an error goes out.

The only place that turns an exception into an answer: an `McpError` has its own code and status; anything else is
-32603 and a log line of type and frames, never its text, which may quote arguments or answers.
"""

from __future__ import annotations

import binascii
import time
from contextlib import suppress
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

from mcp_functions import observability
from mcp_functions.http import cors, events, identity
from mcp_functions.protocol import headers, json_reader, json_writer
from mcp_functions.protocol.constants import CALLS, METHODS, PROTOCOL_VERSION
from mcp_functions.protocol.errors import (
    ContentTooLarge,
    Crash,
    InternalError,
    InvalidRequest,
    McpError,
    Misconfigured,
    ParseError,
    ResultTooLarge,
    UnsupportedMediaType,
    is_ctrl_c,
)
from mcp_functions.protocol.json_writer import chunks, dumps_ascii, dumps_with_member
from mcp_functions.protocol.messages import AnyResult, ForwardedResponse, Request, is_request, to_message

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mcp_functions.handlers import Handler
    from mcp_functions.http.events import HttpRequest
    from mcp_functions.observability import Logger, Notes
    from mcp_functions.protocol.wire_types import JSONRPCNotification, JSONRPCRequest, RequestId
    from mcp_functions.settings import Settings

Response: TypeAlias = "dict[str, Any]"
T = TypeVar("T")
Continuation: TypeAlias = "tuple[HttpRequest, JSONRPCRequest]"

GATEWAY_SECONDS = 30.0  # API Gateway's own limit for an HTTP API
MEGABYTE = 1024 * 1024
MAX_RESPONSE = {"2.0": 6 * MEGABYTE, "1.0": 6 * MEGABYTE, "alb": MEGABYTE}  # bytes of what the function returns
SPARE = 64 * 1024  # for what Lambda adds
LONGEST_ESCAPE = 3  # characters of ASCII that a byte of a body may become: JSON holds no control characters
BAD_REQUEST, SERVER_ERROR = 400, 500
WELL_KNOWN = "/.well-known/"
WORK = "mcpTask"  # what an event holds that orders work; no gateway writes it
WORK_METHOD = "work"  # what the line of a worker says in the place of a method
NO_TASKS = "an order to work, but no tool here has task=…"
COMMON = {  # results may be private and states are; and nothing here is a page
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "strict-transport-security": "max-age=31536000",
    "x-content-type-options": "nosniff",
}
JSON = {**COMMON, "content-type": "application/json"}
STREAM = {**COMMON, "content-type": "text/event-stream", "x-accel-buffering": "no"}


class Endpoint(NamedTuple):
    """What is behind this door.

    Attributes:
        settings: of the deployment.
        answer: answers a request.
        documents: that anybody may read, by path.
        parameters: the `Mcp-Param-*` headers that its tools read.
        work: goes on with a task, where calls may become tasks.
        turn: reads what is no message of this revision, where a dialect is spoken that has such messages.
        legacy: answers clients of earlier revisions; None from it is for this revision to answer, or to refuse.

    """

    settings: Settings
    answer: Callable[[Request], AnyResult]
    documents: Mapping[str, Mapping[str, Any]] = {}
    parameters: Sequence[str] = ()
    work: Callable[[Mapping[str, Any], Any], None] | None = None
    turn: Callable[[HttpRequest, Any], Continuation | None] | None = None
    legacy: Callable[[HttpRequest, Mapping[str, Any], Any], Response | None] | None = None

    def works(self, order: Mapping[str, Any], context: Any) -> None:  # noqa: ANN401 - Lambda's context object
        """Go on with a task.

        Raises:
            Misconfigured: there can be none here.

        """
        if self.work is None:
            raise Misconfigured(NO_TASKS)
        self.work(order, context)


def lazy_value(make: Callable[[], T]) -> Callable[[], T]:
    """Make a thing when it is first asked for, and only one, however many threads ask at once."""
    made: list[T] = []
    making = Lock()

    def thing() -> T:
        with making:
            if not made:
                made.append(make())
            return made[0]

    return thing


class LambdaFunction:
    """A Lambda entry point: `handler(event, context)`.

    Attributes:
        handlers: what it offers, for the catalog and for tests.
        now: its clock, unix seconds.

    """

    def __init__(
        self,
        wire: Callable[[str], Endpoint],
        handlers: tuple[Handler[..., Any], ...] = (),
        *,
        now: Callable[[], float] = time.time,
        again: Callable[..., LambdaFunction] | None = None,
        logger: Logger | None = None,
    ) -> None:
        """Hold what is needed; `wire` is called at the first event, with the Lambda's physical name."""
        self.__name__ = "handler"  # decorators read the name of what they wrap: Powertools' Tracer names a segment so
        self.handlers = handlers
        self.now = now
        self._wire = wire
        self._again = again
        self._logger = logger
        self._endpoint: Endpoint | None = None
        self._wiring = Lock()
        self._cold = True

    def __call__(self, event: Mapping[str, Any], context: Any) -> Response:  # noqa: ANN401 - Lambda's context object
        """Answer one event.

        Args:
            event: HTTP, as API Gateway, a function URL or a load balancer writes it.
            context: Lambda's context.

        Raises:
            ValueError: the event is not HTTP at all, so there is nobody to answer.
            WorkFailed: nobody could go on with the task that the event names; a later poll begins another worker.

        """
        if WORK in event:
            return self._work(event[WORK], context)
        http = events.read(event)
        notes = self._notes(http, context)
        with observability.correlated(self._logger, notes):
            before, began = observability.take(notes), time.perf_counter()
            try:
                response = self._response(http, event, context, notes)
            finally:
                notes.seconds = time.perf_counter() - began
                observability.put_back(before)
            _note_response(notes, response)
            self._tell(notes)
        return response

    def _wired(self, name: str) -> Endpoint:
        """Wire, once: Lambda has one request at a time, but the harness many, and each wiring has keys of its own."""
        with self._wiring:
            self._endpoint = self._endpoint or self._wire(name)
            return self._endpoint

    def _tell(self, notes: Notes) -> None:
        with suppress(Exception):  # an answer stands, whatever becomes of the line about it
            observability.tell(notes, self._logger)
        if hear := observability.listener.get():
            hear(notes)

    def _notes(self, http: HttpRequest, context: Any) -> Notes:  # noqa: ANN401 - Lambda's context object
        notes = observability.Notes()
        if self._cold:
            self._cold, notes.cold_start = False, observability.is_cold(first=True)
        notes.correlation_id = http.context.get("requestId")
        notes.request_id = getattr(context, "aws_request_id", None)
        notes.request_bytes = len(http.body) * 3 // 4 if http.is_base64 else observability.size(http.body)
        return notes

    def _response(
        self,
        http: HttpRequest,
        event: Mapping[str, Any],
        context: Any,  # noqa: ANN401 - Lambda's context object
        notes: Notes,
    ) -> Response:
        id_: RequestId | None = None
        try:
            endpoint = self._wired(context.function_name)
            if endpoint.settings.allowed_origins:
                allowed = endpoint.settings.allowed_origins
                http = http._replace(granted=cors.granted(http.headers.get("origin"), allowed))
            response = _by_http(http, endpoint, notes) or _of_another_era(http, event, context, endpoint, notes)
            if response:
                return response
            http, message = _parsed(http, endpoint)
            _note_message(notes, message)
            if not is_request(message):
                headers.check_repeated(message, http.headers)
                notes.conclude("complete")
                return _empty(http, 202)  # "the server MUST return HTTP status code 202 Accepted with no body"
            id_ = message["id"]
            check_media(http)
            request = _request(message, http, event, context, endpoint.settings, self.now())
            answer = endpoint.answer(request)
            _note_answer(notes, answer)
            return _answered(http, answer, id_)
        except McpError as error:
            note_error(notes, error)
            return _failed(http, error, error.id if id_ is None else id_)
        except BaseException as error:  # the last door: Lambda's runtime would log the text of whatever passes it
            if is_ctrl_c(error):
                raise
            note_crash(notes, error)
            # Without an id no client could tell whose error this is, so HTTP says that there is one.
            return _failed(http, InternalError(), id_, status=SERVER_ERROR if id_ is None else None)

    def _work(self, order: Mapping[str, Any], context: Any) -> Response:  # noqa: ANN401 - Lambda's context object
        """Go on with a task: what the function orders of its own worker, and no gateway can."""
        cold, self._cold = self._cold, False
        notes = observability.Notes.of(
            method=WORK_METHOD,
            status=200,
            cold_start=observability.is_cold(first=cold),
            request_id=getattr(context, "aws_request_id", None),
        )
        before, began = observability.take(notes), time.perf_counter()
        try:
            done = self._done(order, context, notes)
        finally:
            notes.seconds = time.perf_counter() - began
            observability.put_back(before)
        self._tell(notes)
        if not done:
            raise WorkFailed
        return {}

    def _done(self, order: Mapping[str, Any], context: Any, notes: Notes) -> bool:  # noqa: ANN401 - likewise
        try:
            endpoint = self._wired(context.function_name)
            endpoint.works(order, context)
        except McpError as error:
            note_error(notes, error)
            notes.status = error.status
            return False
        except BaseException as error:  # Lambda's runtime would log its text
            if is_ctrl_c(error):
                raise
            note_crash(notes, error)
            return False
        return True

    def fresh(self, *, now: Callable[[], float] | None = None) -> LambdaFunction:
        """Make the same function as in a new container: nothing read, nothing kept; tests bring a clock."""
        clock = now or self.now
        if self._again:
            return self._again(now=clock)
        return LambdaFunction(self._wire, self.handlers, now=clock, logger=self._logger)


def _note_message(notes: Notes, message: JSONRPCRequest | JSONRPCNotification) -> None:
    """Note the method, and for now that nobody here has such a name: who finds the handler corrects that."""
    method = message["method"]
    notes.method = method if method in METHODS else observability.UNKNOWN
    if method in CALLS or method == "completion/complete":
        notes.handler = observability.UNKNOWN
    meta = message["params"].get("_meta")
    notes.traceparent = meta.get("traceparent") if isinstance(meta, dict) else None


class WorkFailed(Exception):
    """A worker could not go on. It says no more than that, because Lambda logs what it says and passes it on."""


def _note_answer(notes: Notes, answer: AnyResult) -> None:
    if isinstance(answer, ForwardedResponse):
        notes.conclude("forwarded")
    elif answer.result.get("resultType") != "input_required":
        notes.conclude("complete")
        notes.tool_error = answer.result.get("isError") is True
    else:
        notes.conclude("input_required" if answer.result.get("inputRequests") else "shed")


def note_crash(notes: Notes, error: BaseException) -> None:
    """Note what nobody expected; never its text, which may quote anything."""
    notes.crash(error)
    notes.code = InternalError.code


def note_error(notes: Notes, error: McpError) -> None:
    """Note how a request was refused, or failed."""
    if isinstance(error, Crash):
        note_crash(notes, error.cause)
        return
    notes.conclude("failed" if error.ours else "refused", error.reason)
    notes.code, notes.misconfigured = error.code, isinstance(error, Misconfigured)


def _note_response(notes: Notes, response: Response) -> None:
    notes.status, notes.response_bytes = response["statusCode"], observability.size(response["body"])
    if not notes.outcome:
        notes.outcome = "refused" if notes.status >= BAD_REQUEST else "complete"


def _of_another_era(
    http: HttpRequest,
    event: Mapping[str, Any],
    context: Any,  # noqa: ANN401 - Lambda's context object
    endpoint: Endpoint,
    notes: Notes,
) -> Response | None:
    """Have a client of an earlier revision answered; None if it is none."""
    if endpoint.legacy and http.headers.get("mcp-protocol-version") != PROTOCOL_VERSION:
        response = endpoint.legacy(http, event, context)
        if response:
            return response
    return None if http.method == "POST" else _not_allowed(http, "POST", notes)


def _by_http(http: HttpRequest, endpoint: Endpoint, notes: Notes) -> Response | None:
    """Answer what HTTP alone decides, before anybody asks who calls; None if it may be a message."""
    settings, origin = endpoint.settings, http.headers.get("origin")
    # "If the Origin header is present and invalid, servers MUST respond with HTTP 403 Forbidden."
    if origin is not None and origin not in settings.allowed_origins:
        notes.reason = "origin"
        return _empty(http, 403)
    document = endpoint.documents.get(http.path)
    if document is None and http.path.startswith(WELL_KNOWN):
        notes.reason = "not_found"
        return _empty(http, 404)
    if http.method == "OPTIONS" and cors.is_preflight(http):
        notes.method = "preflight"
        methods = "GET" if document is not None else "POST, GET, DELETE" if endpoint.legacy else "POST"
        return _empty(http, 204, cors.preflight(methods, settings.auth_mode, endpoint.parameters))
    if document is None:
        return None
    if http.method != "GET":
        return _not_allowed(http, "GET", notes)
    notes.method = "metadata"
    return _json(http, 200, document)


def _not_allowed(http: HttpRequest, allowed: str, notes: Notes) -> Response:
    notes.outcome, notes.reason = "refused", "http_method"
    return _empty(http, 405, {"allow": allowed})


def _parsed(http: HttpRequest, endpoint: Endpoint) -> tuple[HttpRequest, JSONRPCRequest | JSONRPCNotification]:
    try:
        body = body_of(http, endpoint.settings.max_body_bytes)
        return (
            (http, to_message(json_reader.loads(body))) if endpoint.turn is None else _turned(http, body, endpoint.turn)
        )
    except ParseError:
        check_media(http)  # if it does not even say that it is JSON, that is what the client should hear
        raise


def _turned(
    http: HttpRequest, body: str | bytes, turn: Callable[[HttpRequest, Any], Continuation | None]
) -> tuple[HttpRequest, JSONRPCRequest | JSONRPCNotification]:
    value = json_reader.loads(body)
    try:
        return http, to_message(value)
    except InvalidRequest:
        turned = turn(http, value)
        if turned is None:
            raise
        return turned


def check_media(http: HttpRequest) -> None:
    """Refuse a body that is not plain JSON.

    Raises:
        UnsupportedMediaType: its headers say so.

    """
    media = http.headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    if media != "application/json" or http.headers.get("content-encoding", "identity") != "identity":
        raise UnsupportedMediaType


def body_of(http: HttpRequest, limit: int) -> str | bytes:
    """Take the body of a request.

    Raises:
        ContentTooLarge: it is over `limit`, in bytes.
        ParseError: it is not the base64 that it says it is.

    """
    text = http.body
    if len(text) > limit * 2:  # no need to look closer: base64 adds a third
        raise ContentTooLarge
    try:
        body = binascii.a2b_base64(text, strict_mode=True) if http.is_base64 else text
        size = len(body if isinstance(body, bytes) else body.encode())
    except ValueError:  # not base64, or half of a surrogate pair
        raise ParseError from None
    if size > limit:
        raise ContentTooLarge
    return body


def _request(  # noqa: PLR0913, PLR0917 - what makes a request, each from its own source
    message: JSONRPCRequest,
    http: HttpRequest,
    event: Mapping[str, Any],
    context: Any,  # noqa: ANN401 - Lambda's context object
    settings: Settings,
    now: float,
) -> Request:
    # "MCP servers MUST validate access tokens before processing the request"
    caller = identity.caller(http, settings, now)
    headers.admit(message, http.headers)
    last = ends(context, now)
    heard = deadline(http, last, now)
    return Request(message, http.headers, caller.principal, http.address, heard, event, caller.scopes, last)


def ends(context: Any, now: float) -> float:  # noqa: ANN401 - Lambda's context object
    """Say when Lambda ends this function, unix seconds."""
    return float(now + context.get_remaining_time_in_millis() / 1000)


def deadline(http: HttpRequest, last: float, now: float) -> float:
    """Say until when somebody waits for the answer of a function that Lambda ends at `last`, unix seconds."""
    # API Gateway writes milliseconds; SAM local writes seconds of its own start, which say nothing about this request.
    # And nobody waits for what came longer ago than the gateway waits: then it is this clock that is ahead.
    began = http.began / 1000
    if not now - GATEWAY_SECONDS < began <= now:
        began = now
    return min(last, began + GATEWAY_SECONDS)


def _answered(http: HttpRequest, answer: AnyResult, id_: RequestId) -> Response:
    if isinstance(answer, ForwardedResponse):
        return dict(answer.response)
    if answer.body:
        return fitting(http, events.response(http, 200, STREAM if answer.body.is_stream else JSON, answer.body.text))
    message = {"jsonrpc": "2.0", "id": id_, "result": answer.result}
    if answer.notifications and events.takes_stream(http):
        # "the server … MAY send notifications before the response"; a buffered body is a legal, if late, stream
        messages = (*answer.notifications, message)
        stream = "".join(f"event: message\ndata: {json_writer.dumps(each)}\n\n" for each in messages)
        return fitting(http, events.response(http, 200, STREAM, stream))
    text = (
        dumps_with_member({"jsonrpc": "2.0", "id": id_}, "result", answer.text)
        if answer.text
        else json_writer.dumps(message)
    )
    return fitting(http, events.response(http, 200, JSON, text))


def _failed(http: HttpRequest, error: McpError, id_: RequestId | None, *, status: int | None = None) -> Response:
    told = {"code": error.code, "message": error.message, **({} if error.data is None else {"data": error.data})}
    named = {} if id_ is None else {"id": id_}
    return _json(http, status or error.status, {"jsonrpc": "2.0", **named, "error": told}, error.headers)


def _json(
    http: HttpRequest, status: int, message: Mapping[str, Any], more: Mapping[str, str] | None = None
) -> Response:
    return events.response(http, status, {**JSON, **more} if more else JSON, json_writer.dumps(message))


def _empty(http: HttpRequest, status: int, more: Mapping[str, str] | None = None) -> Response:
    return events.response(http, status, {**COMMON, **(more or {})}, "")


def fitting(http: HttpRequest, response: Response) -> Response:
    """Let nothing out that Lambda would not carry: a crash of the gateway tells a client nothing."""
    body, most = response["body"], MAX_RESPONSE[http.source] - SPARE
    try:
        size = len(body) if body.isascii() else len(body.encode())
    except UnicodeEncodeError:  # Lambda would crash on it
        raise InternalError(reason="the function returned half of a surrogate pair") from None
    if size * LONGEST_ESCAPE > most and _escaped_size(body) > most:
        raise ResultTooLarge(MAX_RESPONSE[http.source] // MEGABYTE)
    return response


def _escaped_size(text: str) -> int:
    """Count the characters of a text as a JSON string, a part at a time: a copy of all of it may not fit in memory."""
    return sum(len(dumps_ascii(part)) - 2 for part in chunks(text))
