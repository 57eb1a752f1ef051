"""What HTTP alone decides: who may call from a browser, which methods there are, and the codes of plain refusals."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mcp_functions.attack import messages
from mcp_functions.attack.findings import Basis, Check, Proof, Severity
from mcp_functions.attack.messages import PREFIX, with_header
from mcp_functions.attack.sending import Sent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcp_functions.attack.hunt import Hunt
    from mcp_functions.attack.sending import Answer

HTTP = "basic/transports/streamable-http"
ORIGIN = (
    "Servers MUST validate the Origin header on all incoming connections … If the Origin header is present and "
    "invalid, servers MUST respond with HTTP 403 Forbidden."
)
METHODS = "HTTP GET or DELETE to the MCP endpoint: respond with 405 Method Not Allowed."
SIMPLE = "a page may send text/plain without a CORS preflight: a server that accepts it relies on Origin alone."
WHOLE = "a message shorter than its Content-Length is incomplete (RFC 9112, 8)."
SILENT = "Notifications: The receiver MUST NOT send a response."
CREDENTIALS = "no page of an unknown origin may read answers that a browser's credentials fetched."
UNKNOWN = (
    "it MUST respond with 404 Not Found and a JSON-RPC error with code -32601; … 400 and -32022; … 400 and -32602."
)
STRANGER = "https://attacker.example"
STRANGERS = (STRANGER, "null", "http://localhost.attacker.example", "http://127.0.0.1.attacker.example")
HOST = "a local server that accepts any Host relies on the Origin check alone against DNS rebinding."
FORBIDDEN, NOT_ALLOWED, SUCCESS = 403, 405, range(200, 300)
UNSUPPORTED = -32022


def _list(hunt: Hunt) -> Sent:
    return messages.write(messages.message("tools/list", {}, next(hunt.ids)))


def _origin(hunt: Hunt) -> Iterator[Proof]:
    for stranger in STRANGERS:
        sent = hunt.line.send(with_header(_list(hunt), "Origin", stranger))
        if sent.answer.result is not None:
            yield Proof(sent, f"Origin: {stranger} was answered: {sent.answer}")


def _origin_status(hunt: Hunt) -> Iterator[Proof]:
    sent = hunt.line.send(with_header(_list(hunt), "Origin", STRANGER))
    if sent.answer.result is None and sent.answer.status != FORBIDDEN and not sent.answer.undecided:
        yield Proof(sent, f"Origin: {STRANGER} was refused with {sent.answer}")


def _cors(hunt: Hunt) -> Iterator[Proof]:
    asked = (("Origin", STRANGER), ("Access-Control-Request-Method", "POST"))
    preflight = hunt.line.send(Sent(b"", (*asked, ("Access-Control-Request-Headers", "authorization")), "OPTIONS"))
    simple = hunt.line.send(with_header(_list(hunt), "Origin", STRANGER))
    for sent in (preflight, simple):
        headers = sent.answer.headers
        allowed = headers.get("access-control-allow-origin")
        if allowed == STRANGER and headers.get("access-control-allow-credentials") == "true":
            yield Proof(sent, f"access-control-allow-origin: {allowed}, with credentials")


def _methods(hunt: Hunt) -> Iterator[Proof]:
    for method in ("GET", "DELETE", "PUT", "PATCH"):
        sent = hunt.line.send(
            Sent(b"", (("Accept", "application/json"), ("MCP-Protocol-Version", messages.VERSION)), method)
        )
        if method in {"GET", "DELETE"} and sent.answer.status != NOT_ALLOWED and not sent.answer.undecided:
            yield Proof(sent, f"{method}: {sent.answer}")


def _simple(hunt: Hunt) -> Iterator[Proof]:
    sent = hunt.line.send(with_header(_list(hunt), "Content-Type", "text/plain"))
    if sent.answer.result is not None:
        yield Proof(sent, f"Content-Type: text/plain was answered: {sent.answer}")


def _oddities(hunt: Hunt) -> Iterator[Proof]:
    """Send headers that a server may take or refuse; every answer is watched. Nothing may come of half a message."""
    for name, value in (
        ("Accept", "text/html"),
        ("Accept", ""),
        ("Content-Type", ""),
        ("Content-Type", "application/json; charset=utf-7"),
        ("Content-Encoding", "gzip"),
        ("Mcp-Session-Id", hunt.canary),
        ("Last-Event-ID", hunt.canary),
        ("X-Forwarded-For", "127.0.0.1, ::1, not an address"),
        ("Mcp-Param-Example", "=?base64?A?="),
    ):
        hunt.line.send(with_header(_list(hunt), name, value))
    whole = _list(hunt)
    sent = hunt.line.send(replace(whole, claimed=len(whole.body) + 10))
    if sent.answer.result is not None:
        yield Proof(sent, f"10 bytes were missing, and it was answered: {sent.answer}")


def _host(hunt: Hunt) -> Iterator[Proof]:
    sent = hunt.line.send(with_header(_list(hunt), "Host", "attacker.example"))
    if sent.answer.result is not None:
        yield Proof(sent, f"Host: attacker.example was answered: {sent.answer}")


def _notification(hunt: Hunt) -> Iterator[Proof]:
    said = messages.message("notifications/cancelled", {"requestId": 1})
    del said["id"]
    sent = hunt.line.send(messages.write(said))
    if sent.answer.result is not None or (sent.answer.status in SUCCESS and sent.answer.body):
        yield Proof(sent, f"a notification was answered: {sent.answer}")


def _codes(hunt: Hunt) -> Iterator[Proof]:
    old = messages.message("tools/list", {}, next(hunt.ids))
    old["params"]["_meta"][PREFIX + "protocolVersion"] = "1999-01-01"
    bare = {**messages.message("tools/list", {}, next(hunt.ids)), "params": {}}
    unknown = messages.message("tools/unheard-of", {}, next(hunt.ids))
    tries: tuple[tuple[str, dict[str, Any], str, tuple[int, int]], ...] = (
        ("a method that does not exist", unknown, messages.VERSION, (404, -32601)),
        ("a revision that does not exist", old, "1999-01-01", (400, -32022)),
        ("no _meta", bare, messages.VERSION, (400, -32602)),
    )
    for what, said, version, wanted in tries:
        sent = hunt.line.send(with_header(messages.write(said), "MCP-Protocol-Version", version))
        if not _is(sent.answer, wanted) and not sent.answer.undecided:
            yield Proof(sent, f"{what}: {sent.answer}, and not HTTP {wanted[0]} with {wanted[1]}")


def _is(answer: Answer, wanted: tuple[int, int]) -> bool:
    named = wanted[1] != UNSUPPORTED or isinstance((answer.error or {}).get("data"), dict)
    return (answer.status, answer.code) == wanted and named


CHECKS = (
    Check("origin-of-a-stranger", Severity.HOLE, Basis.MUST, f"{HTTP}, Security Warning", ORIGIN, _origin),
    Check("origin-status", Severity.DEVIATION, Basis.MUST, f"{HTTP}, Security Warning", ORIGIN, _origin_status),
    Check("cors-with-credentials", Severity.HOLE, Basis.OPINION, HTTP, CREDENTIALS, _cors),
    Check("text-plain", Severity.INFORMATION, Basis.OPINION, HTTP, SIMPLE, _simple),
    Check("foreign-host", Severity.INFORMATION, Basis.OPINION, HTTP, HOST, _host),
    Check("http-methods", Severity.INFORMATION, Basis.SHOULD, f"{HTTP}, Backward Compatibility", METHODS, _methods),
    Check("half-a-message", Severity.DEVIATION, Basis.OPINION, HTTP, WHOLE, _oddities),
    Check("notification-answered", Severity.DEVIATION, Basis.MUST, "basic, Notifications", SILENT, _notification),
    Check("codes-of-refusals", Severity.DEVIATION, Basis.MUST, HTTP, UNKNOWN, _codes),
)
