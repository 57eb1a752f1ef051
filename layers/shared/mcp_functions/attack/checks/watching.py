"""Checks of every response of a run: crashes, leaks, and codes and statuses that do not agree.

A check takes an exchange (a request and its response) and the canary. It returns what is wrong, or None.

The canary is a random text that the run writes into some requests. A response that has it repeats the client's data.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from mcp_functions.attack.client import parse_message
from mcp_functions.attack.findings import Basis, Check, Severity
from mcp_functions.attack.messages import VERSION

if TYPE_CHECKING:
    from mcp_functions.attack.client import Exchange

INTERNAL = -32603
SERVER_ERROR = 500  # the first HTTP status of an error of the server
CRASH = "an error response blames the client for an invalid request; a 5xx or -32603 means that the server failed."


def _crash(exchange: Exchange, _canary: str) -> str | None:
    response = exchange.response
    has_crashed = response.status >= SERVER_ERROR or response.code == INTERNAL
    if has_crashed and not response.undecided:
        return str(response)
    return None


# Texts that reveal the machine: stack traces of Python and JavaScript; paths of Node.js, Unix and Windows.
TRACES = (
    re.compile(rb"Traceback \(most recent call last\)"),
    re.compile(rb'File \\?"[^"\\]{1,200}\\?", line \d+'),
    re.compile(rb"\bat [\w.$<> ]{1,80} ?\((?:file:|node:|/|[A-Z]:)[^)]{1,200}:\d+:\d+\)"),
    re.compile(rb"\bnode_modules/[\w@./-]{1,100}"),
    re.compile(rb"(?<![\w./])/(?:home|usr|var|opt|srv|root|Users|private)/[\w@.-]{1,60}/[\w@./-]{1,200}"),
    re.compile(rb"\b[A-Za-z]:\\\\[\w.\\ -]{2,100}"),
)
LEAK = "an error describes the mistake in the request, and reveals nothing about the machine."


def _trace(exchange: Exchange, _canary: str) -> str | None:
    """Find a trace or a path in an error, unless the request had it."""
    response = exchange.response
    if response.result is not None and not response.result.get("isError"):
        return None
    for pattern in TRACES:
        for match in pattern.finditer(response.body):
            if match[0] not in exchange.request.body:
                return f"{response.status}: {match[0].decode(errors='replace')[:120]}"
    return None


REFLECTED = "an error repeats no answers and no sealed data: errors end up in logs and in a model's context."


def _reflected(exchange: Exchange, canary: str) -> str | None:
    response = exchange.response
    params = parse_message(exchange.request.body).get("params")
    if response.error is None or not isinstance(params, dict):
        return None
    sent = json.dumps([params.get("requestState"), params.get("inputResponses")])
    if canary in sent and canary.encode() in response.body:
        return str(response)
    return None


SAME_ID = "Error responses MUST include the same ID as the request they correspond to; so MUST results."


def _other_id(exchange: Exchange, _canary: str) -> str | None:
    request_id = parse_message(exchange.request.body).get("id")
    response_id = exchange.response.message.get("id")
    if type(request_id) not in (int, str) or response_id is None:
        return None
    if type(response_id) is type(request_id) and response_id == request_id:  # types too, because 1 == True
        return None
    return f"the id was {request_id!r}, and the answer's is {response_id!r}"


STATUS = {-32020: 400, -32021: 400, -32022: 400, -32601: 404}  # code -> the HTTP status that must go with it
STATUSES = "the response status MUST be 400 (-32020, -32021, -32022) or 404 (-32601)."


def _status(exchange: Exchange, _canary: str) -> str | None:
    response = exchange.response
    needed_status = STATUS.get(response.code or 0, response.status)
    return str(response) if response.status != needed_status else None


OLD_CODES = {-32002, -32042}  # of older revisions
DEFINED = {-32020, -32021, -32022}  # the codes of this revision in its reserved range
RESERVED = range(-32099, -32019)  # codes that only the specification may define
CODES = (
    "Implementations of this protocol version MUST NOT emit -32002, -32042, nor undefined codes of -32020 to -32099."
)


def _code(exchange: Exchange, _canary: str) -> str | None:
    code = exchange.response.code
    is_undefined = code in RESERVED and code not in DEFINED
    return str(exchange.response) if code in OLD_CODES or is_undefined else None


UNCACHED = "results of requests that carry inputResponses or requestState MUST NOT be cached: no ttlMs, or 0."


def _cached(exchange: Exchange, _canary: str) -> str | None:
    params = parse_message(exchange.request.body).get("params")
    result = exchange.response.result
    if result is None or not isinstance(params, dict):
        return None
    is_retry = "requestState" in params or "inputResponses" in params
    if is_retry and (result.get("ttlMs") or result.get("cacheScope") == "public"):
        return f"ttlMs {result.get('ttlMs')}, cacheScope {result.get('cacheScope')}"
    if exchange.response.questions is not None and ("ttlMs" in result or "cacheScope" in result):
        return "an input_required result with ttlMs or cacheScope"
    return None


NO_STORE = "a response with a state or a user's result carries Cache-Control: no-store for all intermediaries."


def _stored(exchange: Exchange, _canary: str) -> str | None:
    control = exchange.response.headers.get("cache-control", "")
    if exchange.response.state is None or "no-store" in control or "private" in control:
        return None
    return f"a requestState, with Cache-Control: {control or '(none)'}"


TYPED = "The result MUST include a resultType field to indicate the type of the result."


def _untyped(exchange: Exchange, _canary: str) -> str | None:
    result = exchange.response.result
    if result is None or "resultType" in result or not _is_of_this_revision(exchange):
        return None
    return "a result without resultType"


SESSIONS = "An Mcp-Session-Id header on a request: ignore it, and do not mint or echo session IDs."


def _session(exchange: Exchange, _canary: str) -> str | None:
    session = exchange.response.headers.get("mcp-session-id")
    return "it has an Mcp-Session-Id" if session and _is_of_this_revision(exchange) else None


def _is_of_this_revision(exchange: Exchange) -> bool:
    """Return whether a server cannot read it as a request of an older revision."""
    versions = [value for name, value in exchange.request.headers if name == "MCP-Protocol-Version"]
    return versions == [VERSION]


HOLE, DEVIATION, INFORMATION = Severity.HOLE, Severity.DEVIATION, Severity.INFORMATION
MUST, SHOULD, OPINION = Basis.MUST, Basis.SHOULD, Basis.OPINION
HTTP = "basic/transports/streamable-http"
CACHING = "server/utilities/caching"
CHECKS = (
    Check("traces-and-paths", HOLE, OPINION, "basic, Errors", LEAK, watch=_trace),
    Check("reflected-secrets", DEVIATION, OPINION, "basic, Errors", REFLECTED, watch=_reflected),
    Check("server-errors", DEVIATION, OPINION, "basic, Errors", CRASH, watch=_crash),
    Check("ids", DEVIATION, MUST, "basic, Messages", SAME_ID, watch=_other_id),
    Check("statuses", DEVIATION, MUST, HTTP, STATUSES, watch=_status),
    Check("codes", DEVIATION, MUST, "basic, Error Codes", CODES, watch=_code),
    Check("cache-hints", DEVIATION, MUST, CACHING, UNCACHED, watch=_cached),
    Check("cache-control", INFORMATION, OPINION, CACHING, NO_STORE, watch=_stored),
    Check("result-type", DEVIATION, MUST, "basic, Messages", TYPED, watch=_untyped),
    Check("session-ids", DEVIATION, SHOULD, f"{HTTP}, Backward Compatibility", SESSIONS, watch=_session),
)
