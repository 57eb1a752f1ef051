"""Who calls: read only from where AuthMode and payload version say, never from a header of the client.

Bound as issuer, subject and client, never as the token, so that a refreshed token goes on with its conversation.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, NamedTuple

from mcp_functions.protocol.errors import Misconfigured
from mcp_functions.protocol.messages import Principal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.http.events import HttpRequest
    from mcp_functions.settings import Settings

log = logging.getLogger("mcp_functions")

NOBODY = "AuthMode is none: anybody may call, and states are bound to nobody: who holds a requestState may use it"


class Caller(NamedTuple):
    """Who calls, and what the caller's token allows; nobody has neither."""

    principal: Principal | None = None
    scopes: frozenset[str] = frozenset()


ANYBODY = Caller()


def announce(settings: Settings) -> None:
    """Say in the log, once for each container, what it means that everybody may call."""
    if settings.auth_mode == "none":
        log.warning(NOBODY)


def caller(request: HttpRequest, settings: Settings, now: float) -> Caller:
    """Read the caller that the gateway's authorizer vouches for.

    Args:
        request: as the gateway handed it on.
        settings: of the deployment: which authorizer every route carries, and what tokens must say.
        now: unix seconds.

    Raises:
        Misconfigured: the route let a request through without its authorizer.
        Unauthorized: the token is none for this server.

    """
    match settings.auth_mode:
        case "none":
            return ANYBODY
        case "jwt" if (claims := _claims(request)) is not None:
            from mcp_functions.http import access_tokens  # noqa: PLC0415 - only where callers bring one

            return Caller(*access_tokens.read(claims, settings, now))
        case "iam" if (signed := _signature(request)) is not None:
            return Caller(signed)
    message = f"AuthMode is {settings.auth_mode}, but the event carries no such caller: the route has no authorizer"
    raise Misconfigured(message)


def _claims(request: HttpRequest) -> Mapping[str, Any] | None:
    match (request.source, request.context.get("authorizer")):
        case ("2.0", {"jwt": {"claims": dict(claims)}}) | ("1.0", {"claims": dict(claims)}):
            return claims
    return None


def _signature(request: HttpRequest) -> Principal | None:
    match (request.source, request.context.get("authorizer"), request.context.get("identity")):
        # userId, not userArn: it cannot be taken over by a role or user that is made again under the same name
        case ("2.0", {"iam": {"accountId": str(account), "userId": str(user), **more}}, _) if account and user:
            pool = more.get("cognitoIdentity")
            return _signed(account, user, pool.get("identityId") if isinstance(pool, dict) else None)
        case ("1.0", _, {"accountId": str(account), "user": str(user), **more}) if account and user:
            return _signed(account, user, more.get("cognitoIdentityId"))
    return None


def _signed(account: str, user: str, person: object) -> Principal:
    # All the people of an identity pool sign as one session of one role; only the identity tells them apart.
    return Principal("aws:iam", f"{account}/{user}/{person}" if person else f"{account}/{user}", "")
