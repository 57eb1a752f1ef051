"""Seals the payload of an item, bound to the item's key, version and expiry time (envelope.md, section 12.2).

A payload in the item and a payload in an object have different labels, so neither can replace the other.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from mcp_functions import observability

if TYPE_CHECKING:
    from mcp_functions.seal.envelope import Seal
    from mcp_functions.store.dynamodb import Row

LABEL = b"ks1/item"  # for payloads in the table
BLOB_LABEL = b"ks1/blob"  # for payloads in the bucket


class ItemSeal:
    """Seals and opens the payloads of rows."""

    def __init__(self, seal: Seal) -> None:
        """Use a seal, which encrypts and authenticates bytes. It was made with the label LABEL or BLOB_LABEL."""
        self._seal = seal

    def seal(self, row: Row, plaintext: bytes) -> str:
        """Return the token, a sealed text, of a row's payload.

        Raises:
            StateTooLarge: the payload is larger than a token can be.
        """
        return self._seal.seal(plaintext, about=_binding(row))

    def unseal(self, row: Row, token: str) -> bytes:
        """Return the payload that was sealed for this row.

        Raises:
            InvalidRequestState: the token was not sealed for this row.
            TemporarilyUnavailable, Misconfigured: KMS does not answer.
        """
        # Failed unseals are limited per caller, because each may cost a call of KMS. The gateway notes the caller of a
        # request before the handler runs. A worker has no caller, so they are limited per item.
        caller_id = observability.current().caller_id or f"item:{row.key}"
        return self._seal.unseal(token, caller=caller_id, about=_binding(row))


def _binding(row: Row) -> bytes:
    """Return the bytes that bind a payload to its item (envelope.md, section 12).

    The layout is: 2 bytes length of the key, the key, 8 bytes version, 8 bytes expiry time (unix seconds). Numbers are
    big-endian. Stored tokens depend on this layout, so it never changes.
    """
    key_bytes = row.key.encode()
    length = struct.pack(">H", len(key_bytes))
    return length + key_bytes + struct.pack(">QQ", row.version, row.expires)
