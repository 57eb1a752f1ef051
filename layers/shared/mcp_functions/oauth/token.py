"""The endpoints `/token` and `/revoke`: a client gets the provider's access token, refreshes it, and revokes it.

    code of the front           holds, sealed: the provider's code, and the client's PKCE challenge
    refresh token of the front  holds, sealed: the provider's refresh token

The front (this package's authorization server) seals them, that is encrypts and authenticates them, for one client.
It checks everything before it redeems the provider's code. So a refused request leaves the owner's code valid.

`visit` is the request. `parts` has what all endpoints share: the settings, the seal, the clients and the provider.
"""

from __future__ import annotations

import hmac
import re
from typing import TYPE_CHECKING, Any

from mcp_functions.oauth import answers, errors
from mcp_functions.oauth.authorization import check_resource
from mcp_functions.oauth.client_authentication import authenticate
from mcp_functions.oauth.errors import OAuthError
from mcp_functions.oauth.provider import challenge
from mcp_functions.oauth.sealed_values import CODE, PREFIX, REFRESH
from mcp_functions.protocol.errors import InvalidRequestState

if TYPE_CHECKING:
    from mcp_functions.http.events import Response
    from mcp_functions.oauth.client_metadata import Client
    from mcp_functions.oauth.front import Parts
    from mcp_functions.oauth.provider import Tokens
    from mcp_functions.oauth.sealed_values import Purpose
    from mcp_functions.oauth.visits import Visit

VERIFIER = r"[A-Za-z0-9._~-]{43,128}"  # RFC 7636, section 4.1
GONE = "the code or refresh token is not this client's, or has expired"


def issue(visit: Visit, parts: Parts) -> Response:
    """Answer `POST /token`.

    Raises:
        OAuthError: the request is refused.
        McpError: KMS or the provider does not answer, or the caller's budget is empty.
    """
    client = authenticate(visit, parts.clients, {parts.settings.url, f"{parts.settings.url}/token"}, parts.now())
    check_resource(visit.parameters, parts.settings)
    grant = visit.parameters.get("grant_type")
    if grant == "authorization_code":
        return _redeem(visit, client, parts)
    if grant == "refresh_token":
        return _refresh(visit, client, parts)
    raise OAuthError(errors.UNSUPPORTED_GRANT_TYPE, "only authorization_code and refresh_token are supported")


def revoke(visit: Visit, parts: Parts) -> Response:
    """Answer `POST /revoke` (RFC 7009).

    Raises:
        OAuthError: the request is refused.
        McpError: KMS or the provider does not answer, or the caller's budget is empty.
    """
    client = authenticate(visit, parts.clients, {parts.settings.url, f"{parts.settings.url}/revoke"}, parts.now())
    token = visit.parameters.get("token")
    if token is None:
        raise OAuthError(errors.INVALID_REQUEST, "token is missing")
    if not token.startswith(PREFIX):
        raise OAuthError(errors.CANNOT_REVOKE, "only refresh tokens can be revoked: an access token ends by itself")
    try:
        claims = parts.values.open(REFRESH, token, visit.caller_id, *_refresh_token_bound_to(client, parts))
    except InvalidRequestState:
        return answers.json(200, {})  # RFC 7009, 2.2: "invalid tokens do not cause an error response"
    with parts.refusals.charged_if_refused(visit.caller_id):
        parts.provider.api.revoke(claims["token"])
    return answers.json(200, {})


def _redeem(visit: Visit, client: Client, parts: Parts) -> Response:
    """Answer a request with a code."""
    form = visit.parameters
    # `callback` bound the code to the same three texts in the same order, so a code opens for its own client, redirect
    # and resource only.
    bound_to = (parts.digest(client.id), form.get("redirect_uri", ""), parts.settings.resource)
    claims = _open(visit, parts, CODE, form.get("code", ""), bound_to)
    verifier = form.get("code_verifier", "")
    is_verifier = re.fullmatch(VERIFIER, verifier) is not None
    if not is_verifier or not hmac.compare_digest(challenge(verifier), claims["challenge"]):
        raise OAuthError(errors.INVALID_GRANT, "code_verifier does not match code_challenge")
    with parts.refusals.charged_if_refused(visit.caller_id):
        tokens = parts.provider.redeem(claims["code"], claims["seed"])
    return _response(tokens, client, claims["scope"], parts)


def _refresh(visit: Visit, client: Client, parts: Parts) -> Response:
    """Answer a request with a refresh token; a client may ask for fewer scopes than were granted."""
    token = visit.parameters.get("refresh_token", "")
    claims = _open(visit, parts, REFRESH, token, _refresh_token_bound_to(client, parts))
    requested = visit.parameters.get("scope", "").split()
    granted = set(claims["scope"].split())
    # RFC 6749, 6: "The requested scope MUST NOT include any scope not originally granted by the resource owner."
    if not set(requested) <= granted:
        raise OAuthError(errors.INVALID_SCOPE, "the scope is more than was granted")
    scope = " ".join(requested)
    provider_scope = scope
    if set(requested) == granted:
        provider_scope = ""  # RFC 6749, 6: without a scope, the provider grants all that the user granted
    with parts.refusals.charged_if_refused(visit.caller_id):
        tokens = parts.provider.refresh(claims["token"], provider_scope)
    if not tokens.refresh_token:
        # The provider does not rotate its refresh tokens: the old one stays valid.
        tokens = tokens._replace(refresh_token=claims["token"])
    return _response(tokens, client, claims["scope"], parts, shown=scope)


def _refresh_token_bound_to(client: Client, parts: Parts) -> tuple[str, str]:
    """Return the texts to which a refresh token is bound. Tokens that clients hold depend on their order."""
    return parts.digest(client.id), parts.settings.resource


def _open(visit: Visit, parts: Parts, purpose: Purpose, value: str, bound_to: tuple[str, ...]) -> dict[str, Any]:
    """Return the claims of a code or a refresh token, if it was sealed for the same `bound_to` texts."""
    try:
        return parts.values.open(purpose, value, visit.caller_id, *bound_to)
    except InvalidRequestState:
        raise OAuthError(errors.INVALID_GRANT, GONE) from None  # the cause speaks of a requestState


def _response(tokens: Tokens, client: Client, granted: str, parts: Parts, *, shown: str = "") -> Response:
    """Make the response with the provider's access token. Its ID token and its refresh token stay here.

    Args:
        tokens: the provider's tokens.
        client: the client that gets the access token.
        granted: the scope that the user granted.
        parts: the parts of the front.
        shown: the scope that the client asked for now; "" for all that was granted.
    """
    body: dict[str, Any] = {
        "access_token": tokens.access_token,
        "token_type": "Bearer",
        "expires_in": tokens.expires_in,
    }
    scope = tokens.scope or shown or granted
    if scope:
        body["scope"] = scope
    if tokens.refresh_token:
        claims = {"token": tokens.refresh_token, "scope": granted}
        body["refresh_token"] = parts.values.seal(REFRESH, claims, *_refresh_token_bound_to(client, parts))
    return answers.json(200, body)
