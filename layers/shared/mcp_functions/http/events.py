"""An event is an HTTP request: payload 2.0 (HTTP API, function URL), payload 1.0 (HTTP and REST API), ALB; one type.

`sam local` writes them a little differently from AWS (header case, empty fields for absent ones): both are read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

Source: TypeAlias = Literal["2.0", "1.0", "alb"]


class HttpRequest(NamedTuple):
    """What came over HTTP, whoever brought it.

    Attributes:
        began: when the gateway got it, unix milliseconds; 0 if it does not say.
        context: `requestContext`, where the authorizer's word stands.
        granted: headers that every response to it carries, because of who asked.

    """

    source: Source
    method: str
    path: str
    headers: Mapping[str, str]  # names in lower case
    body: str
    is_base64: bool
    address: str
    began: int
    context: Mapping[str, Any]
    granted: Mapping[str, str] = {}


def read(event: Mapping[str, Any]) -> HttpRequest:
    """Read an event.

    Raises:
        ValueError: it is none of the shapes that bring HTTP to a Lambda.

    """
    try:
        request = _read(event)
    except (AttributeError, TypeError):  # headers that are no strings, an identity that is a list: nobody's gateway
        request = None
    if request is None or not isinstance(request.body, str):
        message = "the event is not an HTTP request of API Gateway, a function URL or a load balancer"
        raise ValueError(message)
    return request


def _read(event: Mapping[str, Any]) -> HttpRequest | None:
    if event.get("version") == "2.0":
        about = event.get("requestContext", {})
        http = about.get("http", {})
        if isinstance(method := http.get("method"), str):
            return _request("2.0", event, method, _headers(event), http.get("sourceIp"), about.get("timeEpoch"))
    match event:
        case {"httpMethod": str(method), "requestContext": {"elb": _}}:
            received = _headers(event)
            # the load balancer appends whom it saw; what stands before that, anybody can write
            address = received.get("x-forwarded-for", "").rpartition(",")[2].strip()
            return _request("alb", event, method, received, address, 0)
        case {"httpMethod": str(method), "requestContext": dict(context)}:
            known: dict[str, Any] = context.get("identity") or {}
            began = context.get("requestTimeEpoch")
            return _request("1.0", event, method, _headers(event), known.get("sourceIp"), began)
    return None


def response(request: HttpRequest, status: int, headers: Mapping[str, str], body: str) -> dict[str, Any]:
    """Write a response as the sender of `request` reads it."""
    sent = {**headers, **request.granted}
    written: dict[str, Any] = {"statusCode": status, "headers": sent, "body": body, "isBase64Encoded": False}
    if request.source == "alb":  # with multi-value headers on, a load balancer reads nothing else
        written["multiValueHeaders"] = {name: [value] for name, value in sent.items()}
    return written


def takes_stream(request: HttpRequest) -> bool:
    """Whether the client reads event streams: "The client MUST support both these cases", but may say otherwise.

    "A request without any Accept header field implies that the user agent will accept any media type in response"
    (RFC 9110, section 12.5.1).
    """
    return "accept" not in request.headers or _weight(request.headers["accept"], "text/event-stream") > 0


def _weight(accept: str, media: str) -> float:
    """Say how much a client prefers a media type, from 0 to 1; "0 means not acceptable" (RFC 9110, section 12.4.2)."""
    weights: dict[str, float] = {}
    for each in accept.lower().split(","):
        name, *parameters = (part.strip() for part in each.split(";"))
        given = [part.removeprefix("q=") for part in parameters if part.startswith("q=")]
        weights[name] = max(weights.get(name, 0.0), _number(given[0]) if given else 1.0)
    # "Media ranges can be overridden by more specific media ranges … the most specific reference has precedence"
    ranges = (media, f"{media.partition('/')[0]}/*", "*/*")
    return next((weights[name] for name in ranges if name in weights), 0.0)


def _number(weight: str) -> float:
    try:
        number = float(weight)
    except ValueError:
        return 0.0
    return number if 0 <= number <= 1 else 0.0


def _request(  # noqa: PLR0913, PLR0917 - one constructor for three shapes
    source: Source,
    event: Mapping[str, Any],
    method: str,
    headers: Mapping[str, str],
    address: Any,  # noqa: ANN401 - whatever stands there
    began: Any,  # noqa: ANN401 - whatever stands there
) -> HttpRequest:
    return HttpRequest(
        source,
        method,
        str(event.get("rawPath" if source == "2.0" else "path") or ""),
        headers,
        event.get("body") or "",
        bool(event.get("isBase64Encoded")),
        address if isinstance(address, str) else "",
        began if isinstance(began, int) else 0,
        event["requestContext"],
    )


def _headers(event: Mapping[str, Any]) -> Mapping[str, str]:
    # A header sent twice must not be readable in two ways: joined, it equals nothing that the body says.
    received: Mapping[str, Any] = event.get("multiValueHeaders") or event.get("headers") or {}
    joined: dict[str, str] = {}
    for name, value in received.items():
        lower, text = name.lower(), value if isinstance(value, str) else ",".join(value)
        joined[lower] = f"{joined[lower]},{text}" if lower in joined else text
    return joined
