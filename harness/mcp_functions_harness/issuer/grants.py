"""The issuer's clients, authorization codes and refresh tokens, in memory.

register         a client               -> its client id
code             a user's permission    -> a code, valid for a minute
redeem           a code                 -> the permission; a code is valid once
refresh_token    a permission           -> a refresh token
refresh          a refresh token        -> the permission; a refresh token is valid once
"""

import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from threading import Lock
from typing import TypeVar

from mcp_functions.oauth import redirects
from mcp_functions.oauth.errors import OAuthError
from mcp_functions.oauth.provider import challenge

T = TypeVar("T")

CODE_SECONDS = 60.0  # how long a code is valid
MAX_ENTRIES = 1000  # clients, codes and refresh tokens each, so that no client fills the memory


@dataclass(frozen=True)
class Grant:
    """The permission of a user for a client."""

    client: str  # the client's id
    subject: str  # the user
    scope: str  # the scopes, separated by spaces
    resource: str  # URL of the MCP endpoint, the audience of the tokens
    redirect_uri: str
    challenge: str  # the PKCE challenge
    nonce: str  # a text that OpenID Connect repeats in the ID token; "" if the client sent none
    code_expires: float  # unix seconds


class Grants:
    """Issues client ids, codes and refresh tokens, and redeems them."""

    def __init__(self, redirect_uris: Mapping[str, tuple[str, ...]]) -> None:
        """Start with some clients: their redirect URIs, by client id."""
        self._lock = Lock()
        self._redirect_uris = dict(redirect_uris)
        self._grants_by_code: dict[str, Grant] = {}
        self._grants_by_refresh_token: dict[str, Grant] = {}

    def register(self, redirect_uris: tuple[str, ...]) -> str:
        """Register a client.

        Raises:
            OAuthError: a redirect URI leads to another machine.
        """
        if any(map(redirects.is_web, redirect_uris)):
            description = (
                "redirect_uris must lead to this machine, because this server signs every user in without a question"
            )
            raise OAuthError(code="invalid_redirect_uri", description=description)
        return self._add(self._redirect_uris, redirect_uris)

    def knows(self, client: str, redirect_uri: str) -> bool:
        """Whether a client registered a redirect URI."""
        return redirects.matches(redirect_uri, self._redirect_uris.get(client, ()))

    def code(self, grant: Grant) -> str:
        """Issue a code for a grant."""
        return self._add(self._grants_by_code, grant)

    def redeem(self, form: Mapping[str, str], now: float) -> Grant:
        """Redeem the code in a form of the token endpoint.

        Raises:
            OAuthError: the code is not valid (any more), or another client's, or the verifier is wrong.
        """
        with self._lock:
            grant = self._grants_by_code.pop(form.get("code", ""), None)
        if grant is None or now > grant.code_expires:
            raise OAuthError(code="invalid_grant", description="this code is unknown, used or too old")
        if grant.client != form.get("client_id") or grant.redirect_uri != form.get("redirect_uri"):
            raise OAuthError(
                code="invalid_grant", description="this code is for another client or another redirect_uri"
            )
        if not hmac.compare_digest(challenge(form.get("code_verifier", "")), grant.challenge):
            raise OAuthError(code="invalid_grant", description="code_verifier does not match code_challenge")
        return grant

    def refresh_token(self, grant: Grant) -> str:
        """Issue a refresh token for a grant."""
        return self._add(self._grants_by_refresh_token, grant)

    def refresh(self, form: Mapping[str, str]) -> Grant:
        """Redeem the refresh token in a form of the token endpoint, for all granted scopes or for those of the form.

        MCP says: "For public clients, authorization servers MUST rotate refresh tokens".

        Raises:
            OAuthError: the token is not valid (any more), or another client's, or a scope was not granted.
        """
        with self._lock:
            grant = self._grants_by_refresh_token.pop(form.get("refresh_token", ""), None)
        if grant is None or grant.client != form.get("client_id"):
            raise OAuthError(
                code="invalid_grant", description="this refresh token is unknown, used, or another client's"
            )
        scope = form.get("scope", grant.scope)
        if not set(scope.split()) <= set(grant.scope.split()):
            raise OAuthError(code="invalid_scope", description="a refreshed token has no scope that was not granted")
        return replace(grant, scope=scope)

    def revoke(self, token: str) -> None:
        """Make a refresh token invalid. An unknown token is no error (RFC 7009, section 2.2)."""
        with self._lock:
            self._grants_by_refresh_token.pop(token, None)

    def _add(self, entries: dict[str, T], entry: T) -> str:
        """Add an entry under a new random name, and return the name. Beyond MAX_ENTRIES the oldest one is removed."""
        name = secrets.token_urlsafe(24)
        with self._lock:
            entries[name] = entry
            if len(entries) > MAX_ENTRIES:
                oldest = next(iter(entries))
                del entries[oldest]
        return name
