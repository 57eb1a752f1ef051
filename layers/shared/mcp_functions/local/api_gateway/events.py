"""Converts HTTP requests to API Gateway events and Lambda results to HTTP: payload format 2.0 of an HTTP API.

    event: HTTP request -> the dict that Lambda gives to a function
    response: what the function returns -> HTTP response

This follows AWS's documentation and what users have seen of the real service, not SAM's emulator. Header names are in
lower case and cookies only in `cookies`. There is no `body` key without a body, and only text and JSON are not in
base64. Times are in milliseconds, and every request has a unique id.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote

from mcp_functions.attack import messages
from mcp_functions.local.environment import ACCOUNT
from mcp_functions.local.loopback import HttpRequest, HttpResponse, json_object

if TYPE_CHECKING:
    from collections.abc import Mapping

API_ID = "local00000"
REMAPPED = "www-authenticate"  # API Gateway renames this header to x-amzn-remapped-www-authenticate
# Headers of one connection: API Gateway passes them neither to the function nor to the client (RFC 9110, 7.6.1).
HOP_BY_HOP = frozenset({"connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"})
PLAIN = frozenset({"application/json", "application/xml", "application/javascript"})  # media types without base64
TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # a header's name (RFC 9110, 5.6.2)
INTERNAL_ERROR = HttpResponse(500, (("content-type", "application/json"),), b'{"message":"Internal Server Error"}')


@dataclass(frozen=True)
class Moment:
    """When a request came, and the ids that AWS gave it."""

    now: float  # unix seconds
    request_id: str  # API Gateway's, e.g. "JKJaXmPLvHcESHA="
    trace_id: str  # X-Ray's, e.g. "Root=1-6a63e840-0123456789abcdef01234567"

    @classmethod
    def at(cls, now: float) -> Moment:
        """Return a moment with new random ids."""
        request_id = base64.b64encode(os.urandom(11)).decode()  # as API Gateway's own: 16 characters, the last is =
        return cls(now, request_id, trace_id=f"Root=1-{int(now):08x}-{os.urandom(12).hex()}")


def event(
    request: HttpRequest,
    route: str,
    moment: Moment,
    authorizer: Mapping[str, Any] | None = None,
    *,
    method: str = "ANY",
) -> dict[str, Any]:
    """Make the event of one request.

    Args:
        request: the request as the client sent it.
        route: the route's path in the API, e.g. "/mcp".
        moment: the time and the ids of the request.
        authorizer: the result of the route's authorizer; None without one.
        method: the route's method.
    """
    route_key = f"{method} {route}"
    path, _, query = request.target.partition("?")
    headers = _headers(request, moment)
    made: dict[str, Any] = {
        "version": "2.0",
        "routeKey": route_key,
        "rawPath": unquote(path),
        "rawQueryString": query,
        "headers": headers,
        "requestContext": _context(request, route_key, unquote(path), moment, authorizer),
    }
    cookies = _cookies(request)
    if cookies:
        made["cookies"] = cookies
    parameters = _joined(parse_qsl(query, keep_blank_values=True))
    if parameters:
        made["queryStringParameters"] = parameters
    return made | _body(request.body, headers.get("content-type", ""))


def event_of_message(
    message: Mapping[str, Any], route: str, moment: Moment, authorizer: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Make the event of an MCP request, with the headers that its client sends; see `event`.

    Args:
        message: a JSON-RPC request.
        route: the path of the function's route, e.g. "/mcp/add".
        moment: the time and the ids of the request.
        authorizer: the result of the route's authorizer; None without one.
    """
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


def message_in(text: str) -> dict[str, Any]:
    """Return the JSON-RPC message in a body; {} if there is none.

    A body of server-sent events holds several messages, and the last one is the response.
    """
    events = [line.removeprefix("data:") for line in text.splitlines() if line.startswith("data:")]
    message = events[-1] if events else text
    return json_object(message)


def _context(
    request: HttpRequest, route_key: str, path: str, moment: Moment, authorizer: Mapping[str, Any] | None
) -> dict[str, Any]:
    domain = re.sub(r":\d+$", "", request.header("host"))  # without the port
    context: dict[str, Any] = {"accountId": ACCOUNT, "apiId": API_ID}
    if authorizer is not None:
        context["authorizer"] = dict(authorizer)
    return context | {
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
    headers = _joined([(name, value) for name, value in received if name not in HOP_BY_HOP and name != "cookie"])
    addresses = [headers["x-forwarded-for"]] if headers.get("x-forwarded-for") else []
    headers["x-forwarded-for"] = ", ".join([*addresses, request.source_ip])
    headers["x-forwarded-port"] = str(request.port)
    headers["x-forwarded-proto"] = "http"
    headers["content-length"] = str(len(request.body or b""))
    headers.setdefault("x-amzn-trace-id", moment.trace_id)
    return dict(sorted(headers.items()))


def _joined(pairs: list[tuple[str, str]]) -> dict[str, str]:
    """Return the values by name; several values of one name are joined by commas."""
    joined: dict[str, str] = {}
    for name, value in pairs:
        joined[name] = f"{joined[name]},{value}" if name in joined else value
    return joined


def _cookies(request: HttpRequest) -> list[str]:
    return [cookie.strip() for line in request.values("cookie") for cookie in line.split(";") if cookie.strip()]


def _body(body: bytes | None, content_type: str) -> dict[str, Any]:
    if body is None:
        return {"isBase64Encoded": False}
    media_type = content_type.partition(";")[0].strip().lower()
    if media_type in PLAIN or media_type.startswith("text/"):
        with contextlib.suppress(UnicodeDecodeError):  # a body that is no text goes as base64, whatever its media type
            return {"body": body.decode(), "isBase64Encoded": False}
    return {"body": base64.b64encode(body).decode(), "isBase64Encoded": True}


def response(payload: bytes, moment: Moment) -> HttpResponse:
    """Convert a function's result, as JSON, to HTTP; a result that breaks the payload format becomes a 500."""
    try:
        result = json.loads(payload)
    except ValueError:
        return INTERNAL_ERROR
    # "If your Lambda function returns valid JSON and doesn't return a statusCode, API Gateway" infers 200 and JSON
    if not isinstance(result, dict) or "statusCode" not in result:
        return HttpResponse(200, (("content-type", "application/json"), _request_id(moment)), payload)
    try:
        headers = (*_response_headers(result), _request_id(moment))
        return HttpResponse(_status(result), headers, _response_body(result))
    except (TypeError, ValueError, AttributeError):  # a field has another type or value than the format allows
        return INTERNAL_ERROR


def _request_id(moment: Moment) -> tuple[str, str]:
    return ("apigw-requestid", moment.request_id)


def _status(result: Mapping[str, Any]) -> int:
    status = int(result["statusCode"])
    if status not in range(200, 600):  # a final HTTP status
        raise ValueError
    return status


def _response_headers(result: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    headers = {"content-type": "text/plain;charset=UTF-8"}
    for original_name, value in (result.get("headers") or {}).items():
        name = _header_name(original_name)
        headers[name] = _header_value(value)
    for name in (*HOP_BY_HOP, "content-length"):
        headers.pop(name, None)
    cookies = [("set-cookie", _header_value(cookie)) for cookie in result.get("cookies") or ()]
    return (*headers.items(), *cookies)


def _header_name(name: str) -> str:
    if not TOKEN.fullmatch(name):
        raise ValueError
    if name.lower() == REMAPPED:
        return f"x-amzn-remapped-{REMAPPED}"
    return name.lower()


def _header_value(value: object) -> str:
    text = json.dumps(value) if isinstance(value, bool | int | float) else value
    if not isinstance(text, str) or not text.isprintable():  # a line break would start another header
        raise ValueError
    text.encode("latin-1")  # HTTP has no other characters; this raises a UnicodeEncodeError, which is a ValueError
    return text


def _response_body(result: Mapping[str, Any]) -> bytes:
    body = result.get("body")
    if body is None:
        return b""
    if not isinstance(body, str):
        raise TypeError
    # Both raise a ValueError: b64decode for what is no base64, encode for half a surrogate pair.
    if result.get("isBase64Encoded"):
        return base64.b64decode(body, validate=True)
    return body.encode()
