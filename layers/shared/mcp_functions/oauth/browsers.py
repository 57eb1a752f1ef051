"""The browser of a sign-in: its cookie, to which sealed values are bound, and the consents that it remembers."""

from __future__ import annotations

import hashlib
import re
import secrets
from typing import TYPE_CHECKING, NamedTuple

from mcp_functions.oauth.sealed_values import REMEMBERED, SealedValues
from mcp_functions.protocol.errors import InvalidRequestState
from mcp_functions.protocol.json_writer import base64url

if TYPE_CHECKING:
    from mcp_functions.oauth.settings import FrontSettings
    from mcp_functions.oauth.visits import Visit

BROWSER = "mcp-browser"
CONSENTS = "mcp-consents"
BROWSER_SECONDS = REMEMBERED.seconds
BROWSER_ID = r"[A-Za-z0-9_-]{43}"  # 32 random bytes in base64url
MAX_REMEMBERED = 24  # the consents that one browser remembers, so that the cookie stays small


class Browser(NamedTuple):
    """A browser that visits the front."""

    id: str  # a random id, which only the browser's cookie and this front know
    is_known: bool  # True if the browser sent its cookie; False if it gets one now

    @property
    def bound(self) -> str:
        """The text to which sealed values are bound. It does not reveal the cookie."""
        return base64url(hashlib.sha256(b"browser\0" + self.id.encode()).digest())


class Browsers:
    """Reads and writes the cookies of browsers."""

    def __init__(self, settings: FrontSettings, values: SealedValues) -> None:
        """Take the settings, and the object that seals the remembered consents."""
        self._values = values
        # The prefix "__Host-" proves that no other host has set the cookie. Browsers accept it only over https, so a
        # front on this machine has no prefix.
        self._is_secure = settings.url.startswith("https://")

    def recognise(self, visit: Visit) -> Browser | None:
        """Return the browser of a request; None if it has no cookie."""
        value = visit.cookies.get(self._name(BROWSER), "")
        if not re.fullmatch(BROWSER_ID, value):
            return None
        return Browser(value, is_known=True)

    def meet(self, visit: Visit) -> Browser:
        """Return the browser of a request, a new one if it has no cookie."""
        return self.recognise(visit) or Browser(secrets.token_urlsafe(32), is_known=False)

    def cookies(self, browser: Browser) -> list[str]:
        """Return the cookies to set in a browser that has none."""
        if browser.is_known:
            return []
        return [self._cookie(BROWSER, browser.id)]

    def has_consented(self, visit: Visit, browser: Browser, consent: str) -> bool:
        """Check whether this browser remembers a consent."""
        return consent in self._remembered(visit, browser)

    def remember(self, visit: Visit, browser: Browser, consent: str) -> str:
        """Return the cookie with which a browser remembers one more consent."""
        others = [other for other in self._remembered(visit, browser) if other != consent]
        claims = {"consents": [*others, consent][-MAX_REMEMBERED:]}
        return self._cookie(CONSENTS, self._values.seal(REMEMBERED, claims, browser.bound))

    def _remembered(self, visit: Visit, browser: Browser) -> list[str]:
        value = visit.cookies.get(self._name(CONSENTS))
        if not value or not browser.is_known:
            return []
        try:
            consents: list[str] = self._values.open(REMEMBERED, value, visit.caller_id, browser.bound)["consents"]
        except InvalidRequestState:
            return []
        return consents

    def _name(self, name: str) -> str:
        return f"__Host-{name}" if self._is_secure else name

    def _cookie(self, name: str, value: str) -> str:
        # SameSite is Lax, and not Strict: the provider's redirect to /callback comes from another site, and the browser
        # must send the cookie with it.
        cookie = f"{self._name(name)}={value}; Path=/; Max-Age={BROWSER_SECONDS}; HttpOnly; SameSite=Lax"
        return f"{cookie}; Secure" if self._is_secure else cookie


def consent_name(client_id: str, redirect_uri: str, scope: str) -> str:
    """Return the name of a consent: one client, one redirect, these scopes."""
    parts = "\0".join((client_id, redirect_uri, " ".join(sorted(scope.split()))))
    return base64url(hashlib.sha256(parts.encode()).digest()[:16])
