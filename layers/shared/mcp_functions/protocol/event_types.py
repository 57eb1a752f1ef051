"""The types of an event of API Gateway in payload format 2.0, of its response, and of Lambda's context.

The toolkit imports them under `TYPE_CHECKING`. Others write events, so any member may be missing: `events.read` checks
those that the toolkit reads.
"""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias, TypedDict


class HttpContext(TypedDict, total=False):
    """The request line, as the gateway saw it."""

    method: str
    path: str
    protocol: str
    sourceIp: str
    userAgent: str


class JwtContext(TypedDict, total=False):
    """What API Gateway's JWT authorizer read in the token."""

    claims: dict[str, str]
    scopes: list[str] | None


# What an authorizer wrote. A Lambda authorizer writes what it wants into "lambda".
Authorizer = TypedDict("Authorizer", {"jwt": JwtContext, "lambda": dict[str, Any], "iam": dict[str, Any]}, total=False)


class RequestContext(TypedDict, total=False):
    """What the gateway alone writes."""

    http: HttpContext
    authorizer: Authorizer
    accountId: str
    apiId: str
    domainName: str
    domainPrefix: str
    requestId: str
    routeKey: str
    stage: str
    time: str
    timeEpoch: int


class Event(TypedDict, total=False):
    """An HTTP request. In base64, the body is bytes."""

    version: str
    routeKey: str
    rawPath: str
    rawQueryString: str
    cookies: list[str]
    headers: dict[str, str]
    queryStringParameters: dict[str, str]
    requestContext: RequestContext
    body: str
    isBase64Encoded: bool


Response: TypeAlias = dict[str, Any]  # statusCode, headers, body and isBase64Encoded


class WorkerOrder(TypedDict):
    """An order to continue a task: its id, and its owner as `tasks.task_store` names it."""

    id: str
    owner: str | None


class LambdaContext(Protocol):
    """The members of Lambda's context object that this package reads."""

    function_name: str
    aws_request_id: str

    def get_remaining_time_in_millis(self) -> int:
        """Return the milliseconds until Lambda ends this invocation."""
