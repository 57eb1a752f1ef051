"""Bodies that are not JSON, that two parsers may read differently, or that are not one request."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from mcp_functions.attack import messages
from mcp_functions.attack.client import Request
from mcp_functions.attack.findings import Basis, Check, Proof, Severity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mcp_functions.attack.client import Exchange
    from mcp_functions.attack.scan import Scan

BASIC = "basic, Messages"
JSON = "All messages … MUST follow the JSON-RPC 2.0 specification. JSON-RPC messages MUST be UTF-8 encoded."
IDS = "Requests MUST include a string or integer ID. Unlike base JSON-RPC, the ID MUST NOT be null."
ONE = "The body of the HTTP POST MUST be a single JSON-RPC request or notification."
TWICE = 'parsers disagree on a body with the same key twice: "names within an object SHOULD be unique" (RFC 8259, 4).'
PROTOTYPE = "one request must not change the answers to the next."
DEEP = 20_000


class Trick(NamedTuple):
    """A body, and its description."""

    what: str
    body: bytes


def not_json(correct: str) -> Iterator[Trick]:
    """Yield a correct list request in ways that are not JSON, or not UTF-8."""
    yield Trick("NaN", correct.replace('"params": {', '"params": {"x": NaN, ').encode())
    yield Trick("Infinity", correct.replace('"params": {', '"params": {"x": -Infinity, ').encode())
    yield Trick(
        "bytes that are not UTF-8",
        correct.replace('"params": {', '"params": {"x": "\x7f", ').encode().replace(b"\x7f", b"\xff\xfe"),
    )
    yield Trick("a comma too many", correct.replace('"params": {', '"params": {"x": 1,, ').encode())
    yield Trick("a second document after the first", (correct + correct).encode())
    yield Trick("a comment", ("/* */" + correct).encode())
    yield Trick("UTF-16", correct.encode("utf-16"))


def bad_ids(correct: str) -> Iterator[Trick]:
    """Yield the request with invalid ids."""
    id_ = f'"id": {json.loads(correct)["id"]}'
    for written in ("true", "1.5", "[]", "{}"):
        yield Trick(f"the id is {written}", correct.replace(id_, f'"id": {written}').encode())


def not_one(correct: str) -> Iterator[Trick]:
    """Yield bodies that are not one request."""
    yield Trick("a batch", f"[{correct}, {correct}]".encode())
    yield Trick("a batch of one", f"[{correct}]".encode())
    yield Trick("another version of JSON-RPC", correct.replace('"2.0"', '"1.0"').encode())


def odd_bodies(correct: str) -> Iterator[Trick]:
    """Yield bodies that a server may accept or reject, but that must not stop it."""
    inside = '"params": {'
    yield Trick("a byte order mark", b"\xef\xbb\xbf" + correct.encode())
    yield Trick("half of a surrogate pair", correct.replace(inside, inside + r'"x": "\ud800", ').encode())
    yield Trick("a NUL in a text", correct.replace(inside, inside + r'"x": "\u0000", ').encode())
    yield Trick("1e400", correct.replace(inside, inside + '"x": 1e400, ').encode())
    yield Trick("a number of 5000 digits", correct.replace(inside, inside + f'"x": {"9" * 5000}, ').encode())
    yield Trick("2^64 for an id", correct.replace('"id": ', '"id": 18446744073709551616').encode())
    yield Trick(
        f"{DEEP} lists in each other", correct.replace(inside, f'{inside}"x": {"[" * DEEP}{"]" * DEEP}, ').encode()
    )
    yield Trick(f"{DEEP} lists that never end", b"[" * DEEP)
    yield Trick(f"{DEEP} objects in each other", ('{"a":' * DEEP + "1" + "}" * DEEP).encode())
    yield Trick("nothing", b"")
    yield Trick("null", b"null")
    yield Trick("an object without anything", b"{}")
    yield Trick("a response", b'{"jsonrpc": "2.0", "id": 1, "result": {}}')
    yield Trick("params that are a list", b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": []}')
    yield Trick("_meta that is a list", b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": []}}')
    yield Trick("a method that is a number", b'{"jsonrpc": "2.0", "id": 1, "method": 1, "params": {}}')
    yield Trick("an empty method", b'{"jsonrpc": "2.0", "id": 1, "method": "", "params": {}}')
    for name in ("__proto__", "constructor", "__class__", "toString"):
        yield Trick(f"a method named {name}", correct.replace("tools/list", name).encode())


def _correct_body(scan: Scan) -> str:
    return json.dumps(scan.list_message())


def _send(scan: Scan, correct: str, body: bytes) -> Exchange:
    """Send a body with the headers of a correct one."""
    return scan.client.send(Request(body, messages.headers(json.loads(correct))))


def _accepted(scan: Scan, tricks: Callable[[str], Iterator[Trick]]) -> Iterator[Proof]:
    correct = _correct_body(scan)
    for trick in tricks(correct):
        exchange = _send(scan, correct, trick.body)
        if exchange.response.result is not None:
            yield Proof(exchange, f"{trick.what}: {exchange.response}")


def _not_one(scan: Scan) -> Iterator[Proof]:
    correct = _correct_body(scan)
    for trick in not_one(correct):
        exchange = _send(scan, correct, trick.body)
        if b'"result"' in exchange.response.body:  # the response to a batch is a list
            yield Proof(exchange, f"{trick.what}: HTTP {exchange.response.status}, with a result")


def _twice(scan: Scan) -> Iterator[Proof]:
    correct = _correct_body(scan)
    doubled = correct.replace('"method": "tools/list"', '"method": "server/discover", "method": "tools/list"')
    exchange = _send(scan, correct, doubled.encode())
    if exchange.response.result is not None:
        yield Proof(exchange, f"the body names two methods, one after the other: {exchange.response}")


def _survives(scan: Scan) -> Iterator[Proof]:
    """Send odd bodies. Their responses are only watched; afterwards the server must still answer."""
    correct = _correct_body(scan)
    for trick in odd_bodies(correct):
        exchange = _send(scan, correct, trick.body)
        if exchange.response.failed == "ConnectionRefusedError":
            yield Proof(exchange, "nobody answers any more")
            return
    exchange = scan.client.send(scan.list_request())
    if exchange.response.status == 0:
        yield Proof(exchange, "nobody answers any more, after JSON that is hard to read")


def _prototype(scan: Scan) -> Iterator[Proof]:
    correct = _correct_body(scan)
    for template in ('{"__proto__": {"%s": "x"}}', '{"constructor": {"prototype": {"%s": "x"}}}'):
        member = template % scan.canary
        polluted = correct.replace('"params": {', f'"params": {{"x": {member}, {member[1:-1]}, ')
        _send(scan, correct, polluted.encode())
    exchange = scan.client.send(scan.list_request())
    if scan.canary.encode() in exchange.response.body:
        yield Proof(exchange, "a member of __proto__ in one request stands in the answer to the next")


_not_json = partial(_accepted, tricks=not_json)
_bad_ids = partial(_accepted, tricks=bad_ids)

CHECKS = (
    Check("text-that-is-not-json", Severity.DEVIATION, Basis.MUST, f"{BASIC}; basic/transports", JSON, _not_json),
    Check("keys-twice", Severity.INFORMATION, Basis.OPINION, BASIC, TWICE, _twice),
    Check("ids-that-are-none", Severity.DEVIATION, Basis.MUST, BASIC, IDS, _bad_ids),
    Check("not-one-request", Severity.DEVIATION, Basis.MUST, "basic/transports/streamable-http", ONE, _not_one),
    Check("prototype-pollution", Severity.HOLE, Basis.OPINION, BASIC, PROTOTYPE, _prototype),
    Check("survives-odd-json", Severity.HOLE, Basis.OPINION, BASIC, "no body may crash the server.", _survives),
)  # fmt: skip
