"""Checks of an access token's claims, after API Gateway's authorizer has verified the token.

    verified by API Gateway    signature, issuer, audience, time
    checked again here         issuer, audience, time: an operator may have attached an authorizer for another audience
    checked here alone         no ID token or refresh token, which API Gateway accepts, too; a subject; the scopes

API Gateway writes claims as text: a number as digits, a list as `[a b]`.

In the oauth mode, people sign in at this stack's own front (`mcp_functions.oauth`). The front is the one client of an
OpenID Connect provider, and hands the provider's access tokens to MCP apps.
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

# Claims with the id of the client; of several, the first one counts.
CLIENT_CLAIMS = (
    "client_id",  # RFC 9068, and Cognito
    "azp",  # OpenID Connect
    "cid",  # Okta
    "appid",  # Entra ID
)
# Values of the claims `token_use` (Cognito) and `typ` (Keycloak).
ACCESS_TOKENS = {"access", "bearer", "at+jwt"}
OTHER_TOKENS = {"id", "refresh", "offline"}  # ID tokens and two kinds of refresh tokens
# Claims that only ID tokens have (OpenID Connect Core, sections 2 and 3.3.2.11; FAPI 1.0).
ID_TOKEN_CLAIMS = ("nonce", "at_hash", "c_hash", "s_hash")


def check_claims(claims: Mapping[str, Any], context: Mapping[str, Any], settings: Settings, now: float) -> Identity:
    """Check the claims of a verified access token, and return whose it is and what it allows.

    "MCP servers MUST validate that access tokens were issued specifically for them as the intended audience"; "Invalid
    or expired tokens MUST receive a HTTP 401 response" (basic/authorization).

    Args:
        claims: the claims of the token.
        context: the event's `requestContext`.
        settings: the settings of the deployment.
        now: the current time in unix seconds.

    Raises:
        Unauthorized: the token is not valid for this server.
    """
    is_oauth = settings.auth_mode == "oauth"
    has_subject = isinstance(claims.get("sub"), str) and claims["sub"] != ""
    problems = {  # a reason for the log, and whether it applies
        "token_issuer": claims.get("iss") != settings.jwt_issuer,
        "token_audience": _audiences(claims).isdisjoint(settings.jwt_audiences),
        "token_use": _is_no_access_token(claims, is_oauth=is_oauth),
        "token_client": is_oauth and _is_of_other_client(claims, settings),
        "token_expired": _has_expired(claims, now),
        "token_without_subject": not has_subject,
    }
    for reason, applies in problems.items():
        if applies:  # the client learns only that the token is invalid
            challenge = metadata.challenge(settings, context, error="invalid_token")
            raise Unauthorized(reason, challenge)
    # In the oauth mode every MCP app uses the same provider client, so its id does not tell which app calls.
    client = "" if is_oauth else _client(claims)
    principal = Principal(iss=claims["iss"], sub=claims["sub"], client=client)
    return Identity(principal, _scopes(claims, settings))


def require_scopes(handler: str, needed: Sequence[str], request: Request, settings: Settings) -> None:
    """Check that the caller's token grants all scopes that a handler needs.

    Args:
        handler: the name of the handler.
        needed: the scopes that its author declared.
        request: the request to the handler.
        settings: the settings of the deployment.

    Raises:
        InsufficientScope: the token lacks a scope.
        Misconfigured: callers sign with IAM here, so they have no token.
    """
    if not needed or settings.auth_mode == "none":
        return
    if settings.auth_mode == "iam":
        message = f"{handler} needs scopes, which only tokens have: deploy with AuthMode jwt, or remove its scopes"
        raise Misconfigured(message)
    granted = scopes.expand(request.scopes, settings.scope_hierarchy)
    if not granted.issuperset(needed):
        # "servers SHOULD include all scopes required for the current operation in a single challenge"
        scope = " ".join(needed)
        context = request.event.get("requestContext", {})
        challenge = metadata.challenge(settings, context, error="insufficient_scope", scope=scope)
        raise InsufficientScope(scope, challenge)


def _is_no_access_token(claims: Mapping[str, Any], *, is_oauth: bool) -> bool:
    """Tell whether this is an ID token or a refresh token.

    Some providers do not mark an ID token with `token_use` or `typ`. In the oauth mode it has the claim `nonce`
    nevertheless, because the front sends a nonce with each sign-in.
    """
    uses = {str(claims[name]).lower() for name in ("token_use", "typ") if name in claims}
    if uses & OTHER_TOKENS:
        return True
    if uses & ACCESS_TOKENS:
        return False
    return is_oauth and any(name in claims for name in ID_TOKEN_CLAIMS)


def _is_of_other_client(claims: Mapping[str, Any], settings: Settings) -> bool:
    """Tell whether the provider issued the token to another client than the front.

    With another `oauth_binding` this needs no check: the audience of the token names the front or this server.
    """
    return settings.oauth_binding == "client_id" and _client(claims) != settings.oauth_client_id


def _client(claims: Mapping[str, Any]) -> str:
    """Return the id of the client to which a token was issued; "" if no claim has it."""
    for name in CLIENT_CLAIMS:
        if claims.get(name):
            return str(claims[name])
    return ""


def _audiences(claims: Mapping[str, Any]) -> set[str]:
    """Return the audiences of a token; an access token of Cognito has no `aud`, but a `client_id`."""
    # As API Gateway does: it "validates client_id only if aud is not present".
    claim = claims["aud"] if "aud" in claims else claims.get("client_id")
    return set(_read_list(claim))


def _has_expired(claims: Mapping[str, Any], now: float) -> bool:
    """Tell whether a token has expired. A token whose `exp` is no number counts as expired."""
    try:
        expires = float(str(claims.get("exp")))  # unix seconds
    except ValueError:
        return True
    is_valid = expires > now  # False for NaN
    return not is_valid


def _scopes(claims: Mapping[str, Any], settings: Settings) -> frozenset[str]:
    """Return the scopes of a token: one text, "read write", or a list of texts."""
    claim = claims["scope"] if "scope" in claims else claims.get("scp")  # Okta and Entra ID use scp
    names = " ".join(_read_list(claim)).split()
    # Cognito writes `<resource>/<scope>` into the claim, and the handlers declare `<scope>` alone.
    prefix = settings.oauth_scope_prefix if settings.auth_mode == "oauth" else ""
    return frozenset(name.removeprefix(prefix) for name in names)


def _read_list(claim: object) -> list[str]:
    """Read a claim that is one text or a list of texts, which API Gateway writes as "[a b]"."""
    if isinstance(claim, list):
        return [entry for entry in claim if isinstance(entry, str)]
    if not isinstance(claim, str):
        return []
    if claim.startswith("[") and claim.endswith("]"):
        return claim[1:-1].split()
    return [claim]
