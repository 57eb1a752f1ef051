"""Checks with headers that differ from the body: a proxy that routes by them would see another request than the server.

MCP repeats the revision, the method and the name in headers. Each check sends a correct request with one wrong header.
The docstring of a check is the sentence that it tests.
"""

from collections.abc import Iterator
from http import HTTPStatus

from mcp_functions_harness.client import messages
from mcp_functions_harness.client.http import Request
from mcp_functions_harness.client.messages import in_base64, with_header
from tests.attack.findings import Basis, Proof, Severity, check
from tests.attack.scan import Exchange, Scan

HTTP = "basic/transports/streamable-http"
OLDER = "2025-11-25"  # a revision without these headers
MISMATCH = -32020  # code of JSON-RPC
VERSION = "MCP-Protocol-Version"
METHOD = "Mcp-Method"
NAME = "Mcp-Name"


@check(Severity.HOLE, Basis.MUST, f"{HTTP}, Server Validation")
def headers_against_body(scan: Scan) -> Iterator[Proof]:
    """Expect that a wrong header gets no result.

    Servers that process the request body MUST reject requests where the values specified in the headers do not match
    the corresponding values in the request body.
    """
    for description, exchange in _wrong_requests(scan):
        result = exchange.response.result
        if result is None:
            continue
        is_older = _may_be_older(exchange.request) and "resultType" not in result  # older revisions have no resultType
        if not is_older:
            yield Proof(exchange, f"{description}: {exchange.response}")


@check(Severity.DEVIATION, Basis.MUST, f"{HTTP}, Server Validation")
def header_error(scan: Scan) -> Iterator[Proof]:
    """Expect the right error for a wrong header.

    When rejecting a request due to header validation failure, servers MUST return HTTP status 400 Bad Request and
    MUST include a JSON-RPC error response using … -32020.
    """
    for description, exchange in _wrong_requests(scan):
        response = exchange.response
        if response.result is not None or response.undecided or _may_be_older(exchange.request):
            continue
        if (response.status, response.code) != (HTTPStatus.BAD_REQUEST, MISMATCH):
            yield Proof(exchange, f"{description}: {response}")


@check(Severity.DEVIATION, Basis.MUST, f"{HTTP}, Value Encoding")
def header_in_base64(scan: Scan) -> Iterator[Proof]:
    """Send a header whose value is encoded in base64.

    servers MUST decode encoded values … before comparing them to body values.
    """
    correct = _correct_request(scan)
    name = dict(correct.headers).get(NAME)
    if name is None:
        return
    exchange = scan.send(with_header(correct, NAME, in_base64(name)))
    if exchange.response.code == MISMATCH:
        yield Proof(exchange, f"{NAME} says the right thing in base64: {exchange.response}")


def _correct_request(scan: Scan) -> Request:
    return scan.request(scan.targets[0]) if scan.targets else scan.list_request()


def _wrong_requests(scan: Scan) -> Iterator[tuple[str, Exchange]]:
    """Send a request for each wrong value of a header; yield a description and the exchange."""
    correct = _correct_request(scan)
    for name, description, values in _wrong_values(dict(correct.headers)):
        request = with_header(correct, name, *values)
        if sorted(request.headers) != sorted(correct.headers):
            yield f"{name} {description}", scan.send(request)


def _wrong_values(headers: dict[str, str]) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Yield a header's name, a description, and the values that replace its own."""
    method = headers[METHOD]
    name = headers.get(NAME)
    yield VERSION, "names no revision", ("2099-01-01",)
    yield VERSION, f"names {OLDER}", (OLDER,)
    yield VERSION, "is sent twice, differently", (messages.VERSION, OLDER)
    yield VERSION, "is missing", ()
    yield METHOD, "names another method", ("server/discover",)
    yield METHOD, "is written in capitals", (method.upper(),)
    yield METHOD, "is sent twice, differently", (method, "server/discover")
    yield METHOD, "is sent twice, the wrong one first", ("server/discover", method)
    yield METHOD, "is missing", ()
    if name is not None:
        yield NAME, "names another", ("another",)
        yield NAME, "is written in capitals", (name.upper(),)
        yield NAME, "is sent twice, differently", (name, "another")
        yield NAME, "is missing", ()
        yield NAME, "is another in base64", (in_base64("another"),)
        yield NAME, "is broken base64", (f"=?base64?{'!' * 8}?=",)
        yield NAME, "is in base64 with its marker in capitals", (in_base64(name).replace("base64", "BASE64"),)


def _may_be_older(request: Request) -> bool:
    """Return whether a server may read this as a request of an older revision, which has no such rules for headers."""
    versions = [value for name, value in request.headers if name == VERSION]
    return versions in ([], [OLDER])
