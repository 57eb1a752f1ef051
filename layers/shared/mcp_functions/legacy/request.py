"""One HTTP request of a client of 2025, as all functions of this package receive it.

`read_request` identifies the caller, opens the session and finds the revision and the deadlines. The request also
holds the parts of the deployment that answer: the modern server, the keys, the table of calls and the clock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mcp_functions import observability
from mcp_functions.http import identity
from mcp_functions.legacy import revisions
from mcp_functions.legacy.call_ids import Owner
from mcp_functions.legacy.errors import SessionNotFound
from mcp_functions.seal.binding import caller_id, principal_digest

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_functions.http.events import HttpRequest
    from mcp_functions.legacy.call_store import CallStore
    from mcp_functions.legacy.sessions import Session, SessionTokens
    from mcp_functions.protocol.catalog_types import Catalog
    from mcp_functions.protocol.messages import AnyResult, Identity, Request
    from mcp_functions.settings import Settings


class Deployment(NamedTuple):
    """The parts of a deployment that answer clients of 2025."""

    settings: Settings
    # runs a request of 2026-07-28, here or in another function
    answer_modern: Callable[[Request], AnyResult]
    catalog: Catalog  # the tools, prompts and resources
    now: Callable[[], float]  # the clock, in unix seconds
    session_tokens: SessionTokens | None = None  # None without a key: clients have no session
    call_store: CallStore | None = None  # None without a key or a table: clients are asked nothing


class LegacyRequest(NamedTuple):
    """One HTTP request of a client of 2025."""

    deployment: Deployment
    http: HttpRequest
    caller: Identity  # the caller, whom the gateway's authorizer has checked
    owner: Owner  # the session and the caller, to which ids belong
    session: Session | None  # None if the client sent no session
    revision: str  # of the session; without one, of the header MCP-Protocol-Version

    @property
    def catalog(self) -> Catalog:
        """The tools, prompts and resources, as the caller sees them."""
        catalog = self.deployment.catalog
        if "hidden" not in catalog:
            return catalog
        # few deployments hide anything
        from mcp_functions.visibility import show_to

        return show_to(self.caller.scopes, catalog, self.deployment.settings)

    @property
    def seconds_left(self) -> float:
        """How long the gateway still waits for the response."""
        return self.http.gateway_deadline - self.deployment.now()

    @property
    def answer_deadline(self) -> int:
        """When a question that is asked now expires, in unix seconds."""
        return int(self.deployment.now()) + self.deployment.settings.question_seconds


def read_request(deployment: Deployment, http: HttpRequest, session_token: str | None) -> LegacyRequest:
    """Read the caller and the session of a request. The session token is None if the client continues no session.

    Raises:
        Unauthorized: the access token is invalid.
        CallerStopped: the operator stopped this caller.
        SessionNotFound: the token is invalid.
        TemporarilyUnavailable, Misconfigured: no key is available for the session, or the route has no authorizer.
    """
    now = deployment.now()
    # 2025-11-25, basic/security_best_practices: "MCP Servers MUST NOT use sessions for authentication". So the caller
    # is known before the session is read.
    caller = identity.admit(http, deployment.settings, now)
    principal = principal_digest(caller.principal)
    counted_as = caller_id(caller.principal, http.address)
    observability.current().caller_id = counted_as
    session: Session | None = None
    if session_token is not None:
        if deployment.session_tokens is None:
            raise SessionNotFound(reason="session_without_keys")
        session = deployment.session_tokens.read(session_token, principal, caller_id=counted_as, now=now)
    # 2025-11-25, basic/transports, "Protocol Version Header": the server may identify the version "by relying on the
    # protocol version negotiated during initialization". A header that names another served revision is no error: it
    # "SHOULD be the one negotiated", and the servers of the official SDKs accept it too.
    header = http.headers.get(revisions.VERSION_HEADER)
    return LegacyRequest(
        deployment=deployment,
        http=http,
        caller=caller,
        owner=Owner(session.id if session else None, principal, counted_as),
        session=session,
        revision=session.revision if session else revisions.REVISION_OF_HEADER[header],
    )
