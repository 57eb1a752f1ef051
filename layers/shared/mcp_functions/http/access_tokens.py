"""The claims of an access token, looked at again behind the authorizer that verified it, and what they allow.

API Gateway has checked signature, issuer, audience and time before a Lambda runs. It takes an ID token for an access
token, and an authorizer attached by hand may know another audience; so all that can be read is checked here once more.
Claims arrive as text: numbers as digits, lists as `[a b]`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from mcp_functions.http import metadata
from mcp_functions.protocol import scopes
from mcp_functions.protocol.errors import InsufficientScope, Misconfigured, Unauthorized
from mcp_functions.protocol.messages import Principal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mcp_functions.settings import Settings

CLIENT = ("client_id", "azp", "cid", "appid")  # RFC 9068 and Cognito; OpenID Connect; Okta; Entra ID
NOT_FOR_ACCESS = {"id", "refresh", "offline"}  # Cognito's token_use and Keycloak's typ


class Token(NamedTuple):
    """What an access token says: whose it is, and what it allows."""

    principal: Principal
    scopes: frozenset[str]


def read(claims: Mapping[str, Any], settings: Settings, now: float) -> Token:
    """Check the claims of a verified token.

    "MCP servers MUST validate that access tokens were issued specifically for them as the intended audience"; "Invalid
    or expired tokens MUST receive a HTTP 401 response" (basic/authorization).

    Args:
        claims: as the authorizer wrote them.
        settings: of the deployment.
        now: unix seconds.

    Raises:
        Unauthorized: the token is none for this server, or has expired.

    """
    match claims:
        case {"iss": str(iss), **_more} if iss != settings.jwt_issuer:
            reason = "token_issuer"
        case _ if not _audiences(claims) & set(settings.jwt_audiences):
            reason = "token_audience"
        case _ if {str(claims.get(name)).lower() for name in ("token_use", "typ")} & NOT_FOR_ACCESS:
            reason = "token_use"
        case _ if not _expires(claims.get("exp")) > now:
            reason = "token_expired"
        case {"iss": str(iss), "sub": str(sub), **_more} if sub:
            client = next((str(claims[name]) for name in CLIENT if claims.get(name)), "")
            return Token(Principal(iss, sub, client), _granted(claims))
        case _:
            reason = "token_without_subject"
    raise Unauthorized(reason, metadata.challenge(settings, error="invalid_token"))


def permit(name: str, needed: Sequence[str], granted: frozenset[str], settings: Settings) -> None:
    """Let a caller through to a handler that needs scopes.

    Args:
        name: of the handler.
        needed: all of them.
        granted: by the caller's token.
        settings: of the deployment.

    Raises:
        InsufficientScope: the token lacks one.
        Misconfigured: callers sign here, so no token could ever have one.

    """
    if not needed or settings.auth_mode == "none":
        return
    if settings.auth_mode == "iam":
        message = f"{name} needs scopes, which only tokens have: deploy with AuthMode jwt, or take its scopes away"
        raise Misconfigured(message)
    if not set(needed) <= scopes.expand(granted, settings.scope_hierarchy):
        # "servers SHOULD include all scopes required for the current operation in a single challenge"
        scope = " ".join(needed)
        raise InsufficientScope(scope, metadata.challenge(settings, error="insufficient_scope", scope=scope))


def _audiences(claims: Mapping[str, Any]) -> set[str]:
    # "API Gateway validates client_id only if aud is not present": Cognito's access tokens have no aud
    return set(_listed(claims["aud"] if "aud" in claims else claims.get("client_id")))


def _granted(claims: Mapping[str, Any]) -> frozenset[str]:
    said = claims["scope"] if "scope" in claims else claims.get("scp")  # Okta and Entra ID say scp
    return frozenset(scope for entry in _listed(said) for scope in entry.split())


def _listed(claim: object) -> list[str]:
    match claim:
        case str() if claim.startswith("[") and claim.endswith("]"):
            return claim[1:-1].split()
        case str():
            return [claim]
        case list():
            return [entry for entry in claim if isinstance(entry, str)]
    return []


def _expires(claim: object) -> float:
    try:
        return float(str(claim))
    except ValueError:
        pass
    from datetime import UTC, datetime  # noqa: PLC0415 - an HTTP API writes digits

    try:  # how a REST API writes it
        return datetime.strptime(str(claim), "%a %b %d %H:%M:%S UTC %Y").replace(tzinfo=UTC).timestamp()
    except ValueError:
        return 0.0  # no time at all: it has expired
