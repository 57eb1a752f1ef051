"""Checks with bodies that are not JSON, that two parsers may read differently, or that are not one request.

Functions such as `_not_json` make these bodies from the text of a correct request. The docstring of a check is the
sentence that it tests.
"""

import json
from collections.abc import Callable, Iterator
from typing import TypeAlias

from mcp_functions_harness.client import messages
from mcp_functions_harness.client.http import Request
from tests.attack.findings import Basis, Proof, Severity, check
from tests.attack.scan import Exchange, Scan

Bodies: TypeAlias = Iterator[tuple[str, bytes]]  # bodies, each with a description

BASIC = "basic, Messages"
DEEP = 20_000  # levels of lists and objects in each other


@check(Severity.DEVIATION, Basis.MUST, f"{BASIC}; basic/transports")
def text_that_is_not_json(scan: Scan) -> Iterator[Proof]:
    """Send bodies that are not JSON in UTF-8.

    All messages … MUST follow the JSON-RPC 2.0 specification. JSON-RPC messages MUST be UTF-8 encoded.
    """
    return _accepted(scan, _not_json)


@check(Severity.INFORMATION, Basis.OPINION, BASIC)
def keys_twice(scan: Scan) -> Iterator[Proof]:
    """Send objects that have the same key twice.

    parsers disagree on a body with the same key twice: "names within an object SHOULD be unique" (RFC 8259, 4).
    """
    return _accepted(scan, _two_methods)


@check(Severity.DEVIATION, Basis.MUST, BASIC)
def ids_that_are_none(scan: Scan) -> Iterator[Proof]:
    """Send ids that the specification forbids.

    Requests MUST include a string or integer ID. Unlike base JSON-RPC, the ID MUST NOT be null.
    """
    return _accepted(scan, _bad_ids)


@check(Severity.DEVIATION, Basis.MUST, "basic/transports/streamable-http")
def not_one_request(scan: Scan) -> Iterator[Proof]:
    """Send bodies that are not one request.

    The body of the HTTP POST MUST be a single JSON-RPC request or notification.
    """
    return _accepted(scan, _not_one_request)


@check(Severity.HOLE, Basis.OPINION, BASIC)
def prototype_pollution(scan: Scan) -> Iterator[Proof]:
    """Send keys with a meaning in JavaScript, then an honest request.

    one request must not change the answers to the next.
    """
    for _ in _sent(scan, lambda correct: _polluting(correct, scan.canary)):
        pass  # only the answer to the next request counts
    exchange = scan.send(scan.list_request())
    if scan.canary.encode() in exchange.response.body:
        yield Proof(exchange, "a member of __proto__ in one request stands in the answer to the next")


@check(Severity.HOLE, Basis.OPINION, BASIC)
def survives_odd_json(scan: Scan) -> Iterator[Proof]:
    """Send deep, long and odd JSON, then an honest request.

    no body may crash the server.
    """
    for _what, exchange in _sent(scan, _odd_bodies):  # only watching.py examines the responses
        if exchange.response.failed == "ConnectionRefusedError":
            yield Proof(exchange, "nobody answers any more")
            return
    exchange = scan.send(scan.list_request())
    if exchange.response.status == 0:
        yield Proof(exchange, "nobody answers any more, after JSON that is hard to read")


def _accepted(scan: Scan, make_bodies: Callable[[str], Bodies]) -> Iterator[Proof]:
    """Prove that one of these bodies is answered with a result."""
    for description, exchange in _sent(scan, make_bodies):
        response = exchange.response
        # An array holds a response to each of several requests.
        has_results = response.body.startswith(b"[") and b'"result"' in response.body
        if has_results or response.result is not None:
            yield Proof(exchange, f"{description}: {response}")


def _sent(scan: Scan, make_bodies: Callable[[str], Bodies]) -> Iterator[tuple[str, Exchange]]:
    """Send each body with the headers of a correct one."""
    message = scan.list_message()
    for description, body in make_bodies(json.dumps(message)):
        yield description, scan.send(Request(body, messages.headers(message)))


def _not_json(correct: str) -> Bodies:
    yield "NaN", _with_param(correct, '"x": NaN').encode()
    yield "Infinity", _with_param(correct, '"x": -Infinity').encode()
    yield "bytes that are not UTF-8", _with_param(correct, '"x": "\x7f"').encode().replace(b"\x7f", b"\xff\xfe")
    yield "a comma too many", _with_param(correct, '"x": 1,').encode()
    yield "a second document after the first", (correct + correct).encode()
    yield "a comment", ("/* */" + correct).encode()
    yield "UTF-16", correct.encode("utf-16")


def _bad_ids(correct: str) -> Bodies:
    id_ = f'"id": {json.loads(correct)["id"]}'
    for written in ("true", "1.5", "[]", "{}"):
        yield f"the id is {written}", correct.replace(id_, f'"id": {written}').encode()


def _not_one_request(correct: str) -> Bodies:
    yield "an array of two requests", f"[{correct}, {correct}]".encode()
    yield "an array of one request", f"[{correct}]".encode()
    yield "another version of JSON-RPC", correct.replace('"2.0"', '"1.0"').encode()


def _two_methods(correct: str) -> Bodies:
    method = '"method": "tools/list"'
    yield "two methods, one after the other", correct.replace(method, f'"method": "server/discover", {method}').encode()


def _odd_bodies(correct: str) -> Bodies:
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


def _polluting(correct: str, canary: str) -> Bodies:
    for member in (f'"__proto__": {{"{canary}": "x"}}', f'"constructor": {{"prototype": {{"{canary}": "x"}}}}'):
        yield "a prototype with another member", _with_param(correct, f'"x": {{{member}}}, {member}').encode()


def _with_param(correct: str, member: str) -> str:
    """Return a body with one more member of `params`."""
    return correct.replace('"params": {', f'"params": {{{member}, ')
