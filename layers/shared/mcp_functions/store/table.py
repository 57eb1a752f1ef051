"""The items of a table, their keys, and the errors of reading and writing them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

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
    """An item as it was read or written; `SealedTable.replace` takes it back.

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
