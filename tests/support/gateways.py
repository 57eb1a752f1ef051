"""One HTTP request as it reaches a Lambda: from an HTTP API or a function URL, of AWS or of `sam local`.

The events follow AWS's documentation and the SAM CLI's source. This module imports nothing of the package under test.
"""

from __future__ import annotations

import base64
import json
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tests.support import wire

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Event = dict[str, Any]
Pairs = tuple[tuple[str, str], ...]

ADDRESS = "192.0.2.7"
TIME = "20/Nov/2026:19:44:03 +0000"
TRACE = "Root=1-6b00f3c3-0123456789abcdef01234567"
API_HOST = "abc123.execute-api.eu-central-1.amazonaws.com"
URL_HOST = "xyz789.lambda-url.eu-central-1.on.aws"
FORWARDED = (("x-forwarded-for", ADDRESS), ("x-forwarded-proto", "https"), ("x-amzn-trace-id", TRACE))
SAM_FORWARDED = (("X-Forwarded-Proto", "http"), ("X-Forwarded-Port", "3000"))
TEXT = ("application/json", "application/xml", "application/javascript")  # and text/*: not encoded in base64
JWT_SETTINGS = {  # what the template sets for AuthMode jwt
    "MCP_AUTH_MODE": "jwt",
    "MCP_JWT_ISSUER": "https://id.example",
    "MCP_JWT_AUDIENCE": "https://mcp.example/mcp",
    "MCP_RESOURCE_URL": "https://mcp.example/mcp",
}


@dataclass(frozen=True)
class HttpRequest:
    """A client's request: a body, and headers spelt as the client spells them."""

    body: bytes
    headers: Pairs
    method: str = "POST"

    def header(self, name: str) -> str:
        """Return the first header of this name, or nothing."""
        return next((value for known, value in self.headers if known.lower() == name.lower()), "")

    def with_headers(self, *pairs: tuple[str, str]) -> HttpRequest:
        """Return the same with more headers, which replace none."""
        return replace(self, headers=(*self.headers, *pairs))

    def without(self, name: str) -> HttpRequest:
        """Return the same without a header."""
        return replace(self, headers=tuple(pair for pair in self.headers if pair[0].lower() != name.lower()))


def http_request(message: Mapping[str, Any]) -> HttpRequest:
    """Return the HTTP request of a JSON-RPC message, as a client writes it: names of headers with capitals."""
    headers = tuple((name.title(), value) for name, value in wire.headers(message).items())
    return HttpRequest(json.dumps(message).encode(), (("Host", API_HOST), ("User-Agent", "client/1"), *headers))


def http_api(request: HttpRequest) -> Event:
    """Return the event of an HTTP API: header names in lower case, no empty members, base64 for binary bodies."""
    lower_case = [(name.lower(), value) for name, value in request.headers]
    event = {
        "version": "2.0",
        "routeKey": "ANY /mcp",
        "rawPath": "/mcp",
        "rawQueryString": "",
        "headers": _joined((*lower_case, *FORWARDED)),
        "requestContext": {**_context(request, API_HOST), "routeKey": "ANY /mcp"},
        "isBase64Encoded": _is_binary(request),
    }
    if request.body:
        event["body"] = _body(request)
    return event


def binary_http_api(request: HttpRequest) -> Event:
    """Return the event of an HTTP API that takes the body for binary: in base64."""
    body = base64.b64encode(request.body).decode()
    return {**http_api(replace(request, body=b"")), "body": body, "isBase64Encoded": True}


def function_url(request: HttpRequest) -> Event:
    """Return the event of a function URL: without a route, and from an anonymous caller."""
    event = http_api(request)
    context = {**_context(request, URL_HOST), "accountId": "anonymous", "routeKey": "$default"}
    return {**event, "routeKey": "$default", "rawPath": "/", "requestContext": context}


def sam_http_api(request: HttpRequest) -> Event:
    """Return the event of `sam local`: Flask's spelling of header names, empty members, never base64.

    Its `timeEpoch` is in seconds, not milliseconds, and stays at the start of `sam local`.
    """
    flask_case = [(name.title(), value) for name, value in request.headers]
    http = {
        "method": request.method,
        "path": "/mcp",
        "protocol": "HTTP/1.1",
        "sourceIp": "127.0.0.1",
        "userAgent": "Custom User Agent String",
    }
    context = {
        "accountId": "123456789012",
        "apiId": "1234567890",
        "http": http,
        "requestId": "4a1f4c2e-0f43-4a53-a8a5-4a5b1c7a9d10",
        "routeKey": f"{request.method} /mcp",
        "stage": "$default",
        "time": TIME,
        "timeEpoch": int(time.time()) - 3600,
        "domainName": "localhost",
        "domainPrefix": "localhost",
    }
    return {
        "version": "2.0",
        "routeKey": f"{request.method} /mcp",
        "rawPath": "/mcp",
        "rawQueryString": "",
        "cookies": [],
        "headers": _joined((*flask_case, *SAM_FORWARDED)),
        "requestContext": context,
        "body": request.body.decode(),
        "pathParameters": {},
        "stageVariables": None,
        "isBase64Encoded": False,
    }


GATEWAYS: dict[str, Callable[[HttpRequest], Event]] = {
    "HTTP API": http_api,
    "HTTP API, sam local": sam_http_api,
    "function URL": function_url,
    "HTTP API, base64": binary_http_api,
}


# --- who calls ----------------------------------------------------------------------------------------------------


def by_iam(event: Event, name: str, account: str = "123456789012") -> Event:
    """Return an event whose caller was authenticated by IAM: an assumed role with this session name."""
    user = f"AROAEXAMPLE:{name}"
    iam = {
        "accessKey": "ASIAEXAMPLE",
        "accountId": account,
        "callerId": user,
        "cognitoIdentity": None,
        "principalOrgId": "o-1",
        "userArn": f"arn:aws:sts::{account}:assumed-role/reader/{name}",
        "userId": user,
    }
    return _in_context(event, {"authorizer": {"iam": iam}})


def by_jwt(event: Event, **claims: Any) -> Event:  # noqa: ANN401 - JSON values
    """Return an event whose caller was authenticated by the JWT authorizer, which writes every claim as text."""
    valid = {"aud": JWT_SETTINGS["MCP_JWT_AUDIENCE"], "exp": str(int(time.time()) + 300)}
    return _in_context(event, {"authorizer": {"jwt": {"claims": valid | claims, "scopes": None}}})


def _in_context(event: Event, more: Mapping[str, Any]) -> Event:
    return {**event, "requestContext": {**event["requestContext"], **more}}


# --- the parts ----------------------------------------------------------------------------------------------------


def _context(request: HttpRequest, host: str) -> Event:
    http = {
        "method": request.method,
        "path": "/mcp",
        "protocol": "HTTP/1.1",
        "sourceIp": ADDRESS,
        "userAgent": request.header("user-agent"),
    }
    return {
        "accountId": "123456789012",
        "apiId": host.partition(".")[0],
        "domainName": host,
        "domainPrefix": host.partition(".")[0],
        "http": http,
        "requestId": "JKJaXmPLvHcESHA=",
        "stage": "$default",
        "time": TIME,
        "timeEpoch": int(time.time() * 1000),
    }


def _joined(pairs: Pairs) -> dict[str, str]:
    """Join the values of a repeated header with commas."""
    joined: dict[str, str] = {}
    for name, value in pairs:
        joined[name] = f"{joined[name]},{value}" if name in joined else value
    return joined


def _is_binary(request: HttpRequest) -> bool:
    media_type = request.header("content-type").partition(";")[0].strip().lower()
    is_text = media_type in TEXT or media_type.startswith("text/")
    return bool(request.body) and not is_text


def _body(request: HttpRequest) -> str:
    return base64.b64encode(request.body).decode() if _is_binary(request) else request.body.decode()
