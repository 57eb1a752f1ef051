"""JSON that two readers may understand differently, or that is none; and envelopes that are no request."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from mcp_functions.attack import messages
from mcp_functions.attack.findings import Basis, Check, Proof, Severity
from mcp_functions.attack.sending import Sent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcp_functions.attack.hunt import Hunt
    from mcp_functions.attack.sending import Exchange

BASIC = "basic, Messages"
JSON = "All messages … MUST follow the JSON-RPC 2.0 specification. JSON-RPC messages MUST be UTF-8 encoded."
IDS = "Requests MUST include a string or integer ID. Unlike base JSON-RPC, the ID MUST NOT be null."
ONE = "The body of the HTTP POST MUST be a single JSON-RPC request or notification."
TWICE = 'parsers disagree on a body with the same key twice: "names within an object SHOULD be unique" (RFC 8259, 4).'
PROTOTYPE = "one request must not change the answers to the next."
DEEP = 20_000


class Trick(NamedTuple):
    """A body, and what is wrong with it; `headers` are those of the request that it pretends to be."""

    what: str
    body: bytes


def _good(hunt: Hunt) -> str:
    return json.dumps(messages.message("tools/list", {}, next(hunt.ids)))


def not_json(good: str) -> Iterator[Trick]:
    """Write a good list request in ways that are not JSON, or not UTF-8."""
    yield Trick("NaN", good.replace('"params": {', '"params": {"x": NaN, ').encode())
    yield Trick("Infinity", good.replace('"params": {', '"params": {"x": -Infinity, ').encode())
    yield Trick(
        "bytes that are not UTF-8",
        good.replace('"params": {', '"params": {"x": "\x7f", ').encode().replace(b"\x7f", b"\xff\xfe"),
    )
    yield Trick("a comma too many", good.replace('"params": {', '"params": {"x": 1,, ').encode())
    yield Trick("a second document after the first", (good + good).encode())
    yield Trick("a comment", ("/* */" + good).encode())
    yield Trick("UTF-16", good.encode("utf-16"))


def bad_ids(good: str) -> Iterator[Trick]:
    """Write it with ids that are none."""
    id_ = f'"id": {json.loads(good)["id"]}'
    for written in ("true", "1.5", "[]", "{}"):
        yield Trick(f"the id is {written}", good.replace(id_, f'"id": {written}').encode())


def not_one(good: str) -> Iterator[Trick]:
    """Write what is not one request."""
    yield Trick("a batch", f"[{good}, {good}]".encode())
    yield Trick("a batch of one", f"[{good}]".encode())
    yield Trick("another version of JSON-RPC", good.replace('"2.0"', '"1.0"').encode())


def harmless_or_not(good: str) -> Iterator[Trick]:
    """Write what a server may take or refuse, but must survive."""
    inside = '"params": {'
    yield Trick("a byte order mark", b"\xef\xbb\xbf" + good.encode())
    yield Trick("half of a surrogate pair", good.replace(inside, inside + r'"x": "\ud800", ').encode())
    yield Trick("a NUL in a text", good.replace(inside, inside + r'"x": "\u0000", ').encode())
    yield Trick("1e400", good.replace(inside, inside + '"x": 1e400, ').encode())
    yield Trick("a number of 5000 digits", good.replace(inside, inside + f'"x": {"9" * 5000}, ').encode())
    yield Trick("2^64 for an id", good.replace('"id": ', '"id": 18446744073709551616').encode())
    yield Trick(
        f"{DEEP} lists in each other", good.replace(inside, f'{inside}"x": {"[" * DEEP}{"]" * DEEP}, ').encode()
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
        yield Trick(f"a method named {name}", good.replace("tools/list", name).encode())


def _send(hunt: Hunt, good: str, trick: Trick) -> Exchange:
    return hunt.line.send(Sent(trick.body, messages.headers(json.loads(good))))


def _taken(hunt: Hunt, tricks: Iterator[Trick], good: str) -> Iterator[Proof]:
    for trick in tricks:
        sent = _send(hunt, good, trick)
        if sent.answer.result is not None:
            yield Proof(sent, f"{trick.what}: {sent.answer}")


def _not_json(hunt: Hunt) -> Iterator[Proof]:
    good = _good(hunt)
    yield from _taken(hunt, not_json(good), good)


def _bad_ids(hunt: Hunt) -> Iterator[Proof]:
    good = _good(hunt)
    yield from _taken(hunt, bad_ids(good), good)


def _not_one(hunt: Hunt) -> Iterator[Proof]:
    good = _good(hunt)
    for trick in not_one(good):
        sent = _send(hunt, good, trick)
        if b'"result"' in sent.answer.body:  # the answer to a batch is a list, and no message
            yield Proof(sent, f"{trick.what}: HTTP {sent.answer.status}, with a result")


def _twice(hunt: Hunt) -> Iterator[Proof]:
    good = _good(hunt)
    doubled = good.replace('"method": "tools/list"', '"method": "server/discover", "method": "tools/list"')
    sent = _send(hunt, good, Trick("", doubled.encode()))
    if sent.answer.result is not None:
        yield Proof(sent, f"the body names two methods, one after the other: {sent.answer}")


def _survives(hunt: Hunt) -> Iterator[Proof]:
    """Send what may be refused or not: every answer is watched, and the server must still be there."""
    good = _good(hunt)
    for trick in harmless_or_not(good):
        sent = _send(hunt, good, trick)
        if sent.answer.failed == "ConnectionRefusedError":
            yield Proof(sent, "nobody answers any more")
            return
    alive = hunt.line.send(messages.write(json.loads(_good(hunt))))
    if alive.answer.status == 0:
        yield Proof(alive, "nobody answers any more, after JSON that is hard to read")


def _prototype(hunt: Hunt) -> Iterator[Proof]:
    good = _good(hunt)
    for path in ('{"__proto__": {"%s": "x"}}', '{"constructor": {"prototype": {"%s": "x"}}}'):
        inside = path % hunt.canary
        _send(
            hunt, good, Trick("", good.replace('"params": {', f'"params": {{"x": {inside}, {inside[1:-1]}, ').encode())
        )
    after = hunt.line.send(messages.write(json.loads(_good(hunt))))
    if hunt.canary.encode() in after.answer.body:
        yield Proof(after, "a member of __proto__ in one request stands in the answer to the next")


CHECKS = (
    Check("text-that-is-not-json", Severity.DEVIATION, Basis.MUST, f"{BASIC}; basic/transports", JSON, _not_json),
    Check("keys-twice", Severity.INFORMATION, Basis.OPINION, BASIC, TWICE, _twice),
    Check("ids-that-are-none", Severity.DEVIATION, Basis.MUST, BASIC, IDS, _bad_ids),
    Check("not-one-request", Severity.DEVIATION, Basis.MUST, "basic/transports/streamable-http", ONE, _not_one),
    Check("prototype-pollution", Severity.HOLE, Basis.OPINION, BASIC, PROTOTYPE, _prototype),
    Check("survives-odd-json", Severity.HOLE, Basis.OPINION, BASIC, "no body may crash the server.", _survives),
)  # fmt: skip
