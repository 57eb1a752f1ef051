"""Sealed values: what browsers and clients carry for this authorization server, which stores nothing itself.

    purpose      the value is                      it is bound to
    CLIENT       the id of a registered client     nothing
    CONSENT      in the form of the consent page   the browser
    REQUEST      the `state` for the provider      the browser
    CODE         the code for a client             the client, the resource
    REFRESH      the refresh token for a client    the client, the resource
    REMEMBERED   the cookie with consents          the browser

Sealed means encrypted and authenticated with a key from KMS. A value opens only for its own purpose, and with the texts
to which it is bound (sign-in.md, section 2).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from mcp_functions.protocol.errors import InvalidRequestState
from mcp_functions.protocol.json_writer import dumps_ascii
from mcp_functions.seal.keys import with_length
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_functions.dispatch.seal_factory import SealFactory

PREFIX = "ks1."  # how every sealed value begins
MINUTE = 60  # seconds
DAY = 24 * 3600  # seconds


class Purpose(NamedTuple):
    """A purpose of a sealed value."""

    label: bytes  # authenticated with the value, so that no value opens for another purpose
    lifetime_seconds: int
    max_chars: int  # the greatest length of a value
    kept_seconds: int = 0  # how long an expired value can still be opened on demand


CLIENT = Purpose(b"ks1/oauth-client", 180 * DAY, 6144, kept_seconds=10 * 365 * DAY)
CONSENT = Purpose(b"ks1/oauth-consent", 10 * MINUTE, 8192)
REQUEST = Purpose(b"ks1/oauth-request", 10 * MINUTE, 8192)
CODE = Purpose(b"ks1/oauth-code", 2 * MINUTE, 8192)
REFRESH = Purpose(b"ks1/oauth-refresh", 90 * DAY, 8192)
REMEMBERED = Purpose(b"ks1/oauth-remembered", 30 * DAY, 3072)
PURPOSES = (CLIENT, CONSENT, REQUEST, CODE, REFRESH, REMEMBERED)


class SealedValues:
    """Seals and opens JSON objects, the claims."""

    def __init__(self, seals: SealFactory, now: Callable[[], float]) -> None:
        """Make the seals of all purposes; no key is fetched yet."""
        self._now = now
        self._seals = {}
        for purpose in PURPOSES:
            max_age = max(purpose.lifetime_seconds, purpose.kept_seconds)
            self._seals[purpose] = seals.seal(purpose.label, max_age=max_age, max_chars=purpose.max_chars)

    def seal(self, purpose: Purpose, claims: Mapping[str, Any], *bound_to: str) -> str:
        """Return a value that holds the claims and `exp`, its expiry in unix seconds.

        It opens only with the texts of `bound_to` in the same order.
        """
        expires = int(self._now()) + purpose.lifetime_seconds
        plaintext = dumps_ascii({**claims, "exp": expires}).encode()
        return self._seals[purpose].seal(plaintext, about=encode_binding(bound_to))

    def open(
        self, purpose: Purpose, value: str, caller_id: str, *bound_to: str, also_expired: bool = False
    ) -> dict[str, Any] | None:
        """Return the claims of a value from a client or a browser; a failed call of KMS is charged to `caller_id`.

        They are None if the value was not sealed by this server for this purpose and these texts. They are also None if
        it has expired, unless `also_expired` is set.
        """
        try:
            plaintext = self._seals[purpose].unseal(value, caller=caller_id, about=encode_binding(bound_to))
        except InvalidRequestState:
            return None
        claims: dict[str, Any] = json.loads(plaintext)
        return claims if also_expired or self._now() < claims["exp"] else None


def encode_binding(bound_to: tuple[str, ...]) -> bytes:
    """Return the bytes that bind a value to texts. Each text has at most 32 KiB, as a form has."""
    return b"".join(with_length(text.encode()) for text in bound_to)
