"""Seals the payload of an item, and binds it to the item's key, version and expiry time (envelope.md, section 12.2).

    payload {"round": 2}  --seal for row "shop/pay/conversation/-/f1", version 3-->  token "ks1.…"

The token opens only for the same key, version and expiry time. So a writer who has no data key cannot copy it to
another row, present an old version again, or let a row live longer.

A payload in the item and a payload in an object have different labels, so neither can replace the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_functions import observability

if TYPE_CHECKING:
    from mcp_functions.seal.envelope import Seal
    from mcp_functions.store.dynamodb import Row

LABEL = b"ks1/item"  # for payloads in the table
BLOB_LABEL = b"ks1/blob"  # for payloads in the bucket


def seal_payload(seal: Seal, row: Row, plaintext: bytes) -> str:
    """Return the token, a sealed text, of a row's payload.

    Raises:
        StateTooLarge: the payload is larger than a token can be.
    """
    return seal.seal(plaintext, about=_binding(row))


def open_payload(seal: Seal, row: Row, token: str) -> bytes:
    """Return the payload that was sealed for this row.

    Raises:
        InvalidRequestState: the token was not sealed for this row.
        TemporarilyUnavailable, Misconfigured: KMS is not available.
    """
    # A token that does not open may cost a call of KMS, so each caller has a budget for such calls. The gateway notes
    # the caller of a request. A worker of a task has no caller, so each item has a budget.
    caller_id = observability.current().caller_id or f"item:{row.key}"
    return seal.unseal(token, caller=caller_id, about=_binding(row))


def _binding(row: Row) -> bytes:
    """Return the bytes that bind a payload to its row. Stored tokens depend on this layout, so it never changes.

    length of the key (2 bytes), the key, version (8 bytes), expiry time in unix seconds (8 bytes); all big-endian
    """
    key = row.key.encode()
    return len(key).to_bytes(2, "big") + key + row.version.to_bytes(8, "big") + row.expires.to_bytes(8, "big")
