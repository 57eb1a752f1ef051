"""The issuer's clients, authorization codes and refresh tokens, in memory.

register         a client               -> its client id
code             a user's permission    -> a code, valid for a minute
redeem           a code                 -> the permission; a code is valid once
refresh_token    a permission           -> a refresh token
refresh          a refresh token        -> the permission
"""

from __future__ import annotations

import hmac
import re
import secrets
from dataclasses import dataclass, replace
from threading import Lock
from typing import TYPE_CHECKING, TypeVar

from mcp_functions.oauth import redirects
from mcp_functions.oauth.errors import ErrorCode, OAuthError
from mcp_functions.oauth.provider import challenge

if TYPE_CHECKING:
    from collections.abc import Mapping

T = TypeVar("T")

CODE_SECONDS = 60.0  # how long a code is valid
MAX_ENTRIES = 1000  # how many clients, codes and refresh tokens each are kept, so that no client fills the memory
CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")  # a SHA-256 in base64url


@dataclass(frozen=True)
class Grant:
    """The permission of a user for a client."""

    client: str  # the client's id
    subject: str  # the user
    scope: str  # the scopes, separated by spaces
    resource: str  # URL of the MCP endpoint, the audience of the tokens
    redirect_uri: str = ""
    challenge: str = ""  # the PKCE challenge; "" if the client sent none
    nonce: str = ""  # a text that OpenID Connect repeats in the ID token
    expires: float = 0.0  # unix seconds, when the code of this grant expires


class Grants:
    """Issues client ids, codes and refresh tokens, and redeems them."""

    def __init__(self, redirect_uris: Mapping[str, tuple[str, ...]], *, rotates_refresh_tokens: bool) -> None:
        """Start with some clients.

        Args:
            redirect_uris: the redirect URIs of each known client, by client id.
            rotates_refresh_tokens: whether a refresh token is valid only once.
        """
        self._lock = Lock()
        self._rotates_refresh_tokens = rotates_refresh_tokens
        self._redirect_uris: dict[str, tuple[str, ...]] = dict(redirect_uris)
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
            raise OAuthError(ErrorCode.INVALID_REDIRECT_URI, description)
        return _add(self._lock, self._redirect_uris, redirect_uris)

    def knows(self, client: str, redirect_uri: str) -> bool:
        """Whether a client registered a redirect URI."""
        return redirects.matches(redirect_uri, self._redirect_uris.get(client, ()))

    def code(self, grant: Grant, now: float) -> str:
        """Issue a code for a grant.

        Raises:
            OAuthError: the request has no PKCE challenge.
        """
        if not CHALLENGE.fullmatch(grant.challenge):
            raise OAuthError(ErrorCode.INVALID_REQUEST, "PKCE is needed: code_challenge and code_challenge_method=S256")
        return _add(self._lock, self._grants_by_code, replace(grant, expires=now + CODE_SECONDS))

    def redeem(self, code: str, *, client: str, redirect_uri: str, verifier: str, now: float) -> Grant:
        """Redeem a code, which is valid once.

        Raises:
            OAuthError: the code is not valid (any more), or another client's, or the verifier is wrong.
        """
        with self._lock:
            grant = self._grants_by_code.pop(code, None)
        if grant is None or now > grant.expires:
            raise OAuthError(ErrorCode.INVALID_GRANT, "this code is unknown, used or too old")
        if grant.client != client or grant.redirect_uri != redirect_uri:
            raise OAuthError(ErrorCode.INVALID_GRANT, "this code is for another client or another redirect_uri")
        if not hmac.compare_digest(challenge(verifier), grant.challenge):
            raise OAuthError(ErrorCode.INVALID_GRANT, "code_verifier does not match code_challenge")
        return grant

    def refresh_token(self, grant: Grant) -> str:
        """Issue a refresh token for a grant."""
        return _add(self._lock, self._grants_by_refresh_token, grant)

    def refresh(self, token: str, *, client: str, scope: str | None) -> Grant:
        """Redeem a refresh token.

        MCP says: "For public clients, authorization servers MUST rotate refresh tokens".

        Args:
            token: the refresh token.
            client: the id of the client that sent it.
            scope: the scopes that the client wants, at most the granted ones; None for all of them.

        Raises:
            OAuthError: the token is not valid (any more), or another client's, or a scope was not granted.
        """
        with self._lock:
            grant = self._grants_by_refresh_token.pop(token, None)
            if grant and not self._rotates_refresh_tokens:
                self._grants_by_refresh_token[token] = grant
        if grant is None or grant.client != client:
            raise OAuthError(ErrorCode.INVALID_GRANT, "this refresh token is unknown, used, or another client's")
        if scope is not None and not set(scope.split()) <= set(grant.scope.split()):
            raise OAuthError(ErrorCode.INVALID_SCOPE, "a refreshed token has no scope that was not granted")
        return grant if scope is None else replace(grant, scope=scope)

    def revoke(self, token: str) -> None:
        """Make a refresh token invalid. An unknown token is no error (RFC 7009, section 2.2)."""
        with self._lock:
            self._grants_by_refresh_token.pop(token, None)


def _add(lock: Lock, entries: dict[str, T], value: T) -> str:
    """Add a value under a new random name, and return the name. Beyond MAX_ENTRIES the oldest entry is removed."""
    name = secrets.token_urlsafe(24)
    with lock:
        entries[name] = value
        while len(entries) > MAX_ENTRIES:
            oldest = next(iter(entries))
            del entries[oldest]
    return name
