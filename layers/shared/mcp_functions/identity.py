"""Who calls: read only from where AuthMode and payload version say, never from a header of the client.

Bound as issuer, subject and client, never as the token, so that a refreshed token goes on with its conversation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_functions.errors import Misconfigured
from mcp_functions.messages import Principal

if TYPE_CHECKING:
    from mcp_functions.events import HttpRequest
    from mcp_functions.settings import AuthMode


def principal(request: HttpRequest, auth_mode: AuthMode) -> Principal | None:
    """Read the caller that the gateway's authorizer vouches for.

    Args:
        request: as the gateway handed it on.
        auth_mode: which authorizer every route carries; with `none` a caller is nobody.

    Raises:
        Misconfigured: the route let a request through without its authorizer, or without a subject.

    """
    if auth_mode == "none":
        return None
    context = request.context
    match (auth_mode, request.source):
        case ("iam", "2.0"):
            found = _iam(context.get("authorizer"))
        case ("iam", "1.0"):
            found = _iam_identity(context.get("identity"))
        case ("jwt", "2.0"):
            found = _claims((context.get("authorizer") or {}).get("jwt"))
        case ("jwt", "1.0"):
            found = _claims(context.get("authorizer"))
        case _:
            found = None
    if found is None:
        message = f"AuthMode is {auth_mode}, but the event carries no such caller: the route has no authorizer"
        raise Misconfigured(message)
    return found


def _iam(authorizer: object) -> Principal | None:
    match authorizer:
        # userId, not userArn: it cannot be taken over by a role or user that is made again under the same name
        case {"iam": {"accountId": str(account), "userId": str(user), **more}} if account and user:
            pool = more.get("cognitoIdentity")
            return _signed(account, user, pool.get("identityId") if isinstance(pool, dict) else None)
    return None


def _iam_identity(identity: object) -> Principal | None:
    match identity:
        case {"accountId": str(account), "user": str(user), **more} if account and user:
            return _signed(account, user, more.get("cognitoIdentityId"))
    return None


def _signed(account: str, user: str, person: object) -> Principal:
    # All the people of an identity pool sign as one session of one role; only the identity tells them apart.
    return Principal("aws:iam", f"{account}/{user}/{person}" if person else f"{account}/{user}", "")


def _claims(authorizer: object) -> Principal | None:
    match authorizer:
        case {"claims": {"iss": str(iss), "sub": str(sub), **claims}} if iss and sub:
            return Principal(iss, sub, str(claims.get("client_id") or claims.get("azp") or ""))
    return None
