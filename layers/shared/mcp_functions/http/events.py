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

    method: str  # in capitals
    path: str  # without the query
    headers: Mapping[str, str]  # names in lower case
    body: str  # text, or base64 if `is_base64`
    is_base64: bool  # whether the gateway encoded the body
    address: str  # the client's IP address, as the gateway saw it
    began: int  # unix milliseconds when the gateway received the request; 0 if unknown
    context: Mapping[str, Any]  # `requestContext`, which the gateway alone writes. It holds the authorizer's output
    response_headers: Mapping[str, str] = {}  # headers that every response to this request must have (CORS)


def read(event: Mapping[str, Any]) -> HttpRequest:
    """Read an event, which must be an HTTP request in payload format 2.0."""
    try:
        context = event["requestContext"]
        http = context["http"]
        method, body = http["method"], event.get("body") or ""
        headers = _headers(event.get("headers") or {})
        address, began = http.get("sourceIp"), context.get("timeEpoch")
        is_http = event["version"] == "2.0" and isinstance(method, str) and isinstance(body, str)
    except (AttributeError, KeyError, TypeError):
        is_http = False
    if not is_http:
        message = "the event is not an HTTP request in payload format 2.0, of an HTTP API or a function URL"
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


def takes_stream(request: HttpRequest) -> bool:
    """Check whether the client accepts an event stream.

    "A request without any Accept header field implies that the user agent will accept any media type in response"
    (RFC 9110, section 12.5.1).
    """
    accept = request.headers.get("accept")
    return accept is None or _quality(accept, "text/event-stream") > 0


def _headers(received: Mapping[str, str]) -> dict[str, str]:
    """Write header names in lower case.

    A name in two spellings has its values joined, so that the joined value differs from what the body says.
    """
    headers: dict[str, str] = {}
    for name, value in received.items():
        if not isinstance(value, str):
            raise TypeError
        lower = name.lower()
        headers[lower] = ",".join((headers[lower], value)) if lower in headers else value
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
