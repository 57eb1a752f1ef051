"""The body of an HTTP request, its media type, and the deadline of its response."""

from __future__ import annotations

import binascii
from typing import TYPE_CHECKING

from mcp_functions.protocol.errors import ContentTooLarge, ParseError, UnsupportedMediaType

if TYPE_CHECKING:
    from mcp_functions.http.events import HttpRequest
    from mcp_functions.http.lambda_types import LambdaContext

GATEWAY_SECONDS = 30.0  # API Gateway's limit for an HTTP API


def read_body(http: HttpRequest, limit: int) -> str | bytes:
    """Return the body of a request, of at most `limit` bytes.

    Raises:
        ContentTooLarge: the body is over `limit`.
        ParseError: the body is not base64, although the event says so.
    """
    if len(http.body) > limit * 2:  # base64 adds a third, so this body need not be decoded
        raise ContentTooLarge
    try:
        body = binascii.a2b_base64(http.body, strict_mode=True) if http.is_base64 else http.body
        size = len(body if isinstance(body, bytes) else body.encode())
    except ValueError:  # not base64, or half of a surrogate pair
        raise ParseError from None
    if size > limit:
        raise ContentTooLarge
    return body


def check_media_type(http: HttpRequest) -> None:
    """Refuse a body that is not plain JSON."""
    media_type = http.headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    encoding = http.headers.get("content-encoding", "identity")
    if media_type != "application/json" or encoding != "identity":
        raise UnsupportedMediaType


def lambda_deadline(context: LambdaContext, now: float) -> float:
    """Return the time at which Lambda ends this invocation, in unix seconds."""
    return float(now + context.get_remaining_time_in_millis() / 1000)


def gateway_deadline(http: HttpRequest, ends: float, now: float) -> float:
    """Return the time at which the gateway stops waiting, or Lambda's own deadline `ends` if that is earlier.

    The gateway's time stamp counts only if it is plausible. `sam local` sends the time of its own start. A time stamp
    that is older than the gateway's limit, or in the future, shows that the two clocks differ.
    """
    began = http.began / 1000
    if not now - GATEWAY_SECONDS < began <= now:
        began = now
    return min(ends, began + GATEWAY_SECONDS)
