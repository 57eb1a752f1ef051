"""Checks with bodies that are not JSON, that two parsers may read differently, or that are not one request.

A function of type `Bodies` makes such bodies from the text of a correct request.
"""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from mcp_functions.attack import messages
from mcp_functions.attack.client import Request
from mcp_functions.attack.findings import Basis, Check, Proof, Severity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mcp_functions.attack.client import Exchange
    from mcp_functions.attack.scan import Scan

    # makes bodies, each with a description, from the text of a correct one
    Bodies: TypeAlias = Callable[[str], Iterator[tuple[str, bytes]]]

BASIC = "basic, Messages"
DEEP = 20_000  # levels of lists and objects in each other


def _with_param(correct: str, member: str) -> str:
    """Return a body with one more member of `params`."""
    return correct.replace('"params": {', f'"params": {{{member}, ')


JSON = "All messages … MUST follow the JSON-RPC 2.0 specification. JSON-RPC messages MUST be UTF-8 encoded."


def _not_json(correct: str) -> Iterator[tuple[str, bytes]]:
    yield "NaN", _with_param(correct, '"x": NaN').encode()
    yield "Infinity", _with_param(correct, '"x": -Infinity').encode()
    yield "bytes that are not UTF-8", _with_param(correct, '"x": "\x7f"').encode().replace(b"\x7f", b"\xff\xfe")
    yield "a comma too many", _with_param(correct, '"x": 1,').encode()
    yield "a second document after the first", (correct + correct).encode()
    yield "a comment", ("/* */" + correct).encode()
    yield "UTF-16", correct.encode("utf-16")


IDS = "Requests MUST include a string or integer ID. Unlike base JSON-RPC, the ID MUST NOT be null."


def _bad_ids(correct: str) -> Iterator[tuple[str, bytes]]:
    id_ = f'"id": {json.loads(correct)["id"]}'
    for written in ("true", "1.5", "[]", "{}"):
        yield f"the id is {written}", correct.replace(id_, f'"id": {written}').encode()


ONE = "The body of the HTTP POST MUST be a single JSON-RPC request or notification."


def _not_one_request(correct: str) -> Iterator[tuple[str, bytes]]:
    yield "a batch", f"[{correct}, {correct}]".encode()
    yield "a batch of one", f"[{correct}]".encode()
    yield "another version of JSON-RPC", correct.replace('"2.0"', '"1.0"').encode()


TWICE = 'parsers disagree on a body with the same key twice: "names within an object SHOULD be unique" (RFC 8259, 4).'


def _two_methods(correct: str) -> Iterator[tuple[str, bytes]]:
    method = '"method": "tools/list"'
    yield "two methods, one after the other", correct.replace(method, f'"method": "server/discover", {method}').encode()


def _odd_bodies(correct: str) -> Iterator[tuple[str, bytes]]:
    """Yield bodies that a server may accept or reject, but that must not stop it."""
    yield "a byte order mark", b"\xef\xbb\xbf" + correct.encode()
    yield "half of a surrogate pair", _with_param(correct, r'"x": "\ud800"').encode()
    yield "a NUL in a text", _with_param(correct, r'"x": "\u0000"').encode()
    yield "1e400", _with_param(correct, '"x": 1e400').encode()
    yield "a number of 5000 digits", _with_param(correct, f'"x": {"9" * 5000}').encode()
    yield "2^64 for an id", correct.replace('"id": ', '"id": 18446744073709551616').encode()
    yield f"{DEEP} lists in each other", _with_param(correct, f'"x": {"[" * DEEP}{"]" * DEEP}').encode()
    yield f"{DEEP} lists that never end", b"[" * DEEP
    yield f"{DEEP} objects in each other", ('{"a":' * DEEP + "1" + "}" * DEEP).encode()
    yield "nothing", b""
    yield "null", b"null"
    yield "an object without anything", b"{}"
    yield "a response", b'{"jsonrpc": "2.0", "id": 1, "result": {}}'
    yield "params that are a list", b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": []}'
    yield "_meta that is a list", b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": []}}'
    yield "a method that is a number", b'{"jsonrpc": "2.0", "id": 1, "method": 1, "params": {}}'
    yield "an empty method", b'{"jsonrpc": "2.0", "id": 1, "method": "", "params": {}}'
    for name in ("__proto__", "constructor", "__class__", "toString"):
        yield f"a method named {name}", correct.replace("tools/list", name).encode()


def _polluting(correct: str, canary: str) -> Iterator[tuple[str, bytes]]:
    for member in (f'"__proto__": {{"{canary}": "x"}}', f'"constructor": {{"prototype": {{"{canary}": "x"}}}}'):
        yield "a prototype with another member", _with_param(correct, f'"x": {{{member}}}, {member}').encode()


def _sent(scan: Scan, bodies: Bodies) -> Iterator[tuple[str, Exchange]]:
    """Send each body with the headers of a correct one."""
    message = scan.list_message()
    for what, body in bodies(json.dumps(message)):
        yield what, scan.client.send(Request(body, messages.headers(message)))


def _accepted(scan: Scan, bodies: Bodies) -> Iterator[Proof]:
    for what, exchange in _sent(scan, bodies):
        response = exchange.response
        is_batch = response.body.startswith(b"[") and b'"result"' in response.body
        if is_batch or response.result is not None:
            yield Proof(exchange, f"{what}: {response}")


def _survives(scan: Scan) -> Iterator[Proof]:
    """Send odd bodies, whose responses only watching.py examines; afterwards the server must still answer."""
    for _what, exchange in _sent(scan, _odd_bodies):
        if exchange.response.failed == "ConnectionRefusedError":
            yield Proof(exchange, "nobody answers any more")
            return
    exchange = scan.client.send(scan.list_request())
    if exchange.response.status == 0:
        yield Proof(exchange, "nobody answers any more, after JSON that is hard to read")


PROTOTYPE = "one request must not change the answers to the next."


def _prototype(scan: Scan) -> Iterator[Proof]:
    for _ in _sent(scan, partial(_polluting, canary=scan.canary)):
        pass  # only the answer to the next request counts
    exchange = scan.client.send(scan.list_request())
    if scan.canary.encode() in exchange.response.body:
        yield Proof(exchange, "a member of __proto__ in one request stands in the answer to the next")


CHECKS = (
    Check("text-that-is-not-json", Severity.DEVIATION, Basis.MUST, f"{BASIC}; basic/transports", JSON,
          partial(_accepted, bodies=_not_json)),
    Check("keys-twice", Severity.INFORMATION, Basis.OPINION, BASIC, TWICE, partial(_accepted, bodies=_two_methods)),
    Check("ids-that-are-none", Severity.DEVIATION, Basis.MUST, BASIC, IDS, partial(_accepted, bodies=_bad_ids)),
    Check("not-one-request", Severity.DEVIATION, Basis.MUST, "basic/transports/streamable-http", ONE,
          partial(_accepted, bodies=_not_one_request)),
    Check("prototype-pollution", Severity.HOLE, Basis.OPINION, BASIC, PROTOTYPE, _prototype),
    Check("survives-odd-json", Severity.HOLE, Basis.OPINION, BASIC, "no body may crash the server.", _survives),
)  # fmt: skip
