"""The endpoints `/token` and `/revoke`: a client gets the provider's access token, refreshes it, and revokes it.

    the client sends      this server sends to the provider     the client gets
    our code              the provider's code                   the provider's access token, and our refresh token
    our refresh token     the provider's refresh token          a new access token, and a new refresh token of ours

Our codes and refresh tokens hold the provider's, sealed: encrypted and authenticated, for one client alone. The
provider's code is valid once. So this server checks everything before it sends that code: a refused request of a
stranger does not cost the client its code.
"""

from __future__ import annotations

import hmac
import re
from contextlib import suppress
from typing import TYPE_CHECKING, cast

from mcp_functions.oauth import responses
from mcp_functions.oauth.client_authentication import authenticate
from mcp_functions.oauth.errors import OAuthError
from mcp_functions.oauth.provider import challenge
from mcp_functions.oauth.sealed_values import CODE, PREFIX, REFRESH
from mcp_functions.oauth.sign_in import check_resource
from mcp_functions.protocol.errors import StateTooLarge

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.oauth.client_metadata import Client
    from mcp_functions.oauth.json_types import CodeClaims, RefreshClaims, TokenResponse
    from mcp_functions.oauth.provider import Tokens
    from mcp_functions.oauth.request import OAuthRequest
    from mcp_functions.oauth.services import Services
    from mcp_functions.protocol.event_types import Response

VERIFIER = r"[A-Za-z0-9._~-]{43,128}"  # a PKCE verifier (RFC 7636, section 4.1)
UNUSABLE_GRANT = "the code or refresh token is not this client's, or has expired"


def issue(request: OAuthRequest, services: Services) -> Response:
    """Answer `POST /token`."""
    client = authenticate(request, "/token", services)
    check_resource(request.parameters, services.settings)
    grant = request.parameters.get("grant_type")
    if grant == "authorization_code":
        return _redeem(request, client, services)
    if grant == "refresh_token":
        return _refresh(request, client, services)
    raise OAuthError(
        code="unsupported_grant_type", description="only authorization_code and refresh_token are supported"
    )


def revoke(request: OAuthRequest, services: Services) -> Response:
    """Answer `POST /revoke` (RFC 7009)."""
    client = authenticate(request, "/revoke", services)
    token = request.parameters.get("token")
    if token is None:
        raise OAuthError(code="invalid_request", description="token is missing")
    if not token.startswith(PREFIX):
        raise OAuthError(
            code="unsupported_token_type",
            description="only refresh tokens can be revoked: an access token ends by itself",
        )
    claims = _open_refresh_token(token, request, client, services)
    if claims is None:  # RFC 7009, 2.2: "invalid tokens do not cause an error response"
        return responses.make_json(200, {})
    with services.refusal_budget.charged_if_refused(request.caller_id):
        services.provider.api.revoke(claims["token"])
    return responses.make_json(200, {})


def _redeem(request: OAuthRequest, client: Client, services: Services) -> Response:
    """Redeem our code. `authorization.finish` sealed it for the client and the resource."""
    form = request.parameters
    claims = _open_code(form, request.caller_id, client, services)
    # OAuth 2.1 has no such parameter (draft-ietf-oauth-v2-1, 10.2), so it is compared only if the client sends it.
    if claims is None or form.get("redirect_uri", claims["redirect"]) != claims["redirect"]:
        raise OAuthError(code="invalid_grant", description=UNUSABLE_GRANT)
    _check_verifier(form.get("code_verifier", ""), claims["challenge"])
    with services.refusal_budget.charged_if_refused(request.caller_id):
        tokens = services.provider.redeem(claims["code"], claims["seed"], claims["scope"])
    return _make_token_response(tokens, tokens.refresh_token, claims["scope"], client, services)


def _open_code(form: Mapping[str, str], caller_id: str, client: Client, services: Services) -> CodeClaims | None:
    """Return the claims of our code; None if it is not this client's, or has expired."""
    code, resource = form.get("code", ""), services.settings.resource
    claims = services.values.open(CODE, code, caller_id, client.id_digest, "", resource)
    if claims is None and "redirect_uri" in form:  # version 0.1.0 bound a code to this URI
        claims = services.values.open(CODE, code, caller_id, client.id_digest, form["redirect_uri"], resource)
        claims = claims and {**claims, "redirect": form["redirect_uri"]}
    return cast("CodeClaims | None", claims)


def _check_verifier(verifier: str, expected_challenge: str) -> None:
    """Check the PKCE verifier of a client. Its challenge came with the request to `/authorize`."""
    if not re.fullmatch(VERIFIER, verifier):
        raise OAuthError(code="invalid_grant", description="code_verifier is missing or malformed")
    if not hmac.compare_digest(challenge(verifier), expected_challenge):
        raise OAuthError(code="invalid_grant", description="code_verifier does not match code_challenge")


def _refresh(request: OAuthRequest, client: Client, services: Services) -> Response:
    """Get a new access token for our refresh token; a client may ask for fewer scopes than were granted."""
    form = request.parameters
    claims = _open_refresh_token(form.get("refresh_token", ""), request, client, services)
    if claims is None:
        raise OAuthError(code="invalid_grant", description=UNUSABLE_GRANT)
    granted = claims["scope"]
    scope = _read_scope(form.get("scope", ""), granted)
    # One caller with false tokens could make the provider throttle this server, and so every user.
    with services.refusal_budget.charged_if_refused(request.caller_id):
        tokens = services.provider.refresh(claims["token"], scope, granted)
    # A provider that does not rotate its refresh tokens returns none: the old one stays valid.
    return _make_token_response(tokens, tokens.refresh_token or claims["token"], granted, client, services)


def _read_scope(requested: str, granted: str) -> str:
    """Return the scope that a refreshed token gets: the requested scope, or all that the user granted."""
    scope = " ".join(requested.split()) or granted
    # RFC 6749, 6: "The requested scope MUST NOT include any scope not originally granted by the resource owner."
    if not set(scope.split()).issubset(granted.split()):
        raise OAuthError(code="invalid_scope", description="the scope is more than was granted")
    return scope


def _make_token_response(
    tokens: Tokens, refresh_token: str, shown: str, client: Client, services: Services
) -> Response:
    """Make the response of `/token`. It has neither the ID token nor the refresh token of the provider."""
    body: TokenResponse = {
        "access_token": tokens.access_token,
        "token_type": "Bearer",
        "expires_in": tokens.expires_in,
    }
    if tokens.scope:
        body["scope"] = tokens.scope
    if refresh_token:
        with suppress(StateTooLarge):  # the code is spent by now, so the client gets what there is
            body["refresh_token"] = _seal_refresh_token(refresh_token, shown, client, services)
    return responses.make_json(200, body)


def _open_refresh_token(token: str, request: OAuthRequest, client: Client, services: Services) -> RefreshClaims | None:
    """Return the claims of our refresh token; None if it is not this client's, or has expired."""
    resource = services.settings.resource
    claims = services.values.open(REFRESH, token, request.caller_id, client.id_digest, resource)
    return cast("RefreshClaims | None", claims)


def _seal_refresh_token(token: str, granted: str, client: Client, services: Services) -> str:
    """Return our refresh token, which holds the provider's and the scope that the user granted."""
    claims = {"token": token, "scope": granted}
    return services.values.seal(REFRESH, claims, client.id_digest, services.settings.resource)
