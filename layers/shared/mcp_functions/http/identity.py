"""The caller's identity, which only the authorizer's output in `requestContext` proves, never a header of the client.

A principal is the issuer, the subject and the client of a token, not the token itself. So a conversation continues when
the client refreshes its token. In the oauth mode every MCP app uses the same provider client, which does not tell them
apart. There a principal is the issuer and the subject, and a person may continue in another app.

    AuthMode         the part of `requestContext.authorizer`    the principal
    none                                                        none: anyone may call
    iam              `iam`, the signature of AWS                "aws:iam", the account and the user
    jwt, oauth       `jwt`, the claims of an access token       the issuer, the subject, the client

`access_tokens` checks the claims.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from mcp_functions.protocol.errors import Misconfigured
from mcp_functions.protocol.messages import Identity, Principal, value_at

if TYPE_CHECKING:
    from mcp_functions.http.events import HttpRequest
    from mcp_functions.settings import Settings

log = logging.getLogger("mcp_functions")

NO_AUTHENTICATION = "AuthMode is none: anyone may call, and anyone who holds a requestState may use it"


def warn_if_open(settings: Settings) -> None:
    """Warn in the log, once for each container, if callers need no authentication."""
    if settings.auth_mode == "none":
        log.warning(NO_AUTHENTICATION)


def identify(request: HttpRequest, settings: Settings, now: float) -> Identity:
    """Read the caller from the output of API Gateway's authorizer, which `auth_mode` names.

    Args:
        request: the HTTP request.
        settings: the settings of the deployment.
        now: the current time in unix seconds.

    Raises:
        Misconfigured: the route has no authorizer.
        Unauthorized: the token is not valid for this server.
        CallerStopped: the operator stopped this caller.
    """
    caller = _identify(request, settings, now)
    if settings.caller_name_key:
        from mcp_functions.http.callers import pseudonyms  # noqa: PLC0415 - few deployments name callers
        from mcp_functions.seal.binding import caller_id  # noqa: PLC0415

        names = pseudonyms(settings.caller_name_key)
        names.admit(caller_id(caller.principal, request.address), settings.stopped_callers, now)
    return caller


def _identify(request: HttpRequest, settings: Settings, now: float) -> Identity:
    if settings.auth_mode == "none":
        return Identity()
    if settings.auth_mode == "iam":
        principal = _iam_principal(value_at(request.context, "authorizer", "iam"))
        if principal:
            return Identity(principal)
    claims = value_at(request.context, "authorizer", "jwt", "claims")
    if settings.takes_tokens and isinstance(claims, dict):
        from mcp_functions.http import access_tokens  # noqa: PLC0415 - only a deployment with tokens needs this

        return access_tokens.check_claims(claims, request.context, settings, now)
    message = f"AuthMode is {settings.auth_mode}, but the event carries no such caller: the route has no authorizer"
    raise Misconfigured(message)


def _iam_principal(iam: object) -> Principal | None:
    """Return the principal that signed a request with IAM; None if the authorizer's output does not tell it."""
    account = value_at(iam, "accountId")
    user = value_at(iam, "userId")  # and not userArn: a user or role that is created again has another userId
    if not (account and isinstance(account, str) and user and isinstance(user, str)):
        return None
    subject = f"{account}/{user}"
    # All users of a Cognito identity pool share one role and one session name. Only the identity tells them apart.
    identity = value_at(iam, "cognitoIdentity", "identityId")
    if identity:
        subject += f"/{identity}"
    return Principal(iss="aws:iam", sub=subject, client="")
