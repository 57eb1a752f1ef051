"""An API Gateway event as an HTTP request: its headers, its body, its media type, and the deadline of its response.

The event has payload format 2.0: an HTTP API or a function URL sends it. `sam local` spells header names differently
and sends empty fields where AWS sends none; both are read.
"""

from __future__ import annotations

import binascii
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from mcp_functions.protocol.errors import ContentTooLarge, ParseError, UnsupportedMediaType
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

GATEWAY_SECONDS = 30.0  # API Gateway's limit for an HTTP API

Response: TypeAlias = dict[str, Any]  # statusCode, headers, body and isBase64Encoded, as API Gateway expects them


class LambdaContext(Protocol):
    """The members of Lambda's context object that the toolkit reads."""

    function_name: str
    aws_request_id: str

    def get_remaining_time_in_millis(self) -> int:
        """Return the milliseconds until Lambda ends this invocation."""


class HttpRequest(NamedTuple):
    """An HTTP request, as API Gateway passed it on."""

    method: str  # the method in capitals
    path: str  # the path without the query
    headers: Mapping[str, str]  # the headers, with names in lower case
    body: str  # the body as text, or as base64 if `is_base64`
    is_base64: bool  # True if the gateway encoded the body
    address: str  # the client's IP address, as the gateway saw it
    began: int  # when the gateway received the request, in unix milliseconds; 0 if unknown
    context: Mapping[str, Any]  # `requestContext`, written by the gateway alone, with the authorizer's output


def read(event: Mapping[str, Any]) -> HttpRequest:
    """Read an event, which must be an HTTP request in payload format 2.0.

    Raises:
        ValueError: the event has another format.
    """
    message = "the event is not an HTTP request in payload format 2.0, of an HTTP API or a function URL"
    try:
        version = event["version"]
        context = event["requestContext"]
        method = context["http"]["method"]
        address = context["http"].get("sourceIp")
        began = context.get("timeEpoch")
        body = event.get("body") or ""
        headers = _read_headers(event.get("headers") or {})
    except (AttributeError, KeyError, TypeError):
        raise ValueError(message) from None  # a key or a type alone does not say what is wrong
    if version != "2.0" or not isinstance(method, str) or not isinstance(body, str):
        raise ValueError(message)
    return HttpRequest(
        method=method,
        path=str(event.get("rawPath") or ""),
        headers=headers,
        body=body,
        is_base64=bool(event.get("isBase64Encoded")),
        address=address if isinstance(address, str) else "",
        began=began if isinstance(began, int) else 0,
        context=context,
    )


def read_body(http: HttpRequest, limit: int) -> str | bytes:
    """Return the body of a request, of at most `limit` bytes.

    Raises:
        ContentTooLarge: the body is over `limit`.
        ParseError: the event says that the body is base64, and it is not; or the body is not Unicode.
    """
    # A body of `limit` bytes has at most `limit` characters as text, and 4/3 of it as base64. One with twice as many is
    # refused without decoding it. The exact check follows.
    if len(http.body) > limit * 2:
        raise ContentTooLarge
    body: str | bytes = http.body
    try:
        if http.is_base64:
            body = binascii.a2b_base64(http.body, strict_mode=True)
        size = len(body) if isinstance(body, bytes) else len(body.encode())
    except ValueError:  # not base64, or not Unicode (half of a surrogate pair)
        raise ParseError from None  # the hidden error quotes the body, which no log may hold
    if size > limit:
        raise ContentTooLarge
    return body


def check_media_type(http: HttpRequest) -> None:
    """Refuse a body that is not plain JSON.

    Raises:
        UnsupportedMediaType: the body has another type, or is compressed.
    """
    media_type = http.headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    encoding = http.headers.get("content-encoding", "identity")
    if media_type != "application/json" or encoding != "identity":
        raise UnsupportedMediaType


def lambda_deadline(context: LambdaContext, now: float) -> float:
    """Return the time at which Lambda ends this invocation, in unix seconds."""
    return float(now + context.get_remaining_time_in_millis() / 1000)


def gateway_deadline(http: HttpRequest, lambda_ends: float, now: float) -> float:
    """Return the time at which the gateway stops waiting, or Lambda's own deadline if that is earlier.

    The gateway's time stamp counts only if it is plausible. `sam local` sends the time of its own start. A time stamp
    that is older than the gateway's limit, or in the future, shows that the two clocks differ.
    """
    began = http.began / 1000
    is_plausible = now - GATEWAY_SECONDS < began <= now
    if not is_plausible:
        began = now
    return min(lambda_ends, began + GATEWAY_SECONDS)


def accepts_event_stream(request: HttpRequest) -> bool:
    """Check whether the client accepts an event stream.

    "A request without any Accept header field implies that the user agent will accept any media type in response"
    (RFC 9110, section 12.5.1).
    """
    accept = request.headers.get("accept")
    return accept is None or _quality(accept, "text/event-stream") > 0


def _read_headers(received: Mapping[str, str]) -> dict[str, str]:
    """Return the headers with their names in lower case.

    If a name comes in two spellings, both values are joined with a comma. If one of them won, a router that reads the
    other would see another request. A joined MCP header differs from the body, so its request is refused.
    """
    headers: dict[str, str] = {}
    for name, value in received.items():
        if not isinstance(value, str):
            message = "the value of a header is not text"
            raise TypeError(message)
        lower = name.lower()
        headers[lower] = f"{headers[lower]},{value}" if lower in headers else value
    return headers


def _quality(accept: str, media_type: str) -> float:
    """Return the quality value of a media type in an Accept header, 0 to 1; 0 means "not acceptable" (section 12.4.2).

    "Media ranges can be overridden by more specific media ranges … the most specific reference has precedence" (RFC
    9110, section 12.5.1).
    """
    qualities: dict[str, float] = {}
    for media_range in accept.lower().split(","):
        name, *parameters = (part.strip() for part in media_range.split(";"))
        weights = [part.removeprefix("q=") for part in parameters if part.startswith("q=")]
        quality = _parse_quality(weights[0]) if weights else 1.0
        qualities[name] = max(qualities.get(name, 0.0), quality)
    any_subtype = f"{media_type.partition('/')[0]}/*"
    for name in (media_type, any_subtype, "*/*"):
        if name in qualities:
            return qualities[name]
    return 0.0


def _parse_quality(text: str) -> float:
    """Return a quality value from 0 to 1, or 0 for a text that is none."""
    try:
        quality = float(text)
    except ValueError:
        return 0.0
    return quality if 0 <= quality <= 1 else 0.0
