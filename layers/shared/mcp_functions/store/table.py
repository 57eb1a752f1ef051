"""The items of a table, the rows that store them, and the errors of reading and writing them.

    an item                            its row in DynamoDB
    Key("conversation", "f1")          key      "shop/pay/conversation/-/f1"
    version 3                          version  3
    payload {"round": 2}               sealed   "ks1.…"
    expires 1790000000                 expires  1790000000

The key of a row begins with the function ("shop/pay"), and has the principal, or "-" if the item has none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from mcp_functions import observability
from mcp_functions.protocol.errors import StateTooLarge
from mcp_functions.seal.keys import with_length

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.seal.envelope import Seal

# A payload in the table and a payload in the bucket have different labels, so neither can replace the other.
LABEL = b"ks1/item"
BLOB_LABEL = b"ks1/blob"


class Key(NamedTuple):
    """The key of an item. Each principal has separate keys, so no principal can find another's item."""

    kind: str  # a constant of the toolkit ("task", "conversation"), without a slash
    id: str  # the item's id, which cannot be guessed if clients may name it
    principal: str | None = None  # a `principal_digest`; None on a server without sign-in


@dataclass(frozen=True)
class Item:
    """An item as it was read or written. `SealedTable.replace` replaces this version of it."""

    key: Key
    version: int  # the number of the write, from 1
    payload: Mapping[str, Any]  # the JSON that the item holds
    expires: int  # when the item expires, in unix seconds; an expired item counts as deleted
    blob: str | None = None  # the key of the object that holds the payload, if there is one


class Row(NamedTuple):
    """An item as DynamoDB stores it. The fields have the names of the table's attributes."""

    key: str
    version: int  # the number of the write, from 1
    expires: int  # when the row expires, in unix seconds
    nonce: str  # a random text that identifies one write
    sealed: str  # the sealed payload

    @property
    def size(self) -> int:
        """The bytes that DynamoDB counts, or a few more: names and texts as UTF-8, and numbers by their digits."""
        total = 0
        for name, value in self._asdict().items():
            total += len(name) + len(str(value).encode())
            if isinstance(value, int):
                total += 2  # beside its digits, a number takes at most 2 bytes
        return total

    @property
    def about(self) -> bytes:
        """The bytes to which the sealed payload is bound: key, version and expiry time (envelope.md §12.2)."""
        return with_length(self.key.encode()) + self.version.to_bytes(8, "big") + self.expires.to_bytes(8, "big")


def open_payload(seal: Seal, row: Row, token: str) -> bytes:
    """Return the payload that was sealed for this row.

    Raises:
        InvalidRequestState: the token was not sealed for this row.
        TemporarilyUnavailable, Misconfigured: KMS is not available.
    """
    # A token that does not open may cost a call of KMS, so each caller has a budget for such calls. The gateway notes
    # the caller of a request. A worker of a task has no caller, so each item has a budget.
    caller_id = observability.current().caller_id or f"item:{row.key}"
    return seal.unseal(token, caller=caller_id, about=row.about)


class Conflict(Exception):
    """Another writer was faster: read the item again, and decide again."""


class UnreadableItem(Exception):
    """The seal of an existing item does not open: MCP_GENERATION changed, or another program wrote the item.

    The item is not absent. A task in it is unknown, but work that the item must prevent from running twice must not
    run.
    """


class ItemTooLarge(StateTooLarge):
    """The payload does not fit into an item; `reason` explains the remedy."""
