"""The seal of what is kept: bound to an item's key, version and end (envelope.md §12.2).

An item's payload and the object that holds what does not fit into it are sealed under different labels, so that neither
can stand in the place of the other.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from typing import TYPE_CHECKING, cast

from mcp_functions import observability
from mcp_functions.protocol.errors import InvalidRequestState, Misconfigured, TemporarilyUnavailable
from mcp_functions.store.items import Unreadable

if TYPE_CHECKING:
    from mcp_functions.seal.data_keys import Keyring
    from mcp_functions.seal.envelope import Codec, Envelope
    from mcp_functions.store.dynamodb import Row

LABEL, BLOB_LABEL = b"ks1/item", b"ks1/blob"
_DIGEST_BYTES = 32


class Seal:
    """Seals and opens what belongs to a row."""

    def __init__(self, codec: Codec, label: bytes = LABEL) -> None:
        """Take what seals.

        Args:
            codec: what `envelope` makes with this label, or an author's own.
            label: what is sealed: LABEL, or BLOB_LABEL.

        """
        self._codec, self._label = codec, label
        self._envelope = cast("Envelope", codec) if getattr(codec, "knows_callers", False) else None

    def seal(self, row: Row, written: bytes) -> str:
        """Seal something for a row.

        Raises:
            StateTooLarge: it is more than a token can hold.

        """
        if self._envelope:
            return self._envelope.seal(written, about=_about(row))
        return self._codec.seal(self._digest(row) + written)

    def unseal(self, row: Row, sealed: str) -> bytes:
        """Open what was sealed for this row.

        Raises:
            InvalidRequestState, Unreadable: it was not.
            TemporarilyUnavailable, Misconfigured: KMS does not answer.

        """
        if self._envelope:
            # Who sent the request is charged for its items too. A worker has no such person, and charges the item.
            caller = observability.current().payer or f"item:{row.key}"
            return self._envelope.unseal(sealed, caller=caller, about=_about(row))
        opened = _unsealed(self._codec, sealed)
        if not hmac.compare_digest(opened[:_DIGEST_BYTES], self._digest(row)):
            raise Unreadable
        return opened[_DIGEST_BYTES:]

    def _digest(self, row: Row) -> bytes:
        """Say to a codec that knows no `about` what it is about: in front of the payload, inside the seal."""
        return hashlib.sha256(self._label + b"\0" + _about(row)).digest()


def envelope(keys: Keyring, *, max_age: int, label: bytes = LABEL) -> Envelope:
    """Make what seals items; a token is as long as a token can be, and as old as an item may get."""
    from mcp_functions.seal.envelope import CEILING, Envelope  # noqa: PLC0415 - a seal of one's own needs no cryptography

    return Envelope(keys, label=label, max_chars=CEILING, max_age=max_age)


def _unsealed(codec: Codec, sealed: str) -> bytes:
    """Ask an own codec: whatever it raises, an item that did not open is unreadable."""
    try:
        return bytes(codec.unseal(sealed))
    except (InvalidRequestState, TemporarilyUnavailable, Misconfigured):
        raise
    except Exception:  # noqa: BLE001 - nobody knows what an own codec raises; its text may hold anything
        raise Unreadable from None


def _about(row: Row) -> bytes:
    """Say what an item is bound to: its key, its version and its end (§12)."""
    name = row.key.encode()
    return struct.pack(">H", len(name)) + name + struct.pack(">QQ", row.version, row.expires)
