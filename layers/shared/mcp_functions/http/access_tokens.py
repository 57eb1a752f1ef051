"""Checks of an access token's claims, after API Gateway's authorizer has verified the token.

The authorizer checks signature, issuer, audience and time. But it accepts an ID token in place of an access token, and
an authorizer that was attached by hand may expect another audience. So this module checks every claim again. API
Gateway writes claims as text: a number as digits, a list as `[a b]`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp_functions.http import metadata
from mcp_functions.protocol import scopes
from mcp_functions.protocol.errors import InsufficientScope, Misconfigured, Unauthorized
from mcp_functions.protocol.messages import Identity, Principal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mcp_functions.protocol.messages import Request
    from mcp_functions.settings import Settings

CLIENT_CLAIMS = ("client_id", "azp", "cid", "appid")  # RFC 9068 and Cognito; OpenID Connect; Okta; Entra ID
ACCESS_TOKENS = {"access", "bearer", "at+jwt"}
ID_TOKEN_CLAIMS = ("nonce", "at_hash", "c_hash", "s_hash")  # OpenID Connect Core, 2, 3.3.2.11; FAPI 1.0
OTHER_TOKENS = {"id", "refresh", "offline"}  # values of Cognito's token_use and Keycloak's typ


def check(claims: Mapping[str, Any], context: Mapping[str, Any], settings: Settings, now: float) -> Identity:
    """Check the claims of a verified access token, and return whose it is and what it allows.

    "MCP servers MUST validate that access tokens were issued specifically for them as the intended audience"; "Invalid
    or expired tokens MUST receive a HTTP 401 response" (basic/authorization).

    Raises:
        Unauthorized: the token is not valid for this server.
    """
    reason = _invalid(claims, settings, now)
    if reason:
        raise Unauthorized(reason, metadata.challenge(settings, context, error="invalid_token"))
    # With `oauth`, all hosts of a person share the front's client at the provider: it identifies no host.
    client = "" if settings.auth_mode == "oauth" else _client(claims)
    return Identity(Principal(claims["iss"], claims["sub"], client), _scopes(claims, settings))


def permit(name: str, needed: Sequence[str], request: Request, settings: Settings) -> None:
    """Check that a token, which grants some scopes, has all that a handler needs.

    Raises:
        InsufficientScope: the token lacks a scope.
        Misconfigured: callers sign with IAM here, so they have no token.
    """
    if not needed or settings.auth_mode == "none":
        return
    if settings.auth_mode == "iam":
        message = f"{name} needs scopes, which only tokens have: deploy with AuthMode jwt, or remove its scopes"
        raise Misconfigured(message)
    if not set(needed) <= scopes.expand(request.scopes, settings.scope_hierarchy):
        # "servers SHOULD include all scopes required for the current operation in a single challenge"
        scope = " ".join(needed)
        context = request.event.get("requestContext", {})
        challenge = metadata.challenge(settings, context, error="insufficient_scope", scope=scope)
        raise InsufficientScope(scope, challenge)


def _invalid(claims: Mapping[str, Any], settings: Settings, now: float) -> str | None:
    """Return the reason for the log if a claim is invalid."""
    issuer = claims.get("iss")
    if isinstance(issuer, str) and issuer != settings.jwt_issuer:
        return "token_issuer"
    if not _audiences(claims) & set(settings.jwt_audiences):
        return "token_audience"
    if _uses(claims) & OTHER_TOKENS:
        return "token_use"
    if settings.auth_mode == "oauth":
        return _invalid_from_front(claims, settings) or _invalid_time_or_subject(claims, now)
    return _invalid_time_or_subject(claims, now)


def _invalid_from_front(claims: Mapping[str, Any], settings: Settings) -> str | None:
    """Return the reason if a token cannot be one that the front handed out.

    The front's sign-in has a nonce, so an ID token of the front's client has it too.
    """
    says_access = _uses(claims) & ACCESS_TOKENS
    if not says_access and any(name in claims for name in ID_TOKEN_CLAIMS):
        return "token_use"
    if settings.oauth_binding == "client_id" and _client(claims) != settings.oauth_client_id:
        return "token_client"
    return None


def _invalid_time_or_subject(claims: Mapping[str, Any], now: float) -> str | None:
    issuer, subject = claims.get("iss"), claims.get("sub")
    if not _expiry(claims) > now:  # not `<=`: a claim may say NaN
        return "token_expired"
    if not (isinstance(issuer, str) and isinstance(subject, str) and subject):
        return "token_without_subject"
    return None


def _uses(claims: Mapping[str, Any]) -> set[str]:
    return {str(claims.get(name)).lower() for name in ("token_use", "typ")}


def _client(claims: Mapping[str, Any]) -> str:
    return next((str(claims[name]) for name in CLIENT_CLAIMS if claims.get(name)), "")


def _audiences(claims: Mapping[str, Any]) -> set[str]:
    # "API Gateway validates client_id only if aud is not present": an access token of Cognito has no aud.
    return set(_list(claims["aud"] if "aud" in claims else claims.get("client_id")))


def _expiry(claims: Mapping[str, Any]) -> float:
    try:
        return float(str(claims.get("exp")))
    except ValueError:
        return 0.0


def _scopes(claims: Mapping[str, Any], settings: Settings) -> frozenset[str]:
    claim = claims["scope"] if "scope" in claims else claims.get("scp")  # Okta and Entra ID use scp
    prefix = settings.oauth_scope_prefix if settings.auth_mode == "oauth" else ""  # Cognito's is in the claim too
    return frozenset(scope.removeprefix(prefix) for entry in _list(claim) for scope in entry.split())


def _list(claim: object) -> list[str]:
    if isinstance(claim, list):
        return [entry for entry in claim if isinstance(entry, str)]
    if not isinstance(claim, str):
        return []
    if claim.startswith("[") and claim.endswith("]"):
        return claim[1:-1].split()
    return [claim]
