"""Makes the HTTP response of what a function returns: payload format 2.0 of an HTTP API.

    {"statusCode": 200, "headers": {…}, "cookies": ["…"], "body": "…", "isBase64Encoded": false}

A result without `statusCode` is a body itself. A result that breaks the format gets status 500, as from API Gateway.
"""

import base64
import json
import re
from collections.abc import Mapping
from typing import Any

from mcp_functions_harness.api_gateway.events import HOP_BY_HOP, Moment
from mcp_functions_harness.loopback import HttpResponse

REMAPPED = "www-authenticate"  # API Gateway renames this header to x-amzn-remapped-www-authenticate
HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # "token" in RFC 9110, section 5.6.2
INTERNAL_ERROR = HttpResponse(500, (("content-type", "application/json"),), b'{"message":"Internal Server Error"}')


def response(payload: bytes, moment: Moment) -> HttpResponse:
    """Make the response of a function's result, which is JSON. It repeats the id of the request in `moment`."""
    try:
        result = json.loads(payload)
    except ValueError:
        return INTERNAL_ERROR
    request_id = ("apigw-requestid", moment.request_id)
    # "If your Lambda function returns valid JSON and doesn't return a statusCode", the JSON is the body.
    if not isinstance(result, dict) or "statusCode" not in result:
        return HttpResponse(200, (("content-type", "application/json"), request_id), payload)
    try:
        return HttpResponse(_status(result), (*_headers(result), request_id), _body(result))
    except (TypeError, ValueError, AttributeError):  # a field breaks the format
        return INTERNAL_ERROR


def _status(result: Mapping[str, Any]) -> int:
    status = int(result["statusCode"])
    if status not in range(200, 600):  # 1xx is no final status, and 600 and more are not HTTP
        raise ValueError
    return status


def _headers(result: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    headers = {"content-type": "text/plain;charset=UTF-8"}
    for original_name, value in (result.get("headers") or {}).items():
        name = _header_name(original_name)
        headers[name] = _header_value(value)
    for name in (*HOP_BY_HOP, "content-length"):
        headers.pop(name, None)
    cookies = [("set-cookie", _header_value(cookie)) for cookie in result.get("cookies") or ()]
    return (*headers.items(), *cookies)


def _header_name(name: str) -> str:
    if not HEADER_NAME.fullmatch(name):
        raise ValueError
    if name.lower() == REMAPPED:
        return f"x-amzn-remapped-{REMAPPED}"
    return name.lower()


def _header_value(value: object) -> str:
    text = json.dumps(value) if isinstance(value, bool | int | float) else value
    if not isinstance(text, str) or not text.isprintable():  # a line break starts a header
        raise ValueError
    text.encode("latin-1")  # a ValueError for a character that HTTP does not have
    return text


def _body(result: Mapping[str, Any]) -> bytes:
    body = result.get("body")
    if body is None:
        return b""
    if not isinstance(body, str):
        raise TypeError
    if result.get("isBase64Encoded"):
        return base64.b64decode(body, validate=True)  # a ValueError if it is not base64
    return body.encode()  # a ValueError for half a surrogate pair
