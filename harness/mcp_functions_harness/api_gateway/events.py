"""Makes the API Gateway event of an HTTP request: payload format 2.0 of an HTTP API.

    {"version": "2.0", "routeKey": "ANY /mcp/add", "rawPath": "/mcp/add", "rawQueryString": "", "headers": {…},
     "requestContext": {…}, "body": "…", "isBase64Encoded": false}

This follows AWS's documentation and what users have seen of the real service, not SAM's emulator: header names are in
lower case, cookies are in the key `cookies` and not in a header, and a request without a body has no key `body`.
"""

import base64
import contextlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Self
from urllib.parse import parse_qsl, unquote

from mcp_functions.protocol.event_types import Authorizer, Event, RequestContext
from mcp_functions.protocol.wire_types import JSONObject, JSONRPCMessage
from mcp_functions_harness.client import messages
from mcp_functions_harness.environment import ACCOUNT
from mcp_functions_harness.loopback import HttpRequest, json_object

API_ID = "local00000"
# Headers of one connection: API Gateway passes them neither to the function nor to the client (RFC 9110, 7.6.1).
HOP_BY_HOP = frozenset({"connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"})
# A body of these media types, or of text/…, is in the event as text. Any other body is in base64.
TEXT_MEDIA_TYPES = frozenset({"application/json", "application/xml", "application/javascript"})


@dataclass(frozen=True)
class Moment:
    """When a request came, and the ids that AWS gave it."""

    now: float  # unix seconds
    request_id: str  # API Gateway's, e.g. "JKJaXmPLvHcESHA="
    trace_id: str  # X-Ray's, e.g. "Root=1-6a63e840-0123456789abcdef01234567"

    @classmethod
    def at(cls, now: float) -> Self:
        """Return a moment with new random ids, in the forms of the real services."""
        request_id = base64.b64encode(os.urandom(11)).decode()
        return cls(now, request_id, trace_id=f"Root=1-{int(now):08x}-{os.urandom(12).hex()}")


def event(
    request: HttpRequest, route: str, moment: Moment, authorizer: Authorizer | None = None, *, method: str = "ANY"
) -> Event:
    """Make the event of one request.

    The matching route has a path, e.g. "/mcp", and a method. `authorizer` is the result of its authorizer, if any.
    """
    route_key = f"{method} {route}"
    raw_path, _, query = request.target.partition("?")
    path = unquote(raw_path)
    headers = _headers(request, moment)
    made: Event = {
        "version": "2.0",
        "routeKey": route_key,
        "rawPath": path,  # despite its name, the real service decodes it too
        "rawQueryString": query,
        "headers": headers,
        "requestContext": _context(request, route_key, path, moment, authorizer),
    }
    cookies = [cookie.strip() for line in request.values("cookie") for cookie in line.split(";") if cookie.strip()]
    if cookies:
        made["cookies"] = cookies
    parameters = _join_values(parse_qsl(query, keep_blank_values=True))
    if parameters:
        made["queryStringParameters"] = parameters
    return {**made, **_body(request.body, headers.get("content-type", ""))}


def event_of_message(
    message: JSONRPCMessage, route: str, moment: Moment, authorizer: Authorizer | None = None
) -> Event:
    """Make the event of a JSON-RPC request, with the headers that an MCP client sends; see `event`."""
    headers = (("Host", "localhost"), *messages.headers(message))
    body = json.dumps(message, ensure_ascii=False).encode()
    return event(HttpRequest("POST", route, headers, body), route, moment, authorizer)


def body_text(event_or_result: Mapping[str, Any]) -> str:
    """Return the body of an event or of a function's result; "" if it has none.

    Raises:
        ValueError: `isBase64Encoded` is true, but the body is not base64 of a text.
    """
    body = event_or_result.get("body")
    if not isinstance(body, str):
        return ""
    if event_or_result.get("isBase64Encoded"):
        return base64.b64decode(body, validate=True).decode()
    return body


def message_in(text: str) -> JSONObject:
    """Return the JSON-RPC message in a body; {} if there is none.

    The body may be a stream of server-sent events, one `data:` line for each message. The last one is the response.
    """
    messages_of_stream = [line.removeprefix("data:") for line in text.splitlines() if line.startswith("data:")]
    if messages_of_stream:
        return json_object(messages_of_stream[-1])
    return json_object(text)


def _context(
    request: HttpRequest, route_key: str, path: str, moment: Moment, authorizer: Authorizer | None
) -> RequestContext:
    domain = re.sub(r":\d+$", "", request.header("host"))  # without the port
    context: RequestContext = {"accountId": ACCOUNT, "apiId": API_ID}
    if authorizer is not None:
        context["authorizer"] = authorizer
    return {
        **context,
        "domainName": domain,
        "domainPrefix": domain.partition(".")[0],
        "http": {
            "method": request.method,
            "path": path,
            "protocol": request.protocol,
            "sourceIp": request.source_ip,
            "userAgent": request.header("user-agent"),
        },
        "requestId": moment.request_id,
        "routeKey": route_key,
        "stage": "$default",
        "time": datetime.fromtimestamp(moment.now, UTC).strftime("%d/%b/%Y:%H:%M:%S +0000"),
        "timeEpoch": int(moment.now * 1000),
    }


def _headers(request: HttpRequest, moment: Moment) -> dict[str, str]:
    received = [(name.lower(), value) for name, value in request.headers]
    not_passed_on = HOP_BY_HOP | {"cookie"}
    headers = _join_values([(name, value) for name, value in received if name not in not_passed_on])
    proxies = headers.get("x-forwarded-for")  # what a proxy before API Gateway has written
    headers["x-forwarded-for"] = f"{proxies}, {request.source_ip}" if proxies else request.source_ip
    headers["x-forwarded-port"] = str(request.port)
    headers["x-forwarded-proto"] = "http"
    headers["content-length"] = str(len(request.body or b""))
    headers.setdefault("x-amzn-trace-id", moment.trace_id)
    return dict(sorted(headers.items()))


def _join_values(pairs: list[tuple[str, str]]) -> dict[str, str]:
    """Return the values by name, with commas between several values of one name."""
    joined: dict[str, str] = {}
    for name, value in pairs:
        joined[name] = f"{joined[name]},{value}" if name in joined else value
    return joined


def _body(body: bytes | None, content_type: str) -> Event:
    if body is None:
        return {"isBase64Encoded": False}
    media_type = content_type.partition(";")[0].strip().lower()
    if media_type in TEXT_MEDIA_TYPES or media_type.startswith("text/"):
        with contextlib.suppress(UnicodeDecodeError):  # no text, whatever its media type says
            return {"body": body.decode(), "isBase64Encoded": False}
    return {"body": base64.b64encode(body).decode(), "isBase64Encoded": True}
