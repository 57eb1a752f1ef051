"""Checks of HTTP: requests from web pages of strangers, methods, broken headers, and the codes of plain errors."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING

from mcp_functions.attack import messages
from mcp_functions.attack.client import Request
from mcp_functions.attack.findings import Basis, Check, Proof, Severity
from mcp_functions.attack.messages import PREFIX, with_header

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mcp_functions.attack.client import Exchange
    from mcp_functions.attack.scan import Scan

HTTP = "basic/transports/streamable-http"
STRANGER = "https://attacker.example"
STRANGERS = (STRANGER, "null", "http://localhost.attacker.example", "http://127.0.0.1.attacker.example")


def _send_list(scan: Scan, name: str, value: str) -> Exchange:
    """Send a correct list request with one other header."""
    return scan.client.send(with_header(scan.list_request(), name, value))


ORIGIN = (
    "Servers MUST validate the Origin header on all incoming connections … If the Origin header is present and "
    "invalid, servers MUST respond with HTTP 403 Forbidden."
)
SIMPLE = "a page may send text/plain without a CORS preflight: a server that accepts it relies on Origin alone."
HOST = "a local server that accepts any Host relies on the Origin check alone against DNS rebinding."


def _unanswered(scan: Scan, name: str, values: Sequence[str]) -> Iterator[Proof]:
    """Check that a list request with one of these values in a header is not answered."""
    for value in values:
        exchange = _send_list(scan, name, value)
        if exchange.response.result is not None:
            yield Proof(exchange, f"{name}: {value} was answered: {exchange.response}")


def _origin_status(scan: Scan) -> Iterator[Proof]:
    exchange = _send_list(scan, "Origin", STRANGER)
    response = exchange.response
    if response.result is None and response.status != HTTPStatus.FORBIDDEN and not response.undecided:
        yield Proof(exchange, f"Origin: {STRANGER} was refused with {response}")


CREDENTIALS = "no page of an unknown origin may read answers that a browser's credentials fetched."


def _cors(scan: Scan) -> Iterator[Proof]:
    headers = (
        ("Origin", STRANGER),
        ("Access-Control-Request-Method", "POST"),
        ("Access-Control-Request-Headers", "authorization"),
    )
    preflight = scan.client.send(Request(b"", headers, "OPTIONS"))
    for exchange in (preflight, _send_list(scan, "Origin", STRANGER)):
        allowed = exchange.response.headers.get("access-control-allow-origin")
        credentials = exchange.response.headers.get("access-control-allow-credentials")
        if allowed == STRANGER and credentials == "true":
            yield Proof(exchange, f"access-control-allow-origin: {allowed}, with credentials")


METHODS = "HTTP GET or DELETE to the MCP endpoint: respond with 405 Method Not Allowed."


def _methods(scan: Scan) -> Iterator[Proof]:
    headers = (("Accept", "application/json"), ("MCP-Protocol-Version", messages.VERSION))
    for method in ("GET", "DELETE", "PUT", "PATCH"):  # only watching.py examines the responses to the last two
        exchange = scan.client.send(Request(b"", headers, method))
        response = exchange.response
        if method in {"GET", "DELETE"} and response.status != HTTPStatus.METHOD_NOT_ALLOWED and not response.undecided:
            yield Proof(exchange, f"{method}: {response}")


WHOLE = "a message shorter than its Content-Length is incomplete (RFC 9112, 8)."


def _oddities(scan: Scan) -> Iterator[Proof]:
    """Send odd headers, whose responses only watching.py examines, and a body shorter than its Content-Length."""
    for name, value in (
        ("Accept", "text/html"),
        ("Accept", ""),
        ("Content-Type", ""),
        ("Content-Type", "application/json; charset=utf-7"),
        ("Content-Encoding", "gzip"),
        ("Mcp-Session-Id", scan.canary),
        ("Last-Event-ID", scan.canary),
        ("X-Forwarded-For", "127.0.0.1, ::1, not an address"),
        ("Mcp-Param-Example", "=?base64?A?="),
    ):
        _send_list(scan, name, value)
    whole = scan.list_request()
    exchange = scan.client.send(replace(whole, content_length=len(whole.body) + 10))
    if exchange.response.result is not None:
        yield Proof(exchange, f"10 bytes were missing, and it was answered: {exchange.response}")


SUCCESS = range(200, 300)  # statuses of HTTP
SILENT = "Notifications: The receiver MUST NOT send a response."


def _notification(scan: Scan) -> Iterator[Proof]:
    notification = messages.message("notifications/cancelled", {"requestId": 1})
    del notification["id"]
    exchange = scan.client.send(messages.write(notification))
    response = exchange.response
    if response.result is not None or (response.status in SUCCESS and response.body):
        yield Proof(exchange, f"a notification was answered: {response}")


# Codes of JSON-RPC.
METHOD_NOT_FOUND = -32601
UNSUPPORTED = -32022  # the revision is not supported
INVALID_PARAMS = -32602
UNKNOWN = (
    "it MUST respond with 404 Not Found and a JSON-RPC error with code -32601; … 400 and -32022; … 400 and -32602."
)


def _codes(scan: Scan) -> Iterator[Proof]:
    unknown = messages.write(messages.message("tools/unheard-of", {}, next(scan.ids)))
    old = scan.list_message()
    old["params"]["_meta"][PREFIX + "protocolVersion"] = "1999-01-01"
    cases = (
        ("a method that does not exist", unknown, 404, METHOD_NOT_FOUND),
        ("a revision that does not exist",
         with_header(messages.write(old), "MCP-Protocol-Version", "1999-01-01"), 400, UNSUPPORTED),
        ("no _meta", messages.write({**scan.list_message(), "params": {}}), 400, INVALID_PARAMS),
    )  # fmt: skip
    for what, request, status, code in cases:
        exchange = scan.client.send(request)
        response = exchange.response
        has_data = code != UNSUPPORTED or isinstance((response.error or {}).get("data"), dict)
        is_expected = (response.status, response.code) == (status, code) and has_data
        if not is_expected and not response.undecided:
            yield Proof(exchange, f"{what}: {response}, and not HTTP {status} with {code}")


CHECKS = (
    Check("origin-of-a-stranger", Severity.HOLE, Basis.MUST, f"{HTTP}, Security Warning", ORIGIN,
          partial(_unanswered, name="Origin", values=STRANGERS)),
    Check("origin-status", Severity.DEVIATION, Basis.MUST, f"{HTTP}, Security Warning", ORIGIN, _origin_status),
    Check("cors-with-credentials", Severity.HOLE, Basis.OPINION, HTTP, CREDENTIALS, _cors),
    Check("text-plain", Severity.INFORMATION, Basis.OPINION, HTTP, SIMPLE,
          partial(_unanswered, name="Content-Type", values=["text/plain"])),
    Check("foreign-host", Severity.INFORMATION, Basis.OPINION, HTTP, HOST,
          partial(_unanswered, name="Host", values=["attacker.example"])),
    Check("http-methods", Severity.INFORMATION, Basis.SHOULD, f"{HTTP}, Backward Compatibility", METHODS, _methods),
    Check("half-a-message", Severity.DEVIATION, Basis.OPINION, HTTP, WHOLE, _oddities),
    Check("notification-answered", Severity.DEVIATION, Basis.MUST, "basic, Notifications", SILENT, _notification),
    Check("codes-of-refusals", Severity.DEVIATION, Basis.MUST, HTTP, UNKNOWN, _codes),
)  # fmt: skip
