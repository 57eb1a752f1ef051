"""What the issuer remembers: clients, codes that were not yet redeemed, and refresh tokens; all of it in memory."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass, replace
from threading import Lock
from typing import TypeVar
from urllib.parse import urlsplit

from mcp_functions.local.issuer import jwts

T = TypeVar("T")

CODE_SECONDS = 60.0
REMEMBERED = 1000  # of each: a client that never stops registering fills nobody's memory
OUR_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})
INVALID_CLIENT_METADATA = "invalid_client_metadata"  # the errors' names are OAuth's
INVALID_GRANT = "invalid_grant"
INVALID_REDIRECT_URI = "invalid_redirect_uri"
INVALID_REQUEST = "invalid_request"
INVALID_SCOPE = "invalid_scope"
INVALID_TARGET = "invalid_target"
UNSUPPORTED_GRANT_TYPE = "unsupported_grant_type"
UNSUPPORTED_RESPONSE_TYPE = "unsupported_response_type"
CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")


class Refused(Exception):
    """An OAuth error: its code (RFC 6749, section 5.2), and a sentence."""

    def __init__(self, error: str, description: str) -> None:
        """Take both."""
        super().__init__(description)
        self.error, self.description = error, description


@dataclass(frozen=True)
class Grant:
    """What somebody allowed a client."""

    client: str
    subject: str
    scope: str
    resource: str
    redirect_uri: str = ""
    challenge: str = ""
    until: float = 0.0  # unix seconds, of a code


class Grants:
    """Gives out clients' ids, codes and refresh tokens, and takes each code and each refresh token once."""

    def __init__(self) -> None:
        """Begin with nobody."""
        self._lock = Lock()
        self._clients: dict[str, tuple[str, ...]] = {}
        self._codes: dict[str, Grant] = {}
        self._refreshes: dict[str, Grant] = {}

    def register(self, redirect_uris: tuple[str, ...]) -> str:
        """Remember a client.

        Raises:
            Refused: a code could leave this machine.

        """
        if not redirect_uris or not all(map(_returns_here, redirect_uris)):
            sentence = "redirect_uris must lead to this machine: here everybody is signed in without being asked"
            raise Refused(INVALID_REDIRECT_URI, sentence)
        return _keep(self._lock, self._clients, redirect_uris)

    def knows(self, client: str, redirect_uri: str) -> bool:
        """Tell whether a client registered a redirect URI.

        "Authorization servers MUST validate exact redirect URIs against pre-registered values"; only the port of a
        loopback address may be another (RFC 8252, section 7.3).
        """
        known = self._clients.get(client, ())
        return redirect_uri in known or (
            _is_loopback(redirect_uri) and _portless(redirect_uri) in map(_portless, filter(_is_loopback, known))
        )

    def code(self, grant: Grant, now: float) -> str:
        """Give out a code for a grant.

        Raises:
            Refused: without PKCE.

        """
        if not CHALLENGE.fullmatch(grant.challenge):
            raise Refused(INVALID_REQUEST, "PKCE is needed: code_challenge and code_challenge_method=S256")
        return _keep(self._lock, self._codes, replace(grant, until=now + CODE_SECONDS))

    def redeem(self, code: str, *, client: str, redirect_uri: str, verifier: str, now: float) -> Grant:
        """Take a code, which is then used up.

        Raises:
            Refused: it is not this client's, or no longer good.

        """
        with self._lock:
            grant = self._codes.pop(code, None)
        if grant is None or now > grant.until or (grant.client, grant.redirect_uri) != (client, redirect_uri):
            raise Refused(INVALID_GRANT, "this code is unknown, used, too old, or another client's")
        if not hmac.compare_digest(jwts.encode(hashlib.sha256(verifier.encode()).digest()), grant.challenge):
            raise Refused(INVALID_GRANT, "code_verifier is not what code_challenge was made of")
        return grant

    def refresh_token(self, grant: Grant) -> str:
        """Give out a refresh token for a grant."""
        return _keep(self._lock, self._refreshes, grant)

    def refresh(self, token: str, *, client: str, scope: str | None) -> Grant:
        """Take a refresh token: "for public clients, authorization servers MUST rotate refresh tokens".

        Raises:
            Refused: it is not this client's, or asks for more than was granted.

        """
        with self._lock:
            grant = self._refreshes.pop(token, None)
        if grant is None or grant.client != client:
            raise Refused(INVALID_GRANT, "this refresh token is unknown, used, or another client's")
        if scope is not None and not set(scope.split()) <= set(grant.scope.split()):
            raise Refused(INVALID_SCOPE, "a refreshed token has no scope that was not granted")
        return grant if scope is None else replace(grant, scope=scope)


def _keep(lock: Lock, kept: dict[str, T], value: T) -> str:
    name = secrets.token_urlsafe(24)
    with lock:
        kept[name] = value
        while len(kept) > REMEMBERED:
            del kept[next(iter(kept))]
    return name


def _returns_here(uri: str) -> bool:
    parts = urlsplit(uri)
    if parts.scheme in {"http", "https"}:
        return parts.hostname in OUR_HOSTS and not parts.fragment
    return parts.scheme not in {"", "javascript", "data", "file"}  # an application's own, `cursor://…`


def _is_loopback(uri: str) -> bool:
    return urlsplit(uri).scheme == "http" and _returns_here(uri)


def _portless(uri: str) -> tuple[str | None, str, str]:
    parts = urlsplit(uri)
    return parts.hostname, parts.path, parts.query
