"""Reads an event of API Gateway as an HTTP request.

    {"version": "2.0", "rawPath": "/mcp", "headers": {…}, "body": "…", "isBase64Encoded": false,
     "requestContext": {"http": {"method": "POST", "sourceIp": "192.0.2.1"}, "timeEpoch": 1785000000000, …}}

An HTTP API and a function URL send this "payload format 2.0". `sam local` spells header names differently, and sends
empty fields where AWS sends none.

A worker is a Lambda function that continues a task, which is a call that goes on after its response. Its event is an
order: {"mcpTask": {"id": "report.7f3a…", "owner": null}}. Only a role that may call Lambda's Invoke API can send it.
API Gateway writes no member of this name, so clients cannot send it.
"""

from __future__ import annotations

import binascii
import re
from typing import TYPE_CHECKING, Any, cast

from mcp_functions.protocol.constants import WORKER_SUFFIX
from mcp_functions.protocol.errors import ContentTooLarge, ParseError, UnsupportedMediaType
from mcp_functions.protocol.messages import is_dict_of
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.protocol.event_types import Event, LambdaContext, RequestContext
    from mcp_functions.settings import Settings

WORKER_ORDER = "mcpTask"  # the member of a worker's event that holds the order
GATEWAY_SECONDS = 30.0  # API Gateway's limit for an HTTP API
# What a caller proves itself with. API Gateway's authorizer has checked it, and wrote the caller into `requestContext`.
CREDENTIAL_HEADERS = frozenset({"authorization", "cookie", "proxy-authorization", "x-amz-security-token", "x-api-key"})
# A query may hold a token or a signature, and MCP has no query. The names with "multiValue" are of other formats.
CREDENTIAL_MEMBERS = frozenset({
    "cookies", "multiValueHeaders", "multiValueQueryStringParameters", "queryStringParameters", "rawQueryString",
})  # fmt: skip

SENDERS = {  # of records: the name in each record, and the words for the log
    "aws:sqs": "of a queue (SQS)",
    "aws:s3": "of a bucket (S3)",
    "aws:sns": "of a topic (SNS)",
    "aws:dynamodb": "of a table's stream (DynamoDB)",
    "aws:kinesis": "of a stream (Kinesis)",
}


class HttpRequest(NamedTuple):
    """An HTTP request, as API Gateway passed it on."""

    event: Event  # which the front door forwards, `without_credentials`
    method: str  # in capitals
    path: str  # without the query
    headers: Mapping[str, str]  # with names in lower case
    body: str  # as text, or as base64 if `is_base64`
    is_base64: bool  # True if the gateway encoded the body
    address: str  # the client's IP address, as the gateway saw it; "" if unknown
    gateway_deadline: float  # when the gateway stops waiting for the response, in unix seconds
    lambda_deadline: float  # when Lambda ends this invocation, in unix seconds

    @property
    def request_context(self) -> RequestContext:
        """The event's `requestContext`, which the gateway alone writes, with the authorizer's output."""
        return self.event["requestContext"]


def read(event: Mapping[str, Any], context: LambdaContext, now: float) -> HttpRequest:
    """Read an event at the time `now`, unix seconds; ValueError if it is no HTTP request in payload format 2.0."""
    match event:
        case {"version": "2.0", "requestContext": {"http": {"method": str(method)}}}:
            request_context = event["requestContext"]
            body = event.get("body") or ""
            headers = event.get("headers") or {}
        case _:
            raise ValueError(_refusal(event))
    if not isinstance(body, str) or not is_dict_of(str, headers):
        raise ValueError(_refusal(event))
    address = request_context["http"].get("sourceIp")
    until = lambda_deadline(context, now)
    return HttpRequest(
        event=cast("Event", event),
        method=method,
        path=str(event.get("rawPath") or ""),
        headers=_join_headers(headers),
        body=body,
        is_base64=bool(event.get("isBase64Encoded")),
        address=address if isinstance(address, str) else "",
        gateway_deadline=min(until, _received(request_context.get("timeEpoch"), now) + GATEWAY_SECONDS),
        lambda_deadline=until,
    )


def _refusal(event: object) -> str:
    return (
        "the event is not an HTTP request in payload format 2.0, of an HTTP API or a function URL,"
        f" but {_sender(event)}: an MCP function takes no other, so write a plain function outside functions/"
    )


def _sender(event: object) -> str:
    """Say who sent an event that is no HTTP request. Only these words are logged, and nothing of the event."""
    match event:
        case {"Records": [{"eventSource": str(name)} | {"EventSource": str(name)}, *_]}:
            return SENDERS.get(name, "of a service that sends records")
        case {"detail-type": _, "source": _}:
            return "of EventBridge or a schedule"
        case {"requestContext": {"elb": _}}:
            return "of a load balancer"
        case {"httpMethod": _}:
            return "of a REST API, or in payload format 1.0"
    return "of a direct call"


def without_credentials(http: HttpRequest) -> HttpRequest:
    """Return a request without the caller's token, cookies and query, in its headers and in its event.

    "MCP servers MUST NOT pass through the token they received" (basic/authorization). So no handler, no log line and no
    function behind the front door gets it.
    """
    kept = {name: value for name, value in http.event.items() if name not in CREDENTIAL_MEMBERS}
    event = cast("Event", kept)
    event["headers"] = _without_credentials(http.event.get("headers") or {})
    event["rawQueryString"] = ""  # AWS always writes it
    return http._replace(event=event, headers=_without_credentials(http.headers))


def _without_credentials(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.lower() not in CREDENTIAL_HEADERS}


def read_body(http: HttpRequest, limit: int) -> str | bytes:
    """Return the body of a request, of at most `limit` bytes: text, or bytes if the event has it in base64.

    Raises:
        ContentTooLarge: the body is over `limit`.
        ParseError: the event says that the body is base64, and it is not; or the body is not Unicode.
    """
    # `limit` bytes are at most `limit` characters as text, and 4/3 of that as base64. A body with twice as many is
    # refused before it is decoded. The exact check follows.
    if len(http.body) > limit * 2:
        raise ContentTooLarge
    body: str | bytes
    try:
        if http.is_base64:
            body = binascii.a2b_base64(http.body, strict_mode=True)
            size = len(body)
        else:
            body = http.body
            size = len(body.encode())
    except ValueError:  # not base64, or not Unicode (half of a surrogate pair)
        raise ParseError from None  # the text of the cause quotes the body, which no log may hold
    if size > limit:
        raise ContentTooLarge
    return body


def check_media_type(http: HttpRequest) -> None:
    """Refuse a body that is not plain JSON: UnsupportedMediaType if it has another type, or is compressed."""
    media_type = http.headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    encoding = http.headers.get("content-encoding", "identity")
    if media_type != "application/json" or encoding != "identity":
        raise UnsupportedMediaType


def folder_of(function_name: str, settings: Settings) -> str:
    """Return the folder of a Lambda function, `<stack>_<folder>`. The folder of a worker ends with `WORKER_SUFFIX`.

    Under `sam local`, the name of a function is its logical id in the template:

        AuditYear          audit_year
        AuditYearWorker    audit_year-worker
    """
    name = function_name.removeprefix(f"{settings.stack}_")
    if not settings.is_sam_local:
        return name
    before_inner_capitals = "(?<!^)(?=[A-Z])"
    folder = re.sub(before_inner_capitals, "_", name.removesuffix("Worker")).lower()
    return folder + WORKER_SUFFIX if name.endswith("Worker") else folder


def lambda_deadline(context: LambdaContext, now: float) -> float:
    """Return the time at which Lambda ends this invocation, in unix seconds."""
    return float(now + context.get_remaining_time_in_millis() / 1000)


def _received(time_epoch: object, now: float) -> float:
    """Return when the gateway received a request, in unix seconds, from the `timeEpoch` of its event.

    A time stamp that is not of the last `GATEWAY_SECONDS` is wrong: the clocks of the gateway and of this function
    differ, or `sam local` has sent the time of its own start. Then this is the current time.
    """
    if not isinstance(time_epoch, int):
        return now
    received = time_epoch / 1000
    return received if received <= now < received + GATEWAY_SECONDS else now


def _join_headers(received: Mapping[str, str]) -> dict[str, str]:
    """Return the headers with their names in lower case.

    A name may come in two spellings, "Mcp-Name" and "mcp-name". Then the values are joined with a comma, as HTTP does.
    A router may have read only one of them. A joined MCP header differs from the body, so its request is refused.
    """
    headers: dict[str, str] = {}
    for spelling, value in received.items():
        name = spelling.lower()
        headers[name] = f"{headers[name]},{value}" if name in headers else value
    return headers
