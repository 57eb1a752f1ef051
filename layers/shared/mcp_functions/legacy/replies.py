"""Replies to one JSON-RPC request of a client of 2025.

The method decides where the reply comes from:

    tools/call, prompts/get, resources/read    the modern server; a call that asks its user goes on in `streams`
    lists, completion/complete                 the modern server
    initialize                                 the modern server's `server/discover`, and a new session
    logging/setLevel, ping                     this module, because 2026-07-28 has no such methods
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from mcp_functions import observability
from mcp_functions.legacy import explanations, revisions, runner, sessions, streams, translation
from mcp_functions.legacy.call_ids import Call
from mcp_functions.legacy.explanations import Obstacle, obstacle_to_asking
from mcp_functions.legacy.responses import error_message, message_response, result_message
from mcp_functions.protocol.constants import CALL_METHODS, LIST_METHODS, LOG_LEVELS, META_SERVER_INFO
from mcp_functions.protocol.errors import InvalidParams, McpError, MethodNotFound

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.http.events import HttpRequest
    from mcp_functions.legacy.request import LegacyRequest
    from mcp_functions.legacy.sessions import Session
    from mcp_functions.protocol.event_types import Response
    from mcp_functions.protocol.wire_types import ClientCapabilities, Params, RequestId

# These params have another meaning in 2026-07-28, or none.
DROPPED_PARAMS = frozenset({"_meta", "inputResponses", "requestState", "task"})
# The capabilities of a server that 2025 and 2026-07-28 have in common.
CAPABILITIES = ("tools", "prompts", "resources", "completions", "logging")


def reply_to(request: LegacyRequest, message: Mapping[str, Any]) -> Response:
    """Reply to a request; an error becomes a JSON-RPC error."""
    params = message.get("params") or {}
    kept = {name: value for name, value in params.items() if name not in DROPPED_PARAMS}
    meta = params.get("_meta")
    kept["_meta"] = dict(meta) if isinstance(meta, dict) else {}
    call = Call(message["id"], message["method"], cast("Params", kept))
    try:
        return _reply_by_method(request, call)
    except McpError as error:
        return error_reply(request.http, call.id, error)


def error_reply(http: HttpRequest, id_: RequestId, error: McpError) -> Response:
    """Note an error in the log, and reply with it as a JSON-RPC error."""
    observability.current().add_error(error)
    return message_response(http, error_message(id_, error.to_json()))


def _reply_by_method(request: LegacyRequest, call: Call) -> Response:
    """Reply to a request by its method; MethodNotFound if this server has no such method."""
    method = call.method
    if method in CALL_METHODS or method in LIST_METHODS or method == "completion/complete":
        return _relay(request, call)
    if method == "initialize":
        return _initialize(request, call)
    if method == "logging/setLevel":
        return _set_level(request, call)
    if method == "ping":
        return _empty_reply(request, call)
    raise MethodNotFound


def _relay(request: LegacyRequest, call: Call) -> Response:
    """Let the modern server answer a call or a list."""
    obstacle = obstacle_to_asking(request)
    outcome = runner.run_rounds(request, call, _usable_capabilities(request, obstacle))
    if outcome.refusal is not None:
        return dict(outcome.refusal)
    store = request.deployment.call_store
    if outcome.is_final:
        last = translation.legacy_response(request, call, outcome)
    elif obstacle or store is None:
        last = explanations.cannot_continue(call, outcome, obstacle or Obstacle.NO_TABLE)
    else:
        return streams.begin(request, store, call, outcome)
    return message_response(request.http, last, outcome.notifications)


def _usable_capabilities(request: LegacyRequest, obstacle: Obstacle | None) -> ClientCapabilities:
    """Return those capabilities of the client that a handler may use in this request."""
    session = request.session
    if session is None:
        return {}
    return session.capabilities_without_answer if obstacle else session.capabilities


def _initialize(request: LegacyRequest, call: Call) -> Response:
    """Reply with the negotiated revision, and with what modern clients learn from `server/discover`."""
    revision = revisions.negotiate(call.params.get("protocolVersion"))
    observability.current().revision = revision
    deployment = request.deployment
    ends = int(deployment.now()) + deployment.settings.session_seconds
    session = sessions.new_session(call.params, revision, request.owner.principal, ends=ends)
    discover = Call(call.id, "server/discover", {"_meta": {}})
    outcome = runner.run_request(request, discover, session.capabilities)
    if outcome.error:
        return message_response(request.http, error_message(call.id, outcome.error))
    discovered = outcome.result
    capabilities = discovered["capabilities"]
    result: dict[str, Any] = {
        "protocolVersion": revision,
        "capabilities": {name: capabilities[name] for name in CAPABILITIES if name in capabilities},
        "serverInfo": discovered["_meta"][META_SERVER_INFO],
    }
    if "instructions" in discovered:
        result["instructions"] = discovered["instructions"]
    headers = _session_header(request, session)
    return message_response(request.http, result_message(call.id, result), headers=headers)


def _set_level(request: LegacyRequest, call: Call) -> Response:
    """Reply with a new session token, which holds the level. A client that ignores it keeps its old level."""
    # 2025-11-25, server/utilities/logging: "Servers that emit log message notifications MUST declare the `logging`
    # capability".
    if not request.catalog["logging"]:
        raise MethodNotFound
    level = call.params.get("level")
    if level not in LOG_LEVELS:
        raise InvalidParams(message=f"params.level must be one of {', '.join(LOG_LEVELS)}")
    session = request.session
    headers = _session_header(request, session._replace(level=level)) if session else {}
    return _empty_reply(request, call, headers)


def _empty_reply(request: LegacyRequest, call: Call, headers: Mapping[str, str] = {}) -> Response:
    observability.current().conclude("complete")
    return message_response(request.http, result_message(call.id, {}), headers=headers)


def _session_header(request: LegacyRequest, session: Session) -> dict[str, str]:
    """Return the header with the session's token.

    Without a key there is no header: 2025-11-25, basic/transports, "Session Management": "MAY assign a session ID".
    """
    tokens = request.deployment.session_tokens
    if tokens is None:
        return {}
    try:
        return {sessions.HEADER: tokens.write(session)}
    except McpError as error:
        notes = observability.current()
        notes.add_error(error)
        # the request succeeds without a session; the log has the error as its reason
        notes.outcome = "complete"
        return {}
