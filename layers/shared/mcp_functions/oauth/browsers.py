"""The two cookies of a browser. This authorization server keeps no session, so they hold what it knows of a browser.

    mcp-browser    a random id; the values that are sealed for a sign-in in this browser open only together with it
    mcp-consents   the consents that the user gave before in this browser, sealed

Sealed means encrypted and authenticated.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from typing import TYPE_CHECKING

from mcp_functions.oauth.errors import OAuthError
from mcp_functions.oauth.sealed_values import REMEMBERED, SealedValues
from mcp_functions.protocol.json_writer import base64url
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from mcp_functions.oauth.request import OAuthRequest
    from mcp_functions.oauth.settings import OAuthSettings

BROWSER = "mcp-browser"
CONSENTS = "mcp-consents"
COOKIE_SECONDS = REMEMBERED.lifetime_seconds  # how long a browser keeps both cookies
BROWSER_ID = r"[A-Za-z0-9_-]{43}"  # 32 bytes in base64url
MAX_REMEMBERED = 24  # consents; a browser keeps at most 4 KB of a cookie


class Browser(NamedTuple):
    """A browser, by its cookie."""

    id: str  # 32 random bytes in base64url; a secret of the browser

    @property
    def digest(self) -> str:
        """A digest of the id, to which sealed values are bound."""
        return base64url(hashlib.sha256(b"browser\0" + self.id.encode()).digest())


class Browsers:
    """Reads and writes the cookies of browsers."""

    def __init__(self, settings: OAuthSettings, values: SealedValues) -> None:
        """Keep `values`, which seals the remembered consents. The URL in `settings` decides how cookies are named."""
        self._values = values
        # Another host of the domain cannot set a cookie whose name begins with "__Host-". Browsers accept such a cookie
        # over https alone, so on a developer's machine there is no prefix.
        self._is_secure = settings.url.startswith("https://")

    def recognise(self, request: OAuthRequest) -> Browser | None:
        """Return the browser of a request; None if the request has no valid cookie."""
        value = request.cookies.get(self._name(BROWSER), "")
        if not re.fullmatch(BROWSER_ID, value):
            return None
        return Browser(value)

    def require(self, request: OAuthRequest) -> Browser:
        """Return the browser of a request.

        Raises:
            OAuthError: the request has no valid cookie.
        """
        browser = self.recognise(request)
        if browser is None:
            raise OAuthError(code="invalid_request", description="the browser sent no cookie", status=403)
        return browser

    def cookie(self, browser: Browser) -> str:
        """Return the Set-Cookie header by which a new browser is recognised later."""
        return self._cookie(BROWSER, browser.id)

    def has_consented(self, request: OAuthRequest, browser: Browser, consent: str) -> bool:
        """Check whether this browser remembers a consent."""
        return consent in self._remembered(request, browser)

    def remember(self, request: OAuthRequest, browser: Browser, consent: str) -> str:
        """Return the Set-Cookie header with which a browser remembers one more consent; the oldest make room."""
        others = [other for other in self._remembered(request, browser) if other != consent]
        newest = [*others, consent][-MAX_REMEMBERED:]
        sealed = self._values.seal(REMEMBERED, {"consents": newest}, browser.digest)
        return self._cookie(CONSENTS, sealed)

    def _remembered(self, request: OAuthRequest, browser: Browser) -> list[str]:
        value = request.cookies.get(self._name(CONSENTS))
        if not value:
            return []
        claims = self._values.open(REMEMBERED, value, request.caller_id, browser.digest)
        if claims is None:  # the cookie is too old or another browser's, so the user is asked again
            return []
        consents: list[str] = claims["consents"]
        return consents

    def _name(self, name: str) -> str:
        return f"__Host-{name}" if self._is_secure else name

    def _cookie(self, name: str, value: str) -> str:
        # Lax and not Strict: with the provider's redirect to /callback, which comes from another site, the browser has
        # to send the cookie.
        attributes = f"Path=/; Max-Age={COOKIE_SECONDS}; HttpOnly; SameSite=Lax"
        if self._is_secure:
            attributes += "; Secure"
        return f"{self._name(name)}={value}; {attributes}"


def new_browser() -> Browser:
    """Return a browser that has no cookie yet."""
    return Browser(secrets.token_urlsafe(32))
