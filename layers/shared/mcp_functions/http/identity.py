"""The caller's identity, which only the authorizer's output in `requestContext` proves, never a header of the client.

A principal is the issuer, the subject and the client of a token, not the token itself. So a conversation continues when
the client refreshes its token. In the oauth mode every MCP app uses the same provider client, which does not tell them
apart. There a principal is the issuer and the subject, and a person may continue in another app.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from mcp_functions.protocol.errors import Misconfigured
from mcp_functions.protocol.messages import Identity, Principal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.http.events import HttpRequest
    from mcp_functions.settings import Settings

log = logging.getLogger("mcp_functions")

NO_AUTHENTICATION = "AuthMode is none: anyone may call, and anyone who holds a requestState may use it"


def announce(settings: Settings) -> None:
    """Warn in the log, once for each container, if callers need no authentication."""
    if settings.auth_mode == "none":
        log.warning(NO_AUTHENTICATION)


def identify(request: HttpRequest, settings: Settings, now: float) -> Identity:
    """Read the caller from the output of API Gateway's authorizer, which `auth_mode` names.

    Raises:
        Misconfigured: the route has no authorizer.
        Unauthorized: the token is not valid for this server.
        CallerStopped: the operator stopped this caller.
    """
    caller = _identify(request, settings, now)
    if settings.log_callers:
        from mcp_functions.http.callers import pseudonyms  # noqa: PLC0415 - few deployments name callers
        from mcp_functions.seal.binding import caller_id  # noqa: PLC0415

        caller_name = caller_id(caller.principal, request.address)
        pseudonyms(settings.log_callers).admit(caller_name, settings.stopped_callers, now)
    return caller


def _identify(request: HttpRequest, settings: Settings, now: float) -> Identity:
    if settings.auth_mode == "none":
        return Identity()
    authorizer = request.context.get("authorizer")
    kind = "jwt" if settings.takes_tokens else settings.auth_mode
    output = authorizer.get(kind) if isinstance(authorizer, dict) else None
    if isinstance(output, dict) and settings.auth_mode == "iam":
        principal = _iam_principal(output)
        if principal:
            return Identity(principal)
    if isinstance(output, dict) and settings.takes_tokens and isinstance(output.get("claims"), dict):
        from mcp_functions.http import access_tokens  # noqa: PLC0415 - only a deployment with tokens needs this

        return access_tokens.check(output["claims"], request.context, settings, now)
    message = f"AuthMode is {settings.auth_mode}, but the event carries no such caller: the route has no authorizer"
    raise Misconfigured(message)


def _iam_principal(iam: Mapping[str, Any]) -> Principal | None:
    # userId and not userArn: a role or user that is created again under the same name has another userId.
    account = iam.get("accountId")
    user = iam.get("userId")
    if not (account and isinstance(account, str) and user and isinstance(user, str)):
        return None
    # All users of a Cognito identity pool share one role and one session name. Only the identity tells them apart.
    pool = iam.get("cognitoIdentity")
    identity = pool.get("identityId") if isinstance(pool, dict) else None
    subject = f"{account}/{user}/{identity}" if identity else f"{account}/{user}"
    return Principal("aws:iam", subject, "")
