"""Checks of HTTP: requests from web pages of strangers, methods, broken headers, and the codes of plain errors.

The docstring of a check is the sentence that it tests.
"""

from collections.abc import Iterator
from dataclasses import replace
from http import HTTPStatus

from mcp_functions_harness.client import messages
from mcp_functions_harness.client.http import Exchange, Request
from mcp_functions_harness.client.messages import with_header
from tests.attack.findings import Basis, Proof, Severity, check
from tests.attack.scan import Scan

HTTP = "basic/transports/streamable-http"
STRANGER = "https://attacker.example"
STRANGERS = (STRANGER, "null", "http://localhost.attacker.example", "http://127.0.0.1.attacker.example")
SUCCESS = range(200, 300)  # statuses of HTTP
# Codes of JSON-RPC.
METHOD_NOT_FOUND = -32601
UNSUPPORTED = -32022  # the revision is not supported
INVALID_PARAMS = -32602


def _send_list(scan: Scan, name: str, value: str) -> Exchange:
    """Send a correct list request with one other header."""
    return scan.send(with_header(scan.list_request(), name, value))


def _answered(scan: Scan, name: str, *values: str) -> Iterator[Proof]:
    """Prove that a list request with one of these values in a header is answered."""
    for value in values:
        exchange = _send_list(scan, name, value)
        if exchange.response.result is not None:
            yield Proof(exchange, f"{name}: {value} was answered: {exchange.response}")


@check(Severity.HOLE, Basis.MUST, f"{HTTP}, Security Warning")
def origin_of_a_stranger(scan: Scan) -> Iterator[Proof]:
    """Call with the Origin of an unknown page.

    Servers MUST validate the Origin header on all incoming connections … If the Origin header is present and invalid,
    servers MUST respond with HTTP 403 Forbidden.
    """
    return _answered(scan, "Origin", *STRANGERS)


@check(Severity.DEVIATION, Basis.MUST, f"{HTTP}, Security Warning")
def origin_status(scan: Scan) -> Iterator[Proof]:
    """Expect status 403 for the Origin of an unknown page.

    Servers MUST validate the Origin header on all incoming connections … If the Origin header is present and invalid,
    servers MUST respond with HTTP 403 Forbidden.
    """
    exchange = _send_list(scan, "Origin", STRANGER)
    response = exchange.response
    if response.result is None and response.status != HTTPStatus.FORBIDDEN and not response.undecided:
        yield Proof(exchange, f"Origin: {STRANGER} was refused with {response}")


@check(Severity.HOLE, Basis.OPINION, HTTP)
def cors_with_credentials(scan: Scan) -> Iterator[Proof]:
    """Look for CORS headers that let an unknown page read answers.

    no page of an unknown origin may read answers that a browser's credentials fetched.
    """
    headers = (
        ("Origin", STRANGER),
        ("Access-Control-Request-Method", "POST"),
        ("Access-Control-Request-Headers", "authorization"),
    )
    preflight = scan.send(Request(b"", headers, "OPTIONS"))
    for exchange in (preflight, _send_list(scan, "Origin", STRANGER)):
        allowed = exchange.response.headers.get("access-control-allow-origin")
        credentials = exchange.response.headers.get("access-control-allow-credentials")
        if allowed == STRANGER and credentials == "true":
            yield Proof(exchange, f"access-control-allow-origin: {allowed}, with credentials")


@check(Severity.INFORMATION, Basis.OPINION, HTTP)
def text_plain(scan: Scan) -> Iterator[Proof]:
    """Send a request as text/plain.

    a page may send text/plain without a CORS preflight: a server that accepts it relies on Origin alone.
    """
    return _answered(scan, "Content-Type", "text/plain")


@check(Severity.INFORMATION, Basis.OPINION, HTTP)
def foreign_host(scan: Scan) -> Iterator[Proof]:
    """Send a request with the Host of another server.

    a local server that accepts any Host relies on the Origin check alone against DNS rebinding.
    """
    return _answered(scan, "Host", "attacker.example")


@check(Severity.INFORMATION, Basis.SHOULD, f"{HTTP}, Backward Compatibility")
def http_methods(scan: Scan) -> Iterator[Proof]:
    """Send GET and DELETE requests.

    HTTP GET or DELETE to the MCP endpoint: respond with 405 Method Not Allowed.
    """
    headers = (("Accept", "application/json"), ("MCP-Protocol-Version", messages.VERSION))
    for method in ("GET", "DELETE", "PUT", "PATCH"):  # only watching.py examines the responses to the last two
        exchange = scan.send(Request(b"", headers, method))
        response = exchange.response
        if method in {"GET", "DELETE"} and response.status != HTTPStatus.METHOD_NOT_ALLOWED and not response.undecided:
            yield Proof(exchange, f"{method}: {response}")


@check(Severity.DEVIATION, Basis.OPINION, HTTP)
def half_a_message(scan: Scan) -> Iterator[Proof]:
    """Send a body that is shorter than its Content-Length.

    a message shorter than its Content-Length is incomplete (RFC 9112, 8).
    """
    for name, value in (  # only watching.py examines the responses to these headers
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
    exchange = scan.send(replace(whole, content_length=len(whole.body) + 10))
    if exchange.response.result is not None:
        yield Proof(exchange, f"10 bytes were missing, and it was answered: {exchange.response}")


@check(Severity.DEVIATION, Basis.MUST, "basic, Notifications")
def notification_answered(scan: Scan) -> Iterator[Proof]:
    """Send notifications, and look for a response.

    Notifications: The receiver MUST NOT send a response.
    """
    notification = messages.message("notifications/cancelled", {"requestId": 1})
    del notification["id"]
    exchange = scan.send(messages.write(notification))
    response = exchange.response
    if response.result is not None or (response.status in SUCCESS and response.body):
        yield Proof(exchange, f"a notification was answered: {response}")


@check(Severity.DEVIATION, Basis.MUST, HTTP)
def codes_of_refusals(scan: Scan) -> Iterator[Proof]:
    """Send requests that must be refused, and look at the codes.

    it MUST respond with 404 Not Found and a JSON-RPC error with code -32601; … 400 and -32022; … 400 and -32602.
    """
    unknown = messages.write(messages.message("tools/unheard-of", {}, next(scan.ids)))
    old = scan.list_message()
    old["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = "1999-01-01"
    old_request = with_header(messages.write(old), "MCP-Protocol-Version", "1999-01-01")
    without_meta = messages.write({**scan.list_message(), "params": {}})
    for description, request, status, code in (
        ("a method that does not exist", unknown, HTTPStatus.NOT_FOUND, METHOD_NOT_FOUND),
        ("a revision that does not exist", old_request, HTTPStatus.BAD_REQUEST, UNSUPPORTED),
        ("no _meta", without_meta, HTTPStatus.BAD_REQUEST, INVALID_PARAMS),
    ):
        exchange = scan.send(request)
        response = exchange.response
        has_data = code != UNSUPPORTED or isinstance(response.error and response.error.get("data"), dict)
        is_expected = (response.status, response.code) == (status, code) and has_data
        if not is_expected and not response.undecided:
            yield Proof(exchange, f"{description}: {response}, and not HTTP {status} with {code}")
