"""The browser of a sign-in, and its two cookies.

    mcp-browser    a random id; values that the front seals for a sign-in open only together with it
    mcp-consents   the consents that the user gave before, sealed (encrypted and authenticated)

The front, this authorization server, keeps no session, so the cookies hold what it must know about a browser.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from typing import TYPE_CHECKING, NamedTuple

from mcp_functions.oauth.sealed_values import REMEMBERED, SealedValues
from mcp_functions.protocol.json_writer import base64url

if TYPE_CHECKING:
    from mcp_functions.oauth.request import OAuthRequest
    from mcp_functions.oauth.settings import FrontSettings

BROWSER = "mcp-browser"
CONSENTS = "mcp-consents"
BROWSER_SECONDS = REMEMBERED.lifetime_seconds  # how long a browser keeps both cookies
BROWSER_ID = r"[A-Za-z0-9_-]{43}"
MAX_REMEMBERED = 24  # the consents that a cookie has room for


class Browser(NamedTuple):
    """A browser."""

    id: str  # 32 random bytes as base64url; only the cookie of the browser and this request know it

    @property
    def digest(self) -> str:
        """The text to which sealed values are bound. It does not reveal the cookie."""
        return base64url(hashlib.sha256(b"browser\0" + self.id.encode()).digest())


class Browsers:
    """Reads and writes the cookies of browsers."""

    def __init__(self, settings: FrontSettings, values: SealedValues) -> None:
        """Take the settings, and the object that seals the remembered consents."""
        self._values = values
        # A cookie whose name begins with "__Host-" cannot come from another host. Browsers accept it over https alone,
        # so a front on this machine, without https, uses no prefix.
        self._is_secure = settings.url.startswith("https://")

    def recognise(self, request: OAuthRequest) -> Browser | None:
        """Return the browser of a request; None if it has no cookie."""
        value = request.cookies.get(self._name(BROWSER), "")
        if not re.fullmatch(BROWSER_ID, value):
            return None
        return Browser(value)

    def cookie(self, browser: Browser) -> str:
        """Return the cookie by which a browser is recognised later."""
        return self._cookie(BROWSER, browser.id)

    def has_consented(self, request: OAuthRequest, browser: Browser, consent: str) -> bool:
        """Check whether this browser remembers a consent."""
        return consent in self._remembered(request, browser)

    def remember(self, request: OAuthRequest, browser: Browser, consent: str) -> str:
        """Return the cookie with which a browser remembers one more consent."""
        others = [other for other in self._remembered(request, browser) if other != consent]
        newest = [*others, consent][-MAX_REMEMBERED:]
        sealed = self._values.seal(REMEMBERED, {"consents": newest}, (browser.digest,))
        return self._cookie(CONSENTS, sealed)

    def _remembered(self, request: OAuthRequest, browser: Browser) -> list[str]:
        value = request.cookies.get(self._name(CONSENTS))
        if not value:
            return []
        claims = self._values.open(REMEMBERED, value, request.caller_id, (browser.digest,))
        if claims is None:  # the cookie is too old or another browser's, so the user is asked again
            return []
        consents: list[str] = claims["consents"]
        return consents

    def _name(self, name: str) -> str:
        return f"__Host-{name}" if self._is_secure else name

    def _cookie(self, name: str, value: str) -> str:
        # Lax: the provider's redirect to /callback is a navigation from another site, and has to carry the cookie.
        attributes = f"Path=/; Max-Age={BROWSER_SECONDS}; HttpOnly; SameSite=Lax"
        if self._is_secure:
            attributes += "; Secure"
        return f"{self._name(name)}={value}; {attributes}"


def new_browser() -> Browser:
    """Return a browser that has no cookie yet."""
    return Browser(secrets.token_urlsafe(32))


def consent_name(client_id: str, redirect_uri: str, scope: str) -> str:
    """Return the name of a consent: a digest of the client, the redirect URI and the scopes in any order."""
    scopes = " ".join(sorted(scope.split()))
    consent = f"{client_id}\0{redirect_uri}\0{scopes}"
    return base64url(hashlib.sha256(consent.encode()).digest()[:16])
