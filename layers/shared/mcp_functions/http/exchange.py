"""One HTTP exchange: the checks from the HTTP request to the handlers, in the order of the specification."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from mcp_functions import observability
from mcp_functions.http import cors, identity, metadata, requests, responses
from mcp_functions.protocol import headers, json_reader
from mcp_functions.protocol.constants import CALLS, METHODS, PROTOCOL_VERSION
from mcp_functions.protocol.errors import InvalidRequest, ParseError
from mcp_functions.protocol.messages import ForwardedResponse, Request, is_request, to_message
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mcp_functions.http.events import HttpRequest
    from mcp_functions.http.lambda_types import LambdaContext, Response
    from mcp_functions.observability import Notes
    from mcp_functions.protocol.messages import AnyResult
    from mcp_functions.protocol.wire_types import JSONRPCNotification, JSONRPCRequest, JSONValue, RequestId
    from mcp_functions.settings import Settings

Continuation: TypeAlias = "tuple[HttpRequest, JSONRPCRequest]"  # the request that a dialect's message continues

WELL_KNOWN = "/.well-known/"


class Endpoint(NamedTuple):
    """What a Lambda function serves, made from its environment at the first event."""

    settings: Settings
    answer: Callable[[Request], AnyResult]  # the function that answers a request
    documents: Mapping[str, Mapping[str, Any]] = {}  # public documents, by path
    parameters: Sequence[str] = ()  # the `Mcp-Param-*` headers that the tools read
    # the function that continues a task; None if no call may become a task
    work: Callable[[Mapping[str, Any], LambdaContext], None] | None = None
    # the function that reads a message of a dialect; it returns None for any other message
    turn: Callable[[HttpRequest, JSONValue], Continuation | None] | None = None
    # the function that serves clients of 2025; it returns None for a message of this revision
    legacy: Callable[[HttpRequest, Mapping[str, Any], LambdaContext], Response | None] | None = None


class HttpExchange:
    """An HTTP request and its response.

    Attributes:
        http: the request, with the headers that its response must have.
        id: of the JSON-RPC request; None until it is read.
    """

    def __init__(self, http: HttpRequest, event: Mapping[str, Any], context: LambdaContext, notes: Notes) -> None:
        """Keep what Lambda passed, and the notes for the log line."""
        self.http = http
        self.id: RequestId | None = None
        self._event = event
        self._context = context
        self._notes = notes

    def respond(self, endpoint: Endpoint, now: float) -> Response:
        """Respond to the request at the time `now`, unix seconds."""
        if endpoint.settings.allowed_origins:
            shared = cors.response_headers(self.http.headers.get("origin"), endpoint.settings.allowed_origins)
            self.http = self.http._replace(response_headers=shared)
        response = self._without_message(endpoint)
        if response is None:
            response = self._for_earlier_revision(endpoint)
        if response is not None:
            return response
        message = self._read_message(endpoint)
        self._note_message(message)
        if not is_request(message):
            headers.check_repeated(message, self.http.headers)
            self._notes.conclude("complete")
            return responses.empty(self.http, 202)  # "the server MUST return HTTP status code 202" (basic/transports)
        self.id = message["id"]
        requests.check_media_type(self.http)
        result = endpoint.answer(self._request(message, endpoint.settings, now))
        self._note_result(result)
        return responses.success(self.http, result, self.id)

    def _without_message(self, endpoint: Endpoint) -> Response | None:
        """Respond where HTTP alone decides, before the caller is known; None if the body may hold a message."""
        http, notes = self.http, self._notes
        origin = http.headers.get("origin")
        # Basic/transports: "If the Origin header is present and invalid, servers MUST respond with HTTP 403 Forbidden."
        if origin is not None and origin not in endpoint.settings.allowed_origins:
            notes.reason = "origin"
            return responses.empty(http, 403)
        document = endpoint.documents.get(http.path)
        if document is None and http.path.startswith(WELL_KNOWN):
            notes.reason = "not_found"
            return responses.empty(http, 404)
        if cors.is_preflight(http):
            notes.method = "preflight"
            methods = _allowed_methods(endpoint, is_document=document is not None)
            return responses.empty(http, 204, cors.preflight(methods, endpoint.settings.auth_mode, endpoint.parameters))
        if document is None:
            return None
        if http.method != "GET":
            return self._method_not_allowed("GET")
        notes.method = "metadata"
        addresses = metadata.addresses(endpoint.settings, http.context)
        return responses.json(http, 200, {**addresses, **document})

    def _for_earlier_revision(self, endpoint: Endpoint) -> Response | None:
        """Let a client of an earlier revision be answered; None for a message of this revision."""
        if endpoint.legacy and self.http.headers.get("mcp-protocol-version") != PROTOCOL_VERSION:
            response = endpoint.legacy(self.http, self._event, self._context)
            if response:
                return response
        return None if self.http.method == "POST" else self._method_not_allowed("POST")

    def _method_not_allowed(self, allowed: str) -> Response:
        self._notes.outcome, self._notes.reason = "refused", "http_method"
        return responses.empty(self.http, 405, {"allow": allowed})

    def _read_message(self, endpoint: Endpoint) -> JSONRPCRequest | JSONRPCNotification:
        try:
            body = requests.read_body(self.http, endpoint.settings.max_body_bytes)
            value = json_reader.loads(body)
        except ParseError:
            requests.check_media_type(self.http)  # a client that sends no JSON should hear that, if its header says so
            raise
        try:
            return to_message(value)
        except InvalidRequest:
            continuation = endpoint.turn(self.http, value) if endpoint.turn else None
            if continuation is None:
                raise
            self.http, message = continuation
            return message

    def _request(self, message: JSONRPCRequest, settings: Settings, now: float) -> Request:
        http = self.http
        # Basic/authorization: "MCP servers MUST validate access tokens before processing the request"
        caller = identity.identify(http, settings, now)
        headers.admit(message, http.headers)
        ends = requests.lambda_deadline(self._context, now)
        return Request(
            message=message,
            headers=http.headers,
            principal=caller.principal,
            address=http.address,
            deadline=requests.gateway_deadline(http, ends, now),
            event=self._event,
            scopes=caller.scopes,
            ends=ends,
        )

    def _note_message(self, message: JSONRPCRequest | JSONRPCNotification) -> None:
        note_method(self._notes, message["method"])
        meta = message["params"].get("_meta")
        self._notes.traceparent = meta.get("traceparent") if isinstance(meta, dict) else None

    def _note_result(self, result: AnyResult) -> None:
        if isinstance(result, ForwardedResponse):
            self._notes.conclude("forwarded")
        elif result.result.get("resultType") != "input_required":
            self._notes.conclude("complete")
            self._notes.tool_error = result.result.get("isError") is True
        else:
            self._notes.conclude("input_required" if result.result.get("inputRequests") else "shed")


def note_method(notes: Notes, method: str) -> None:
    """Note the method. The name of the handler is unknown until a handler with this name is found."""
    notes.method = method if method in METHODS else observability.UNKNOWN
    if method in CALLS or method == "completion/complete":
        notes.handler = observability.UNKNOWN


def _allowed_methods(endpoint: Endpoint, *, is_document: bool) -> str:
    """Return the methods of a path. Clients of 2025 also resume streams (GET) and end sessions (DELETE)."""
    if is_document:
        return "GET"
    if endpoint.legacy:
        return "POST, GET, DELETE"
    return "POST"
