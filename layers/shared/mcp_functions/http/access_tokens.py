"""Checks of an access token's claims, after API Gateway's authorizer has verified the token.

    verified by API Gateway    signature, issuer, audience, time
    checked again here         issuer, audience, time: an operator may have attached an authorizer for another audience
    checked here alone         no ID token or refresh token, which API Gateway accepts, too; a subject; the scopes

API Gateway writes claims as text: a number as digits, a list as `[a b]`.

In the oauth mode, people sign in at this stack's own front (`mcp_functions.oauth`). The front is the one client of an
OpenID Connect provider, and hands the provider's access tokens to MCP apps.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Protocol

from mcp_functions.http import metadata
from mcp_functions.protocol import scopes
from mcp_functions.protocol.errors import InsufficientScope, Misconfigured, Unauthorized
from mcp_functions.protocol.messages import Identity, Principal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mcp_functions.protocol.event_types import RequestContext
    from mcp_functions.protocol.messages import Request
    from mcp_functions.settings import Settings

CLIENT_CLAIMS = (  # with the id of the client; of several, the first one counts
    "client_id",  # RFC 9068, and Cognito
    "azp",  # OpenID Connect
    "cid",  # Okta
    "appid",  # Entra ID
)
# Values of the claims `token_use` (Cognito) and `typ` (Keycloak).
ACCESS_TOKENS = {"access", "bearer", "at+jwt"}
OTHER_TOKENS = {"id", "refresh", "offline"}  # ID tokens and two kinds of refresh tokens
NOT_ASKED = "{0} lets in only callers with an access token, but AuthMode none asks for none: {1} is refused"
# Claims that only ID tokens have (OpenID Connect Core, sections 2 and 3.3.2.11; FAPI 1.0).
ID_TOKEN_CLAIMS = ("nonce", "at_hash", "c_hash", "s_hash")


def check_claims(
    claims: Mapping[str, Any], request_context: RequestContext, settings: Settings, now: float
) -> Identity:
    """Check the claims of a verified access token, and return whose it is and what it allows.

    "MCP servers MUST validate that access tokens were issued specifically for them as the intended audience"; "Invalid
    or expired tokens MUST receive a HTTP 401 response" (basic/authorization).

    Raises:
        Unauthorized: the token is not valid for this server at the time `now`, in unix seconds.
    """
    token = AccessToken(claims)
    reason = _problem(token, settings, now)
    if reason:  # the client learns only that the token is invalid
        challenge = metadata.challenge(settings, request_context, error="invalid_token")
        raise Unauthorized(reason, headers={"www-authenticate": challenge})
    if settings.auth_mode == "oauth":
        # Every MCP app uses the same provider client, so its id does not tell which app calls.
        principal = Principal(iss=token.issuer, sub=token.subject, client="")
        # Cognito writes `<resource>/<scope>` into the claim, and the handlers declare `<scope>` alone.
        prefix = settings.oauth_scope_prefix
        return Identity(principal, frozenset(scope.removeprefix(prefix) for scope in token.scopes))
    return Identity(Principal(iss=token.issuer, sub=token.subject, client=token.client), frozenset(token.scopes))


def _problem(token: AccessToken, settings: Settings, now: float) -> str | None:
    """Return why a token is not valid for this server, as the log names it; None if it is valid."""
    if token.issuer != settings.jwt_issuer:
        return "token_issuer"
    if token.audiences.isdisjoint(settings.jwt_audiences):
        return "token_audience"
    is_oauth = settings.auth_mode == "oauth"
    # Some providers do not mark an ID token. It has a `nonce`, because `oauth` sends one with each sign-in.
    is_unmarked_id_token = is_oauth and token.has_id_token_claims and not token.is_marked
    if token.is_marked_for_other_use or is_unmarked_id_token:
        return "token_use"
    # Some providers give one audience to the tokens of many servers. Then the token must also be for our client.
    if is_oauth and settings.oauth_binding == "client_id" and token.client != settings.oauth_client_id:
        return "token_client"
    if token.expires <= now:
        return "token_expired"
    return None if token.subject else "token_without_subject"


class Restricted(Protocol):
    """What a handler says about its callers (`handlers.base`)."""

    @property
    def name(self) -> str:
        """Its name for clients."""

    @property
    def scopes(self) -> Sequence[str]:
        """The scopes that the caller's access token must grant, all of them."""

    @property
    def restricted_by(self) -> str:
        """The option of an adopted server that lets in only callers with an access token; "" without one."""


def require_scopes(handler: Restricted, request: Request, settings: Settings) -> None:
    """Check that the caller's token grants all scopes that a handler needs.

    Raises:
        InsufficientScope: the token lacks a scope.
        Misconfigured: callers have no token in this AuthMode, and the handler, or the server of another library that
            it belongs to, asks for one.
    """
    needed = handler.scopes
    if settings.auth_mode == "none":
        if handler.restricted_by:
            raise Misconfigured(NOT_ASKED.format(handler.restricted_by, handler.name))
        return
    if not needed:
        return
    if settings.auth_mode == "iam":
        name = handler.restricted_by or handler.name
        raise Misconfigured(
            f"{name} needs scopes, which only tokens have: deploy with AuthMode jwt, or remove its scopes"
        )
    granted = scopes.expand(request.scopes, settings.scope_hierarchy)
    if not granted.issuperset(needed):
        # "servers SHOULD include all scopes required for the current operation in a single challenge"
        scope = " ".join(needed)
        request_context = request.event.get("requestContext", {})
        challenge = metadata.challenge(settings, request_context, error="insufficient_scope", scope=scope)
        # The body has the scopes too, because API Gateway renames the header.
        data = {"reason": "insufficient_scope", "scope": scope}
        raise InsufficientScope(data=data, headers={"www-authenticate": challenge})


class AccessToken:
    """The claims of an access token, read alike for all providers.

    Attributes:
        issuer: who issued it; "" if the claim is no text.
        subject: whose it is; "" if the claim is no text.
        audiences: the servers for which it was issued.
        client: the id of the client to which it was issued; "" if no claim has it.
        scopes: what it allows.
        expires: when it expires, in unix seconds; 0 if `exp` is no number.
        is_marked: whether a claim says that it is an access token.
        is_marked_for_other_use: whether a claim says that it is an ID token or a refresh token.
        has_id_token_claims: whether it has a claim that only ID tokens have.
    """

    def __init__(self, claims: Mapping[str, Any]) -> None:
        """Read the claims, whose values API Gateway wrote as text."""
        self.issuer = _read_text(claims.get("iss"))
        self.subject = _read_text(claims.get("sub"))
        # An access token of Cognito has no `aud`. API Gateway, too, "validates client_id only if aud is not present".
        self.audiences = set(_read_list(claims.get("aud", claims.get("client_id"))))
        clients = [str(claims[name]) for name in CLIENT_CLAIMS if claims.get(name)]
        self.client = clients[0] if clients else ""
        # One text, "read write", or a list of texts. Okta and Entra ID write them into `scp`.
        self.scopes = " ".join(_read_list(claims.get("scope", claims.get("scp")))).split()
        self.expires = _read_time(claims.get("exp"))
        uses = {str(claims[name]).lower() for name in ("token_use", "typ") if name in claims}
        self.is_marked = not uses.isdisjoint(ACCESS_TOKENS)
        self.is_marked_for_other_use = not uses.isdisjoint(OTHER_TOKENS)
        self.has_id_token_claims = any(name in claims for name in ID_TOKEN_CLAIMS)


def _read_time(claim: object) -> float:
    """Read a time in unix seconds; 0 if the claim is no number."""
    try:
        seconds = float(str(claim))
    except ValueError:
        return 0
    return 0 if math.isnan(seconds) else seconds


def _read_text(claim: object) -> str:
    return claim if isinstance(claim, str) else ""


def _read_list(claim: object) -> list[str]:
    """Read a claim that is one text or a list of texts, which API Gateway writes as "[a b]"."""
    if isinstance(claim, list):
        return [entry for entry in claim if isinstance(entry, str)]
    if not isinstance(claim, str):
        return []
    if claim.startswith("[") and claim.endswith("]"):
        return claim[1:-1].split()
    return [claim]
