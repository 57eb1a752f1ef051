"""The caller of a request: who it is, and whether the operator stopped it.

Only the output of API Gateway's authorizer proves who calls, never a header of the client:

    AuthMode         the part of `requestContext.authorizer`    the principal
    none             none                                       None: anyone may call
    iam              `iam`, the signature of AWS                "aws:iam", the account and the user
    jwt, oauth       `jwt`, the claims of an access token       the issuer, the subject, the client

A principal names the owner of a token, not the token. So a conversation continues when the client refreshes its token.
In the oauth mode all MCP apps share one client of the provider, so a principal has no client there: a person may
continue a conversation in another app.
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


def admit(http: HttpRequest, settings: Settings, now: float) -> Identity:
    """Return who sent a request, unless the operator stopped that caller.

    Raises:
        McpError: as `identify`.
        CallerStopped: the operator stopped this caller.
        TemporarilyUnavailable, Misconfigured: KMS gives no key, so nobody knows whether this caller is stopped.
    """
    caller = identify(http, settings, now)
    refuse_stopped_caller(caller.principal, http.address, settings, now)
    return caller


def refuse_stopped_caller(principal: Principal | None, address: str, settings: Settings, now: float) -> None:
    """Refuse a caller whom the operator stopped, and name the caller in the log line; errors as `admit`.

    A caller without a principal is named by the IP address.
    """
    if not settings.caller_key_arn:
        return  # callers have no pseudonyms: none can be logged or stopped
    from mcp_functions.http.callers import pseudonyms
    from mcp_functions.seal.binding import caller_id

    callers = pseudonyms(settings.caller_key_arn)
    id_ = caller_id(principal, address)
    callers.log_caller(id_, now)  # first, because a refused caller has a log line, too
    callers.refuse_stopped_caller(id_, settings.stopped_callers, now)


def identify(http: HttpRequest, settings: Settings, now: float) -> Identity:
    """Read the caller from the output of API Gateway's authorizer.

    Raises:
        Misconfigured: the output has no caller of the configured AuthMode.
        Unauthorized: the token is not valid for this server.
    """
    match settings.auth_mode, http.request_context.get("authorizer"):
        case "none", _:
            return Identity()
        # `userId` and not `userArn`: a user or role that is created again has another userId.
        case "iam", {"iam": {"accountId": str(account), "userId": str(user), **signer}} if account and user:
            subject = f"{account}/{user}"
            # The users of a Cognito identity pool share one role and one session name, and differ in the identity.
            identity = value_at(signer, "cognitoIdentity", "identityId")
            if identity:
                subject += f"/{identity}"
            return Identity(Principal(iss="aws:iam", sub=subject, client=""))
        case "jwt" | "oauth", {"jwt": {"claims": dict(claims)}}:
            from mcp_functions.http import access_tokens

            return access_tokens.check_claims(claims, http.request_context, settings, now)
    raise Misconfigured(
        f"AuthMode is {settings.auth_mode}, but the event carries no such caller: the route has no authorizer"
    )
