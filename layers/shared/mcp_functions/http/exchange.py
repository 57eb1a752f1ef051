"""One HTTP exchange: the checks from the HTTP request to the handlers, in the order of the specification.

    step                                                   the response, if the exchange ends here
    1. Origin, well-known paths, preflight, metadata       403, 404, 204 or 200
    2. did the operator stop this function?                503
    3. is it a client of the revisions of 2025?            that of `mcp_functions.legacy`
    4. HTTP method, size, JSON, the message, media type    405, 413, 400 or 415
    5. the caller                                          401, or 403 for a caller that the operator stopped
    6. do the headers fit the body?                        400
    7. the handler                                         its result, or a JSON-RPC error

A deployment can also serve dialects: proposals for MCP that were not released (`mcp_functions.dialects`). Step 4
translates a message of a dialect into a request of this revision.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from mcp_functions.handlers import lookup
from mcp_functions.http import cors, events, identity, responses
from mcp_functions.http.request_log import note_method, trace_id
from mcp_functions.protocol import errors, headers, json_reader
from mcp_functions.protocol.constants import PROTOCOL_VERSION
from mcp_functions.protocol.messages import ForwardedResponse, Request, is_request, to_message
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_functions.http.events import HttpRequest
    from mcp_functions.observability import Notes
    from mcp_functions.protocol.catalog_types import Catalog
    from mcp_functions.protocol.event_types import LambdaContext, Response
    from mcp_functions.protocol.messages import AnyResult
    from mcp_functions.protocol.wire_types import JSONRPCNotification, JSONRPCRequest, JSONValue, RequestId
    from mcp_functions.settings import Settings

# A request that a dialect translated, and the HTTP request with the headers for it.
Continuation: TypeAlias = "tuple[HttpRequest, JSONRPCRequest]"


class Endpoint(NamedTuple):
    """What a Lambda function answers with; `assembly` makes it. A feature that the deployment does not have is None."""

    settings: Settings
    # Calls a handler here, or forwards to the function that has it.
    answer: Callable[[Request], AnyResult]
    # Describes the handlers (`handlers.catalog`).
    catalog: Catalog
    # Whether the operator stopped this function.
    is_stopped: bool
    # Responds to a client of 2025; returns None for a message of this revision.
    answer_legacy: Callable[[HttpRequest], Response | None] | None
    # Translates a message of a dialect into a request; returns None for any other message.
    continue_dialect: Callable[[HttpRequest, JSONValue], Continuation | None] | None
    # Continues a task, as an order to a worker says.
    run_task: Callable[[Mapping[str, Any], LambdaContext], None] | None


class HttpExchange:
    """An HTTP request and its response."""

    def __init__(self, http: HttpRequest, endpoint: Endpoint, notes: Notes) -> None:
        """Begin the exchange of a request with an endpoint, with the notes for its log line."""
        self._http = http
        self._endpoint = endpoint
        self._notes = notes
        self._id: RequestId | None = None  # the id of the JSON-RPC request; None until it is read

    def respond(self, now: float) -> Response:
        """Respond to the request at the time `now`, unix seconds. An exception becomes an error response."""
        try:
            response = self._take_steps(now)
        # also SystemExit: an author's `sys.exit` must not end the environment
        except BaseException as raised:
            if errors.is_ctrl_c(raised):
                raise
            self._notes.add_error(raised)
            error = errors.to_mcp_error(raised)
            # The reader of an invalid message may have found the id in it.
            response = responses.failure(error, error.id if self._id is None else self._id)
        # A web page may read errors, too.
        response["headers"].update(cors.response_headers(self._http, self._endpoint.settings))
        return response

    def _take_steps(self, now: float) -> Response:
        """Take the steps in the head of this module, up to the one that has the response."""
        http = self._http
        endpoint = self._endpoint
        origin = http.headers.get("origin")
        # Basic/transports: "If the Origin header is present and invalid, servers MUST respond with HTTP 403 Forbidden."
        if origin is not None and origin not in endpoint.settings.allowed_origins:
            self._notes.reason = "origin"
            return responses.empty(403)
        if http.path.startswith("/.well-known/"):  # RFC 8615
            return self._respond_with_metadata()
        if cors.is_preflight(http):
            # Clients of 2025 also resume streams (GET) and end sessions (DELETE).
            return self._preflight("POST, GET, DELETE" if endpoint.answer_legacy else "POST")
        if endpoint.is_stopped:
            raise errors.FunctionStopped
        # A message of this revision may lack its version header, or have a wrong one. A later step refuses it.
        if endpoint.answer_legacy and http.headers.get("mcp-protocol-version") != PROTOCOL_VERSION:
            response = endpoint.answer_legacy(http)
            if response is not None:
                return response
        if http.method != "POST":
            return self._method_not_allowed("POST")
        return self._respond_to_message(now)

    def _respond_with_metadata(self) -> Response:
        """Respond with the metadata for clients without a token, at one of its paths."""
        # a client reads it once, before its first request
        from mcp_functions.http import metadata

        document = metadata.document(self._http, self._endpoint.settings, self._endpoint.catalog.get("scopes", ()))
        if document is None:
            self._notes.reason = "not_found"
            return responses.empty(404)
        if cors.is_preflight(self._http):
            return self._preflight("GET")
        if self._http.method not in {"GET", "HEAD"}:
            return self._method_not_allowed("GET, HEAD")
        self._notes.method = "metadata"
        response = responses.json(200, document)
        return {**response, "body": ""} if self._http.method == "HEAD" else response

    def _preflight(self, methods: str) -> Response:
        """Tell a browser which requests its page may send."""
        self._notes.method = "preflight"
        catalog = self._endpoint.catalog
        # A preflight has no caller. If some callers must not see a tool, the answer repeats what the browser asks for.
        names = cors.requested_parameters(self._http) if "hidden" in catalog else lookup.header_names(catalog)
        headers = cors.preflight_headers(methods, self._endpoint.settings, names)
        return responses.empty(204, headers)

    def _method_not_allowed(self, allowed: str) -> Response:
        """Respond that a path has only the methods in `allowed`, separated by commas."""
        self._notes.reason = "http_method"
        return responses.empty(405, {"allow": allowed})

    def _respond_to_message(self, now: float) -> Response:
        """Respond to the message in the body, in the order of the specification's checks."""
        http, message = _read_message(self._http, self._endpoint)
        self._note_message(message)
        if is_request(message):
            self._id = message["id"]
        events.check_media_type(http)  # not earlier, so that the error has the id
        # Basic/authorization: "MCP servers MUST validate access tokens before processing the request"
        caller = identity.admit(http, self._endpoint.settings, now)
        if not is_request(message):
            headers.check_no_contradiction(message, http.headers)
            # for a notification, "the server MUST return HTTP status code 202"
            return responses.empty(202)
        headers.check_request(message, http.headers)
        request = Request(
            message=message,
            headers=http.headers,
            principal=caller.principal,
            address=http.address,
            gateway_deadline=http.gateway_deadline,
            event=http.event,
            scopes=caller.scopes,
            lambda_deadline=http.lambda_deadline,
        )
        result = self._endpoint.answer(request)
        self._note_result(result)
        return responses.success(http, result, request.message["id"])

    def _note_message(self, message: JSONRPCRequest | JSONRPCNotification) -> None:
        """Note the method and the trace of a message for the log line."""
        note_method(self._notes, message["method"])
        meta = message["params"].get("_meta")
        # SEP-414: MCP's trace context is in `_meta`. The HTTP header may name another trace, which counts less.
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
        # nothing is asked: the function ran out of time, and goes on when the client sends the next request
        else:
            self._notes.conclude("shed")


def _read_message(http: HttpRequest, endpoint: Endpoint) -> tuple[HttpRequest, JSONRPCRequest | JSONRPCNotification]:
    """Return the message in the body, and the HTTP request with the headers for it.

    These are the headers of `http`, unless a dialect has translated the message and changed the headers with it.

    Raises:
        McpError: the body is too large, not JSON, or not one message.
    """
    try:
        value = json_reader.loads(events.read_body(http, endpoint.settings.max_body_bytes))
    except errors.ParseError:
        events.check_media_type(http)  # another media type explains the error better
        raise
    try:
        return http, to_message(value)
    except errors.InvalidRequest:  # no message of this revision, but perhaps one of a dialect
        translated = endpoint.continue_dialect(http, value) if endpoint.continue_dialect else None
        if translated is None:
            raise
        return translated
