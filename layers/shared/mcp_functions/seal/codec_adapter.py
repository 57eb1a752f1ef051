"""An author's codec, with the interface of an `Envelope` (envelope.md §10).

An author may replace the envelope by a codec, which only seals and opens bytes. An envelope also binds a token to a
context, `about`: for example an item of a table to the item's key. The adapter adds this binding to a codec: it seals
the digest of `about` together with the payload.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Protocol

from mcp_functions.protocol.errors import InvalidRequestState, Misconfigured, TemporarilyUnavailable


class Codec(Protocol):
    """An author's replacement of `Envelope`. The toolkit still checks the claims in the payload."""

    def seal(self, payload: bytes, /) -> str:
        """Return a text that hides and authenticates `payload`."""

    def unseal(self, token: str, /) -> bytes:
        """Return the payload, or raise `InvalidRequestState`; any other exception counts as this error."""


class CodecAdapter:
    """Seals and opens tokens with an author's codec."""

    def __init__(self, codec: Codec, label: bytes) -> None:
        """Use a codec. `label` is the kind of payload: a token with an `about` opens only under the same label."""
        self._codec = codec
        self._label = label

    def seal(self, payload: bytes, *, about: bytes = b"") -> str:
        """Seal a payload; see `Envelope.seal`."""
        return self._codec.seal(self._digest(about) + payload)

    # A codec has no budgets.
    def unseal(self, token: str, *, caller: str = "", about: bytes = b"") -> bytes:  # noqa: ARG002
        """Open a token; see `Envelope.unseal`. Any other exception of the codec means that the token does not open."""
        try:
            payload = self._codec.unseal(token)
        except (InvalidRequestState, TemporarilyUnavailable, Misconfigured):
            raise
        except Exception:  # noqa: BLE001 - an author's codec may raise anything, and quote secrets
            raise InvalidRequestState(reason="codec") from None
        digest = self._digest(about)
        if not isinstance(payload, bytes) or not hmac.compare_digest(payload[: len(digest)], digest):
            raise InvalidRequestState(reason="codec")
        return payload[len(digest) :]

    def _digest(self, about: bytes) -> bytes:
        """Return the digest that precedes the payload (envelope.md §12.2): no bytes if there is no `about`."""
        return hashlib.sha256(self._label + b"\0" + about).digest() if about else b""
