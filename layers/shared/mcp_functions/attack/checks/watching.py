"""What is looked for in every answer, whatever was asked: crashes, leaks, codes and statuses that do not agree."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from mcp_functions.attack.findings import Basis, Check, Severity
from mcp_functions.attack.messages import VERSION

if TYPE_CHECKING:
    from mcp_functions.attack.sending import Exchange

INTERNAL, SERVER_ERROR = -32603, 500
STATUS = {-32020: 400, -32021: 400, -32022: 400, -32601: 404}
GONE = {-32002, -32042}
DEFINED = {-32020, -32021, -32022}
TRACES = (
    re.compile(rb"Traceback \(most recent call last\)"),
    re.compile(rb'File \\?"[^"\\]{1,200}\\?", line \d+'),
    re.compile(rb"\bat [\w.$<> ]{1,80} ?\((?:file:|node:|/|[A-Z]:)[^)]{1,200}:\d+:\d+\)"),
    re.compile(rb"\bnode_modules/[\w@./-]{1,100}"),
    re.compile(rb"(?<![\w./])/(?:home|usr|var|opt|srv|root|Users|private)/[\w@.-]{1,60}/[\w@./-]{1,200}"),
    re.compile(rb"\b[A-Za-z]:\\\\[\w.\\ -]{2,100}"),
)
LEAK = "an error describes the mistake in the request, and reveals nothing about the machine."
CRASH = "an error response blames the client for an invalid request; a 5xx or -32603 means that the server failed."
REFLECTED = "an error repeats no answers and no sealed data: errors end up in logs and in a model's context."
SAME_ID = "Error responses MUST include the same ID as the request they correspond to; so MUST results."
STATUSES = "the response status MUST be 400 (-32020, -32021, -32022) or 404 (-32601)."
CODES = (
    "Implementations of this protocol version MUST NOT emit -32002, -32042, nor undefined codes of -32020 to -32099."
)
UNCACHED = "results of requests that carry inputResponses or requestState MUST NOT be cached: no ttlMs, or 0."
NO_STORE = "a response with a state or a user's result carries Cache-Control: no-store for all intermediaries."
TYPED = "The result MUST include a resultType field to indicate the type of the result."
SESSIONS = "An Mcp-Session-Id header on a request: ignore it, and do not mint or echo session IDs."


def _crash(exchange: Exchange, _canary: str) -> str | None:
    answer = exchange.answer
    if answer.undecided or (answer.status < SERVER_ERROR and answer.code != INTERNAL):
        return None
    return f"{answer}"


def _trace(exchange: Exchange, _canary: str) -> str | None:
    answer = exchange.answer
    if answer.result is not None and not answer.result.get("isError"):
        return None
    for pattern in TRACES:
        for found in pattern.finditer(answer.body):
            if found[0] not in exchange.sent.body:
                return f"{answer.status}: {found[0].decode(errors='replace')[:120]}"
    return None


def _reflected(exchange: Exchange, canary: str) -> str | None:
    sent, answer = _sent(exchange).get("params"), exchange.answer
    if answer.error is None or not isinstance(sent, dict):
        return None
    planted = json.dumps([sent.get("requestState"), sent.get("inputResponses")])
    return str(answer) if canary in planted and canary.encode() in answer.body else None


def _other_id(exchange: Exchange, _canary: str) -> str | None:
    sent, got = _sent(exchange).get("id"), exchange.answer.message.get("id")
    if type(sent) not in (int, str) or got is None or (type(got), got) == (type(sent), sent):
        return None
    return f"the id was {sent!r}, and the answer's is {got!r}"


def _status(exchange: Exchange, _canary: str) -> str | None:
    answer = exchange.answer
    wanted = STATUS.get(answer.code or 0)
    return str(answer) if wanted and answer.status != wanted else None


def _code(exchange: Exchange, _canary: str) -> str | None:
    code = exchange.answer.code
    if code is None:
        return None
    undefined = -32099 <= code <= -32020 and code not in DEFINED  # noqa: PLR2004 - the range of the specification
    return str(exchange.answer) if code in GONE or undefined else None


def _cached(exchange: Exchange, _canary: str) -> str | None:
    params, result = _sent(exchange).get("params"), exchange.answer.result
    if result is None or not isinstance(params, dict):
        return None
    retry = "requestState" in params or "inputResponses" in params
    if retry and (result.get("ttlMs") or result.get("cacheScope") == "public"):
        return f"ttlMs {result.get('ttlMs')}, cacheScope {result.get('cacheScope')}"
    if exchange.answer.asked is not None and ("ttlMs" in result or "cacheScope" in result):
        return "an input_required result with ttlMs or cacheScope"
    return None


def _stored(exchange: Exchange, _canary: str) -> str | None:
    control = exchange.answer.headers.get("cache-control", "")
    if exchange.answer.state is None or "no-store" in control or "private" in control:
        return None
    return f"a requestState, with Cache-Control: {control or '(none)'}"


def _untyped(exchange: Exchange, _canary: str) -> str | None:
    result = exchange.answer.result
    return (
        "a result without resultType"
        if result is not None and "resultType" not in result and _is_modern(exchange)
        else None
    )


def _session(exchange: Exchange, _canary: str) -> str | None:
    minted = exchange.answer.headers.get("mcp-session-id")
    return "it has an Mcp-Session-Id" if minted and _is_modern(exchange) else None


def _is_modern(exchange: Exchange) -> bool:
    """Tell whether a server cannot have taken this for a request of an older revision."""
    return [value for name, value in exchange.sent.headers if name == "MCP-Protocol-Version"] == [VERSION]


def _sent(exchange: Exchange) -> dict[str, Any]:
    try:
        said = json.loads(exchange.sent.body)
    except (ValueError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}


HOLE, DEVIATION, INFORMATION = Severity.HOLE, Severity.DEVIATION, Severity.INFORMATION
MUST, SHOULD, OPINION = Basis.MUST, Basis.SHOULD, Basis.OPINION
CACHING = "server/utilities/caching"
CHECKS = (
    Check("traces-and-paths", HOLE, OPINION, "basic, Errors", LEAK, watch=_trace),
    Check("reflected-secrets", DEVIATION, OPINION, "basic, Errors", REFLECTED, watch=_reflected),
    Check("server-errors", DEVIATION, OPINION, "basic, Errors", CRASH, watch=_crash),
    Check("ids", DEVIATION, MUST, "basic, Messages", SAME_ID, watch=_other_id),
    Check("statuses", DEVIATION, MUST, "basic/transports/streamable-http", STATUSES, watch=_status),
    Check("codes", DEVIATION, MUST, "basic, Error Codes", CODES, watch=_code),
    Check("cache-hints", DEVIATION, MUST, CACHING, UNCACHED, watch=_cached),
    Check("cache-control", INFORMATION, OPINION, CACHING, NO_STORE, watch=_stored),
    Check("result-type", DEVIATION, MUST, "basic, Messages", TYPED, watch=_untyped),
    Check(
        "session-ids",
        DEVIATION,
        SHOULD,
        "basic/transports/streamable-http, Backward Compatibility",
        SESSIONS,
        watch=_session,
    ),
)
