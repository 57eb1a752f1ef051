"""Checks of every response of a run: crashes, leaks, and codes and statuses that do not agree.

A check takes an exchange, that is a request and its response. It returns what is wrong, or None.
The docstring of a check is the sentence that it tests.
"""

import json
import re

from mcp_functions_harness.client.http import parse_message
from mcp_functions_harness.client.messages import VERSION
from tests.attack.findings import Basis, Severity, watch
from tests.attack.scan import Exchange

HTTP = "basic/transports/streamable-http"
CACHING = "server/utilities/caching"
SERVER_ERROR = 500  # the first HTTP status of an error of the server
# Codes of JSON-RPC.
INTERNAL = -32603
STATUS = {-32020: 400, -32021: 400, -32022: 400, -32601: 404}  # code -> the HTTP status that must go with it
OLD_CODES = {-32002, -32042}  # of older revisions
DEFINED = {-32020, -32021, -32022}  # the codes of this revision in its reserved range
RESERVED = range(-32099, -32019)  # codes that only the specification may define
# Texts that reveal the machine: stack traces of Python and JavaScript; paths of Node.js, Unix and Windows.
TRACES = (
    re.compile(rb"Traceback \(most recent call last\)"),
    re.compile(rb'File \\?"[^"\\]{1,200}\\?", line \d+'),
    re.compile(rb"\bat [\w.$<> ]{1,80} ?\((?:file:|node:|/|[A-Z]:)[^)]{1,200}:\d+:\d+\)"),
    re.compile(rb"\bnode_modules/[\w@./-]{1,100}"),
    re.compile(rb"(?<![\w./])/(?:home|usr|var|opt|srv|root|Users|private)/[\w@.-]{1,60}/[\w@./-]{1,200}"),
    re.compile(rb"\b[A-Za-z]:\\\\[\w.\\ -]{2,100}"),
)


@watch(Severity.HOLE, Basis.OPINION, "basic, Errors")
def traces_and_paths(exchange: Exchange) -> str | None:
    """Look for stack traces and file paths in errors.

    an error describes the mistake in the request, and reveals nothing about the machine.
    """
    response = exchange.response
    if response.result is not None and not response.result.get("isError"):
        return None
    for pattern in TRACES:
        for match in pattern.finditer(response.body):
            if match[0] not in exchange.request.body:
                return f"{response.status}: {match[0].decode(errors='replace')[:120]}"
    return None


@watch(Severity.DEVIATION, Basis.OPINION, "basic, Errors")
def reflected_secrets(exchange: Exchange) -> str | None:
    """Look for answers and sealed data in errors.

    an error repeats no answers and no sealed data: errors end up in logs and in a model's context.
    """
    response = exchange.response
    params = parse_message(exchange.request.body).get("params")
    if response.error is None or not isinstance(params, dict):
        return None
    sent = json.dumps([params.get("requestState"), params.get("inputResponses")])
    if exchange.canary in sent and exchange.canary.encode() in response.body:
        return str(response)
    return None


@watch(Severity.DEVIATION, Basis.OPINION, "basic, Errors")
def server_errors(exchange: Exchange) -> str | None:
    """Look for errors that blame the server.

    an error response blames the client for an invalid request; a 5xx or -32603 means that the server failed.
    """
    response = exchange.response
    has_crashed = response.status >= SERVER_ERROR or response.code == INTERNAL
    if has_crashed and not response.undecided:
        return str(response)
    return None


@watch(Severity.DEVIATION, Basis.MUST, "basic, Messages")
def ids(exchange: Exchange) -> str | None:
    """Compare the id of each response with its request.

    Error responses MUST include the same ID as the request they correspond to; so MUST results.
    """
    request_id = parse_message(exchange.request.body).get("id")
    response_id = exchange.response.message.get("id")
    if type(request_id) not in (int, str) or response_id is None:
        return None
    if type(response_id) is type(request_id) and response_id == request_id:  # types too, because 1 == True
        return None
    return f"the id was {request_id!r}, and the answer's is {response_id!r}"


@watch(Severity.DEVIATION, Basis.MUST, HTTP)
def statuses(exchange: Exchange) -> str | None:
    """Compare the status of each error with its code.

    the response status MUST be 400 (-32020, -32021, -32022) or 404 (-32601).
    """
    response = exchange.response
    needed_status = STATUS.get(response.code or 0, response.status)
    return str(response) if response.status != needed_status else None


@watch(Severity.DEVIATION, Basis.MUST, "basic, Error Codes")
def codes(exchange: Exchange) -> str | None:
    """Look for retired and undefined error codes.

    Implementations of this protocol version MUST NOT emit -32002, -32042, nor undefined codes of -32020 to -32099.
    """
    code = exchange.response.code
    is_undefined = code in RESERVED and code not in DEFINED
    return str(exchange.response) if code in OLD_CODES or is_undefined else None


@watch(Severity.DEVIATION, Basis.MUST, CACHING)
def cache_hints(exchange: Exchange) -> str | None:
    """Look for cache hints in results of conversations.

    results of requests that carry inputResponses or requestState MUST NOT be cached: no ttlMs, or 0.
    """
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


@watch(Severity.INFORMATION, Basis.OPINION, CACHING)
def cache_control(exchange: Exchange) -> str | None:
    """Look for responses that an intermediary may store.

    a response with a state or a user's result carries Cache-Control: no-store for all intermediaries.
    """
    control = exchange.response.headers.get("cache-control", "")
    if exchange.response.state is None or "no-store" in control or "private" in control:
        return None
    return f"a requestState, with Cache-Control: {control or '(none)'}"


@watch(Severity.DEVIATION, Basis.MUST, "basic, Messages")
def result_type(exchange: Exchange) -> str | None:
    """Look for results without a type.

    The result MUST include a resultType field to indicate the type of the result.
    """
    result = exchange.response.result
    if result is None or "resultType" in result or not _is_of_this_revision(exchange):
        return None
    return "a result without resultType"


@watch(Severity.DEVIATION, Basis.SHOULD, f"{HTTP}, Backward Compatibility")
def session_ids(exchange: Exchange) -> str | None:
    """Look for session ids in responses.

    An Mcp-Session-Id header on a request: ignore it, and do not mint or echo session IDs.
    """
    session = exchange.response.headers.get("mcp-session-id")
    return "it has an Mcp-Session-Id" if session and _is_of_this_revision(exchange) else None


def _is_of_this_revision(exchange: Exchange) -> bool:
    """Return whether a server cannot read it as a request of an older revision."""
    versions = [value for name, value in exchange.request.headers if name == "MCP-Protocol-Version"]
    return versions == [VERSION]
