"""An API Gateway event as an HTTP request.

The event has payload format 2.0: an HTTP API or a function URL sends it. `sam local` spells header names differently
and sends empty fields where AWS sends none; both are read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping


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
    response_headers: Mapping[str, str] = {}  # headers that every response to this request must have (CORS)


def read(event: Mapping[str, Any]) -> HttpRequest:
    """Read an event, which must be an HTTP request in payload format 2.0.

    Raises:
        ValueError: the event has another format.
    """
    http = _read_format_2(event)
    if http is None:
        message = "the event is not an HTTP request in payload format 2.0, of an HTTP API or a function URL"
        raise ValueError(message)
    return http


def accepts_event_stream(request: HttpRequest) -> bool:
    """Check whether the client accepts an event stream.

    "A request without any Accept header field implies that the user agent will accept any media type in response"
    (RFC 9110, section 12.5.1).
    """
    accept = request.headers.get("accept")
    return accept is None or _quality(accept, "text/event-stream") > 0


def _read_format_2(event: Mapping[str, Any]) -> HttpRequest | None:
    """Read an event in payload format 2.0; None for any other event."""
    try:
        version = event["version"]
        context = event["requestContext"]
        method = context["http"]["method"]
        address = context["http"].get("sourceIp")
        began = context.get("timeEpoch")
        body = event.get("body") or ""
        headers = _read_headers(event.get("headers") or {})
    except (AttributeError, KeyError, TypeError):
        return None
    if version != "2.0" or not isinstance(method, str) or not isinstance(body, str):
        return None
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
    for name in (media_type, f"{media_type.partition('/')[0]}/*", "*/*"):
        if name in qualities:
            return qualities[name]
    return 0.0


def _parse_quality(text: str) -> float:
    try:
        quality = float(text)
    except ValueError:
        return 0.0
    return quality if 0 <= quality <= 1 else 0.0
