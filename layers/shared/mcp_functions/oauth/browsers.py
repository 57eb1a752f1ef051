"""The cookies of a browser. This authorization server keeps no session, so they hold what it knows of a browser.

    mcp-browser-<time>-<tag>   a random id; the values that are sealed for it open only in a browser that has it
    mcp-consents               the consents that the user gave before in this browser, sealed

`<time>` is when the id was made, in unix seconds.

A new browser may open several pages at once, and gets an id with each. So each id has a cookie of its own, and none
replaces another. A sealed value ends with the tag of its id, so that it is opened with this id alone: a wrong try
would be charged as a forged value.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from typing import TYPE_CHECKING, Any

from mcp_functions.oauth.errors import OAuthError
from mcp_functions.oauth.sealed_values import REMEMBERED, SealedValues
from mcp_functions.protocol.json_writer import base64url
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_functions.oauth.request import OAuthRequest
    from mcp_functions.oauth.sealed_values import Purpose
    from mcp_functions.oauth.settings import OAuthSettings

BROWSER = "mcp-browser"  # in version 0.1.0, this was the name of the only cookie with an id
CONSENTS = "mcp-consents"
COOKIE_SECONDS = REMEMBERED.lifetime_seconds  # how long a browser keeps both cookies
BROWSER_ID = r"[A-Za-z0-9_-]{43}"  # 32 bytes in base64url
NAME = rf"{BROWSER}(?:-([0-9]{{10}})-[A-Za-z0-9_-]{{8}})?"  # of a cookie with an id
TAG_CHARS = 8
TAG_START = "~"  # between a sealed value and a tag
MAX_IDS = 8  # of one browser; the oldest go first
MAX_REMEMBERED = 24  # consents; a browser keeps at most 4 KB of a cookie


class Browser(NamedTuple):
    """A browser, by one of its ids."""

    id: str  # 32 random bytes in base64url; a secret of the browser
    since: int  # when the id was made, in unix seconds; 0 for an id of version 0.1.0

    @property
    def digest(self) -> str:
        """A digest of the id, to which sealed values are bound."""
        return base64url(hashlib.sha256(b"browser\0" + self.id.encode()).digest())

    @property
    def tag(self) -> str:
        """The first characters of the digest, which tell the ids of a browser apart."""
        return self.digest[:TAG_CHARS]

    @property
    def cookie(self) -> str:
        """The name of the cookie that has the id."""
        return f"{BROWSER}-{self.since:010}-{self.tag}" if self.since else BROWSER


class Browsers:
    """Reads and writes the cookies of browsers."""

    def __init__(self, settings: OAuthSettings, values: SealedValues, now: Callable[[], float]) -> None:
        """Keep `values`, which seals for browsers. The URL in `settings` decides how cookies are named."""
        self._values = values
        self._now = now
        # Another host of the domain cannot set a cookie whose name begins with "__Host-". Browsers accept such a cookie
        # over https alone, so on a developer's machine there is no prefix.
        self._is_secure = settings.url.startswith("https://")

    def recognise(self, request: OAuthRequest) -> list[Browser]:
        """Return the browser of a request by each of its ids, the newest first; none without a valid cookie."""
        found = []
        for name, value in request.cookies.items():
            named = re.fullmatch(re.escape(self._name("")) + NAME, name)
            if named and re.fullmatch(BROWSER_ID, value):
                found.append(Browser(value, int(named[1] or 0)))
        newest_first = sorted(found, key=lambda browser: browser.since, reverse=True)
        return [each for each in newest_first if not each.since or self._now() < each.since + COOKIE_SECONDS]

    def seal(self, purpose: Purpose, claims: Mapping[str, Any], browser: Browser) -> str:
        """Return a value that opens in one browser alone; for the arguments, see `SealedValues.seal`."""
        return self._values.seal(purpose, claims, browser.digest) + TAG_START + browser.tag

    def open(self, purpose: Purpose, value: str, request: OAuthRequest) -> tuple[Browser, dict[str, Any]] | None:
        """Return the claims of a value, and the browser by the id that opens it; None if no id of it does."""
        browsers = self.recognise(request)
        if not browsers:
            raise OAuthError(code="invalid_request", description="the browser sent no cookie", status=403)
        sealed, _, tag = value.partition(TAG_START)
        for browser in browsers:
            if browser.tag == tag or not (tag or browser.since):  # version 0.1.0 wrote no tag
                claims = self._values.open(purpose, sealed, request.caller_id, browser.digest)
                return None if claims is None else (browser, claims)
        return None

    def new(self) -> Browser:
        """Return a browser that has no cookie yet."""
        return Browser(secrets.token_urlsafe(32), int(self._now()))

    def cookies(self, request: OAuthRequest, browser: Browser) -> list[str]:
        """Return the Set-Cookie headers by which a browser is recognised later, and which end its oldest ids."""
        known = self.recognise(request)
        if browser in known:
            return [self._cookie(each.cookie, "", seconds=0) for each in known[MAX_IDS:]]
        return [self._cookie(browser.cookie, browser.id)]

    def has_consented(self, request: OAuthRequest, consent: str) -> bool:
        """Check whether this browser remembers a consent."""
        return consent in self._remembered(request)

    def remember(self, request: OAuthRequest, browser: Browser, consent: str) -> str:
        """Return the Set-Cookie header with which a browser remembers one more consent; the oldest make room."""
        others = [other for other in self._remembered(request) if other != consent]
        newest = [*others, consent][-MAX_REMEMBERED:]
        return self._cookie(CONSENTS, self.seal(REMEMBERED, {"consents": newest}, browser))

    def _remembered(self, request: OAuthRequest) -> list[str]:
        value = request.cookies.get(self._name(CONSENTS))
        if not value or not self.recognise(request):
            return []
        opened = self.open(REMEMBERED, value, request)
        if opened is None:  # the cookie is too old or another browser's, so the user is asked again
            return []
        consents: list[str] = opened[1]["consents"]
        return consents

    def _name(self, name: str) -> str:
        return f"__Host-{name}" if self._is_secure else name

    def _cookie(self, name: str, value: str, seconds: int = COOKIE_SECONDS) -> str:
        # Lax and not Strict: with the provider's redirect to /callback, which comes from another site, the browser has
        # to send the cookie.
        attributes = f"Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax"
        if self._is_secure:
            attributes += "; Secure"
        return f"{self._name(name)}={value}; {attributes}"
