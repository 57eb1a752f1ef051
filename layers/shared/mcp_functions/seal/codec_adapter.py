"""An `Envelope` or an author's codec, with one interface (envelope.md §10).

An author may replace the envelope by a codec, which only seals bytes and opens them. An envelope does more: it limits
how often a caller can make it ask KMS, and binds a token to a context, `about`. An item of a table is bound to its key
in this way. The adapter adds that binding to a codec.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import TYPE_CHECKING, cast

from mcp_functions.protocol.errors import InvalidRequestState, Misconfigured, TemporarilyUnavailable
from mcp_functions.seal.claims import ClaimReason

if TYPE_CHECKING:
    from mcp_functions.seal.envelope import Codec, Envelope


class CodecAdapter:
    """Seals and opens tokens with a codec. It adds the binding to `about` if an author's codec does not have it."""

    def __init__(self, codec: Codec, label: bytes = b"") -> None:
        """Use a codec.

        Args:
            codec: an `Envelope`, or an author's own codec.
            label: the kind of payload. With an author's codec it is part of the binding to `about`.
        """
        self._codec = codec
        self._label = label
        self._envelope = cast("Envelope", codec) if getattr(codec, "knows_callers", False) else None

    def seal(self, payload: bytes, *, about: bytes = b"") -> str:
        """Seal a payload; see `Envelope.seal`."""
        if self._envelope:
            return self._envelope.seal(payload, about=about)
        return self._codec.seal(self._digest(about) + payload)

    def unseal(self, token: str, *, caller: str, about: bytes = b"") -> bytes:
        """Open a token; see `Envelope.unseal`. Any exception of an author's codec means that the token does not open.

        Raises:
            InvalidRequestState: the token does not open, or was sealed with another `about`.
            TemporarilyUnavailable, Misconfigured: the keys are not available.
        """
        if self._envelope:
            return self._envelope.unseal(token, caller=caller, about=about)
        try:
            payload = self._codec.unseal(token)
        except (InvalidRequestState, TemporarilyUnavailable, Misconfigured):
            raise
        except Exception:  # noqa: BLE001 - an author's codec may raise anything, and its text may hold secrets
            raise InvalidRequestState(ClaimReason.CODEC) from None
        digest = self._digest(about)
        if not isinstance(payload, bytes) or not hmac.compare_digest(payload[: len(digest)], digest):
            raise InvalidRequestState(ClaimReason.CODEC)
        return payload[len(digest) :]

    def _digest(self, about: bytes) -> bytes:
        """Return the digest that precedes the payload with an author's codec (§12.2)."""
        return hashlib.sha256(self._label + b"\0" + about).digest() if about else b""
