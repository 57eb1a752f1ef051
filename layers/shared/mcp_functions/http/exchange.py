"""One HTTP exchange: the checks from the HTTP request to the handlers, in the order of the specification.

    1. Origin, well-known paths, preflight, metadata      answered from HTTP alone (`_without_message`)
    2. a function that the operator stopped               503
    3. a client of 2025                                   handed to `mcp_functions.legacy`
    4. HTTP method, size, JSON, the message, media type   405, 413, 400 or 415
    5. the caller                                         401, or 403 for a caller that the operator stopped
    6. the headers against the body                       400
    7. the handler                                        its result, or a JSON-RPC error

A deployment can also serve dialects: proposals that were not released (`mcp_functions.dialects`). A message that only a
dialect has is translated in step 4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from mcp_functions import observability
from mcp_functions.http import cors, events, identity, metadata, responses
from mcp_functions.http.request_log import trace_id
from mcp_functions.protocol import headers, json_reader
from mcp_functions.protocol.constants import CALLS, METHODS, PROTOCOL_VERSION
from mcp_functions.protocol.errors import FunctionStopped, InvalidRequest, ParseError, to_mcp_error
from mcp_functions.protocol.messages import ForwardedResponse, Request, is_request, to_message
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mcp_functions.http.events import HttpRequest, LambdaContext, Response
    from mcp_functions.observability import Notes
    from mcp_functions.protocol.messages import AnyResult
    from mcp_functions.protocol.wire_types import JSONRPCNotification, JSONRPCRequest, JSONValue, RequestId
    from mcp_functions.settings import Settings

Continuation: TypeAlias = "tuple[HttpRequest, JSONRPCRequest]"  # a dialect's message, as a request of this revision
Message: TypeAlias = "tuple[HttpRequest, JSONRPCRequest | JSONRPCNotification]"  # a message, and its HTTP request

WELL_KNOWN = "/.well-known/"  # the start of the paths that only documents have (RFC 8615)


class Endpoint(NamedTuple):
    """The settings and the functions with which a Lambda serves requests, made at its first event."""

    settings: Settings
    handle_request: Callable[[Request], AnyResult]  # the handlers, behind the dispatcher or the endpoint's forwarding
    documents: Mapping[str, Mapping[str, Any]] = {}  # the metadata for clients without a token, by path
    header_parameters: Sequence[str] = ()  # the `Mcp-Param-*` headers that the tools read
    is_stopped: bool = False  # True if the operator stopped this function
    # Continues a task; None if no call may become a task.
    run_task: Callable[[Mapping[str, Any], LambdaContext], None] | None = None
    # Translates a message of a dialect into a request. The result of any other message is None.
    continue_dialect: Callable[[HttpRequest, JSONValue], Continuation | None] | None = None
    # Responds to a client of 2025. The result of a message of this revision is None.
    handle_legacy: Callable[[HttpRequest, Mapping[str, Any], LambdaContext], Response | None] | None = None


class HttpExchange:
    """An HTTP request and its response."""

    def __init__(self, http: HttpRequest, event: Mapping[str, Any], context: LambdaContext, notes: Notes) -> None:
        """Begin the exchange.

        Args:
            http: the HTTP request.
            event: the event that held the request.
            context: the context that Lambda passes.
            notes: the notes for the log line of the request.
        """
        self._http = http
        self._event = event
        self._context = context
        self._notes = notes
        self._id: RequestId | None = None  # the id of the JSON-RPC request; None until it is read

    def respond(self, endpoint: Endpoint, now: float) -> Response:
        """Respond to the request at the time `now`, unix seconds."""
        http = self._http
        response = self._without_message(endpoint)
        if response is not None:
            return response
        if endpoint.is_stopped:
            raise FunctionStopped
        if endpoint.handle_legacy and http.headers.get("mcp-protocol-version") != PROTOCOL_VERSION:
            response = endpoint.handle_legacy(http, self._event, self._context)
            # It is None for a message of this revision whose header is missing or wrong: the checks below refuse that.
            if response is not None:
                return response
        if http.method != "POST":
            return self._method_not_allowed("POST")
        return self._answer(endpoint, now)

    def error_response(self, raised: BaseException) -> Response:
        """Respond with an error, which repeats the id of the request if the id could be read."""
        error = to_mcp_error(raised)
        request_id = self._id
        if request_id is None:
            request_id = error.id  # the reader of an invalid message may have found the id in it
        return responses.failure(error, request_id)

    def _without_message(self, endpoint: Endpoint) -> Response | None:
        """Respond where HTTP alone decides, before the caller is known; None if the body may hold a message."""
        http = self._http
        origin = http.headers.get("origin")
        # Basic/transports: "If the Origin header is present and invalid, servers MUST respond with HTTP 403 Forbidden."
        if origin is not None and origin not in endpoint.settings.allowed_origins:
            self._notes.reason = "origin"
            return responses.empty(403)
        document = endpoint.documents.get(http.path)
        if document is None and http.path.startswith(WELL_KNOWN):
            self._notes.reason = "not_found"
            return responses.empty(404)
        if cors.is_preflight(http):
            self._notes.method = "preflight"
            methods = _allowed_methods(endpoint, is_document=document is not None)
            headers = cors.preflight(methods, endpoint.settings.auth_mode, endpoint.header_parameters)
            return responses.empty(204, headers)
        if document is None:
            return None
        if http.method != "GET":
            return self._method_not_allowed("GET")
        self._notes.method = "metadata"
        addresses = metadata.addresses(endpoint.settings, http.context)
        return responses.json(200, {**addresses, **document})

    def _method_not_allowed(self, allowed: str) -> Response:
        """Respond that a path has only the methods in `allowed`, separated by commas."""
        self._notes.reason = "http_method"
        return responses.empty(405, {"allow": allowed})

    def _answer(self, endpoint: Endpoint, now: float) -> Response:
        """Answer the message in the body, in the order of the specification's checks."""
        http, message = _read_message(self._http, endpoint)  # another HTTP request, if it translated a dialect
        self._note_message(message)
        if is_request(message):
            self._id = message["id"]
            events.check_media_type(http)  # after the id is known, so that the error has it
            request = self._checked_request(http, message, endpoint.settings, now)
            result = endpoint.handle_request(request)
            self._note_result(result)
            return responses.success(http, result, message["id"])
        headers.check_no_contradiction(message, http.headers)
        return responses.empty(202)  # "the server MUST return HTTP status code 202" (basic/transports)

    def _checked_request(self, http: HttpRequest, message: JSONRPCRequest, settings: Settings, now: float) -> Request:
        """Identify the caller, check the headers, and return the request for the handlers."""
        lambda_deadline = events.lambda_deadline(self._context, now)
        gateway_deadline = events.gateway_deadline(http, lambda_deadline, now)
        # Basic/authorization: "MCP servers MUST validate access tokens before processing the request"
        caller = identity.admit(http, settings, now)
        headers.check_request(message, http.headers)
        return Request(
            message=message,
            headers=http.headers,
            principal=caller.principal,
            address=http.address,
            gateway_deadline=gateway_deadline,
            event=self._event,
            scopes=caller.scopes,
            lambda_deadline=lambda_deadline,
        )

    def _note_message(self, message: JSONRPCRequest | JSONRPCNotification) -> None:
        """Note the method and the trace of a message for the log line."""
        note_method(self._notes, message["method"])
        meta = message["params"].get("_meta")
        # SEP-414: MCP's trace context is in `_meta`; HTTP's, in the header, is independent of it.
        if isinstance(meta, dict):
            self._notes.trace_id = trace_id(meta.get("traceparent")) or self._notes.trace_id

    def _note_result(self, result: AnyResult) -> None:
        """Note the outcome for the log line."""
        if isinstance(result, ForwardedResponse):
            self._notes.conclude("forwarded")
        elif result.result.get("resultType") != "input_required":
            self._notes.tool_error = result.result.get("isError") is True
        elif result.result.get("inputRequests"):
            self._notes.conclude("input_required")
        else:
            # The function ran out of time and asks nothing: the client only sends the next request.
            self._notes.conclude("shed")


def note_method(notes: Notes, method: str) -> None:
    """Note the method for the log line. The handler stays unknown until one with the requested name is found."""
    notes.method = method if method in METHODS else observability.UNKNOWN
    if method in CALLS or method == "completion/complete":
        notes.handler = observability.UNKNOWN


def _read_message(http: HttpRequest, endpoint: Endpoint) -> Message:
    """Return the message, and the HTTP request to which it belongs.

    It is another HTTP request if a dialect's message was translated: its headers fit the translation.

    Raises:
        McpError: the body is too large, not JSON, or not one message.
    """
    try:
        body = events.read_body(http, endpoint.settings.max_body_bytes)
        value = json_reader.loads(body)
    except ParseError:
        events.check_media_type(http)  # another media type explains the error better
        raise
    try:
        return http, to_message(value)
    except InvalidRequest:  # it is no message of this revision, but it may be one of a dialect
        if endpoint.continue_dialect is None:
            raise
        continuation = endpoint.continue_dialect(http, value)
        if continuation is None:
            raise
        return continuation


def _allowed_methods(endpoint: Endpoint, *, is_document: bool) -> str:
    """Return the methods of a path. Clients of 2025 also resume streams (GET) and end sessions (DELETE)."""
    if is_document:
        return "GET"
    if endpoint.handle_legacy:
        return "POST, GET, DELETE"
    return "POST"
