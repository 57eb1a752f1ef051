"""The methods that 2026-07-28 removed: `initialize`, `ping` and `logging/setLevel`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp_functions import observability
from mcp_functions.http import outcomes
from mcp_functions.legacy import revisions, sessions
from mcp_functions.legacy.exchange import SESSION_HEADER
from mcp_functions.legacy.responses import Reply, result_message
from mcp_functions.legacy.runner import Call
from mcp_functions.protocol.constants import LOG_LEVELS, META_SERVER_INFO
from mcp_functions.protocol.errors import InvalidParams, McpError, MethodNotFound

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_functions.legacy.exchange import Exchange
    from mcp_functions.legacy.runner import Runner
    from mcp_functions.legacy.sessions import Session
    from mcp_functions.legacy.token_seals import TokenSeal

CAPABILITIES = ("tools", "prompts", "resources", "completions", "logging")  # that earlier revisions know


class Handshake:
    """Starts sessions and changes their log level."""

    def __init__(
        self, runner: Runner, seal: TokenSeal | None, *, logging: bool, session_seconds: int, now: Callable[[], float]
    ) -> None:
        """Use a runner of `server/discover`, and the seal of session ids; without a key there are no sessions."""
        self._runner, self._seal, self._logging = runner, seal, logging
        self._session_seconds, self._now = session_seconds, now

    def reply(self, exchange: Exchange, call: Call) -> Reply:
        """Reply to a request that 2026-07-28 does not have.

        Raises:
            MethodNotFound: no revision has the method, or the server does not declare its capability.
            InvalidParams: the log level is unknown.
        """
        if call.method == "initialize":
            return self._initialize(exchange, call)
        # 2025-11-25, server/utilities/logging: "Servers that emit log message notifications MUST declare the `logging`
        # capability". `resources/subscribe` is never declared.
        if call.method == "logging/setLevel" and self._logging:
            return self._set_level(exchange, call)
        if call.method == "ping":
            return Reply((result_message(call.id, {}),))
        raise MethodNotFound

    def _initialize(self, exchange: Exchange, call: Call) -> Reply:
        revision = observability.current().revision = revisions.negotiate(call.params.get("protocolVersion"))
        ends = int(self._now()) + self._session_seconds
        session = sessions.new_session(call.params, revision, exchange.principal, ends=ends)
        discover = Call(call.id, "server/discover", {"_meta": {}})
        discovered = self._runner.run(exchange, discover, session.capabilities).result or {}
        capabilities = discovered["capabilities"]
        result: dict[str, Any] = {
            "protocolVersion": revision,
            "capabilities": {name: capabilities[name] for name in CAPABILITIES if name in capabilities},
            "serverInfo": discovered["_meta"][META_SERVER_INFO],
        }
        if "instructions" in discovered:
            result["instructions"] = discovered["instructions"]
        return Reply((result_message(call.id, result),), headers=self._session_header(session))

    def _set_level(self, exchange: Exchange, call: Call) -> Reply:
        """Return a new session id that holds the level. Some clients ignore it and keep the old level."""
        level = call.params.get("level")
        if level not in LOG_LEVELS:
            raise InvalidParams(message=f"params.level must be one of {', '.join(LOG_LEVELS)}")
        session = exchange.session
        headers = self._session_header(session._replace(level=level)) if session else {}
        return Reply((result_message(call.id, {}),), headers=headers)

    def _session_header(self, session: Session) -> dict[str, str]:
        """Return the header with the session id.

        The header is optional (2025-11-25, basic/transports, "Session Management": "MAY assign a session ID"), so it is
        left out if no key is available.
        """
        if self._seal is None:
            return {}
        try:
            return {SESSION_HEADER: sessions.seal_session(session, self._seal)}
        except McpError as error:
            notes = observability.current()
            outcomes.note_error(notes, error)
            notes.outcome = "complete"
            return {}
