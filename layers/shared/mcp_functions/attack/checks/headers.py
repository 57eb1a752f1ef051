"""Headers that say something else than the body: whoever routes by the one and acts by the other is led astray."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from mcp_functions.attack import messages
from mcp_functions.attack.findings import Basis, Check, Proof, Severity
from mcp_functions.attack.messages import with_header

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcp_functions.attack.hunt import Hunt
    from mcp_functions.attack.sending import Exchange, Sent

HTTP = "basic/transports/streamable-http"
MATCH = (
    "Servers that process the request body MUST reject requests where the values specified in the headers do not match "
    "the corresponding values in the request body."
)
CODE = (
    "When rejecting a request due to header validation failure, servers MUST return HTTP status 400 Bad Request and "
    "MUST include a JSON-RPC error response using … -32020."
)
DECODE = "servers MUST decode encoded values … before comparing them to body values."
MISMATCH, BAD_REQUEST = -32020, 400
OLDER = "2025-11-25"
VERSION, METHOD, NAME = "MCP-Protocol-Version", "Mcp-Method", "Mcp-Name"


def _call(hunt: Hunt) -> Sent:
    """Write a request that is all right: of the target, or of a list."""
    if hunt.targets:
        return hunt.write(hunt.targets[0])
    return messages.write(messages.message("tools/list", {}, next(hunt.ids)))


def wrong(right: Sent) -> Iterator[tuple[str, Sent]]:
    """Write the request with each header wrong in each way; `right` is one that the server takes."""
    said = dict(right.headers)
    yield f"{VERSION} names no revision", with_header(right, VERSION, "2099-01-01")
    yield f"{VERSION} names {OLDER}", with_header(right, VERSION, OLDER)
    yield f"{VERSION} is sent twice, differently", with_header(right, VERSION, messages.VERSION, OLDER)
    yield f"{VERSION} is missing", with_header(right, VERSION)
    yield f"{METHOD} names another method", with_header(right, METHOD, "server/discover")
    yield f"{METHOD} is written in capitals", with_header(right, METHOD, said[METHOD].upper())
    yield f"{METHOD} is sent twice, differently", with_header(right, METHOD, said[METHOD], "server/discover")
    yield f"{METHOD} is sent twice, the wrong one first", with_header(right, METHOD, "server/discover", said[METHOD])
    yield f"{METHOD} is missing", with_header(right, METHOD)
    if (name := said.get(NAME)) is not None:
        yield f"{NAME} names another", with_header(right, NAME, "another")
        yield f"{NAME} is written in capitals", with_header(right, NAME, name.upper())
        yield f"{NAME} is sent twice, differently", with_header(right, NAME, name, "another")
        yield f"{NAME} is missing", with_header(right, NAME)
        yield f"{NAME} is another in base64", with_header(right, NAME, _encoded("another"))
        yield f"{NAME} is broken base64", with_header(right, NAME, f"=?base64?{'!' * 8}?=")
        yield (
            f"{NAME} is in base64 with its marker in capitals",
            with_header(right, NAME, _encoded(name).replace("base64", "BASE64")),
        )


def _rejected(hunt: Hunt) -> list[tuple[str, Exchange]]:
    right = _call(hunt)
    return [(what, hunt.line.send(sent)) for what, sent in wrong(right) if _differs(sent, right)]


def _mismatch(hunt: Hunt) -> Iterator[Proof]:
    for what, sent in _rejected(hunt):
        answer = sent.answer
        if answer.result is not None and not (_is_older(sent.sent) and "resultType" not in answer.result):
            yield Proof(sent, f"{what}: {answer}")


def _code(hunt: Hunt) -> Iterator[Proof]:
    for what, sent in _rejected(hunt):
        answer = sent.answer
        right = (answer.status, answer.code) == (BAD_REQUEST, MISMATCH) or answer.undecided
        if answer.result is None and not right and not _is_older(sent.sent):
            yield Proof(sent, f"{what}: {answer}")


def _decoded(hunt: Hunt) -> Iterator[Proof]:
    right = _call(hunt)
    name = dict(right.headers).get(NAME)
    if name is None:
        return
    sent = hunt.line.send(with_header(right, NAME, _encoded(name)))
    if sent.answer.code == MISMATCH:
        yield Proof(sent, f"{NAME} says the right thing in base64: {sent.answer}")


def _is_older(sent: Sent) -> bool:
    """Tell whether a server for older clients too may take this for one of theirs: their rules are others."""
    versions = [value for name, value in sent.headers if name == VERSION]
    return versions in ([], [OLDER])


def _encoded(name: str) -> str:
    return f"=?base64?{base64.b64encode(name.encode()).decode()}?="


def _differs(sent: Sent, right: Sent) -> bool:
    return sorted(sent.headers) != sorted(right.headers)


CHECKS = (
    Check("headers-against-body", Severity.HOLE, Basis.MUST, f"{HTTP}, Server Validation", MATCH, _mismatch),
    Check("header-error", Severity.DEVIATION, Basis.MUST, f"{HTTP}, Server Validation", CODE, _code),
    Check("header-in-base64", Severity.DEVIATION, Basis.MUST, f"{HTTP}, Value Encoding", DECODE, _decoded),
)
