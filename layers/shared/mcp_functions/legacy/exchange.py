"""One HTTP request of a legacy client: its caller, its session and its deadlines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from mcp_functions import observability
from mcp_functions.http import events, identity
from mcp_functions.legacy import revisions
from mcp_functions.legacy.errors import SessionNotFound
from mcp_functions.legacy.sessions import open_session
from mcp_functions.seal.binding import caller_id, principal_digest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_functions.http.events import HttpRequest, LambdaContext
    from mcp_functions.legacy.sessions import Session
    from mcp_functions.legacy.token_seals import TokenSeals
    from mcp_functions.protocol.messages import Identity
    from mcp_functions.settings import Settings

SESSION_HEADER = "mcp-session-id"
VERSION_HEADER = "mcp-protocol-version"


class Exchange(NamedTuple):
    """One HTTP request of a legacy client."""

    http: HttpRequest
    event: Mapping[str, Any]
    caller: Identity  # from the gateway's authorizer
    principal: str | None  # digest of the caller; None on a server without sign-in
    revision: str  # that the client speaks
    session: Session | None
    deadline: float  # unix seconds until which the gateway waits
    ends: float  # unix seconds at which Lambda ends this function

    @property
    def caller_id(self) -> str:
        """The key of the failure budget that failed calls of KMS are charged to."""
        return caller_id(self.caller.principal, self.http.address)


class ExchangeReader:
    """Reads the caller and the session of an HTTP request."""

    def __init__(self, settings: Settings, seals: TokenSeals | None, now: Callable[[], float]) -> None:
        """Use the deployment's settings, its seals if it has a key, and a clock (unix seconds)."""
        self._settings, self._seals, self._now = settings, seals, now

    def read(
        self, http: HttpRequest, event: Mapping[str, Any], context: LambdaContext, *, initializing: bool
    ) -> Exchange:
        """Return the exchange of a request.

        Raises:
            Unauthorized: the access token is invalid.
            SessionNotFound: the session id is invalid.
        """
        now = self._now()
        # 2025-11-25, basic/security_best_practices: "MCP Servers MUST NOT use sessions for authentication". So the
        # caller is known before the session is read.
        caller = identity.identify(http, self._settings, now)
        principal = principal_digest(caller.principal)
        charged = observability.current().caller_id = caller_id(caller.principal, http.address)
        token = None if initializing else http.headers.get(SESSION_HEADER)
        session = None if token is None else self._session(token, principal, charged)
        ends = events.lambda_deadline(context, now)
        return Exchange(
            http=http,
            event=event,
            caller=caller,
            principal=principal,
            revision=_revision(http.headers.get(VERSION_HEADER), session),
            session=session,
            deadline=events.gateway_deadline(http, ends, now),
            ends=ends,
        )

    def _session(self, token: str, principal: str | None, charged: str) -> Session:
        if self._seals is None:
            reason = "session_without_keys"
            raise SessionNotFound(reason=reason)
        return open_session(token, self._seals.sessions, principal, caller_id=charged, now=self._now())


def _revision(header: str | None, session: Session | None) -> str:
    if session and not header:
        return session.revision
    return revisions.REVISION_OF_HEADER[header]
