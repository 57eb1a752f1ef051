"""The interface of a table, with its items and errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from mcp_functions.protocol.errors import StateTooLarge

if TYPE_CHECKING:
    from collections.abc import Mapping


class Key(NamedTuple):
    """The key of an item. Each principal has separate keys, so no principal can find another's item.

    Attributes:
        kind: a constant of the toolkit ("task", "conversation"), without a slash.
        id: cannot be guessed if a client may name it.
        principal: a `principal_digest`; None on a server without sign-in.
    """

    kind: str
    id: str
    principal: str | None = None


@dataclass(frozen=True)
class Item:
    """An item as it was read or written; `Table.replace` takes it back.

    Attributes:
        key: of the item.
        version: counts its writes from 1.
        payload: JSON.
        expires: unix seconds; an expired item counts as deleted.
        blob: the key of the object with the payload, if the payload does not fit into the item.
    """

    key: Key
    version: int
    payload: Mapping[str, Any]
    expires: int
    blob: str | None = None


class Conflict(Exception):
    """Another writer was faster: read the item again, and decide again."""


class UnreadableItem(Exception):
    """The seal of an existing item does not open: MCP_GENERATION changed, or another program wrote the item.

    The item is not absent. A task in it is unknown, but work that the item must prevent from running twice must not
    run.
    """


class ItemTooLarge(StateTooLarge):
    """The payload does not fit into an item; `reason` explains the remedy."""


class Table(Protocol):
    """Stores items. Every method may also raise these errors.

    Raises:
        TemporarilyUnavailable: the table or KMS cannot answer now. A write may have happened; read the item again.
        Misconfigured: the operator must act.
    """

    def get(self, key: Key) -> Item | None:
        """Return an item as the last write left it (strongly consistent); None if it does not exist or has expired.

        Raises:
            UnreadableItem: the item exists, and its seal does not open.
        """

    def create(self, key: Key, payload: Mapping[str, Any], *, expires: int) -> Item:
        """Write a new item.

        Args:
            key: of the item.
            payload: JSON.
            expires: unix seconds, at most the table's `max_age` from now. An item that prevents repetition must outlive
                every request that could repeat it.

        Raises:
            Conflict: the item exists and has not expired.
            ItemTooLarge: the payload does not fit.
        """

    def replace(self, item: Item, payload: Mapping[str, Any], *, expires: int | None = None) -> Item:
        """Replace an item, if it has not changed since it was read.

        Args:
            item: from `get`, `create` or `replace`.
            payload: JSON.
            expires: unix seconds, as in `create`; None keeps the old value.

        Raises:
            Conflict: the item has another version now, or is gone.
            ItemTooLarge: the payload does not fit.
        """

    def delete(self, item: Item) -> None:
        """Delete an item, if it has not changed since it was read. An item that is gone already is no conflict.

        Raises:
            Conflict: the item has another version now.
        """
