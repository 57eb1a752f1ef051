"""The items of a table, their keys, and the errors of reading and writing them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from mcp_functions.protocol.errors import StateTooLarge

if TYPE_CHECKING:
    from collections.abc import Mapping


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
    blob: str | None = None  # the key of the object with the payload, if the payload does not fit into the item


class Conflict(Exception):
    """Another writer was faster: read the item again, and decide again."""


class UnreadableItem(Exception):
    """The seal of an existing item does not open: MCP_GENERATION changed, or another program wrote the item.

    The item is not absent. A task in it is unknown, but work that the item must prevent from running twice must not
    run.
    """


class ItemTooLarge(StateTooLarge):
    """The payload does not fit into an item; `reason` explains the remedy."""
