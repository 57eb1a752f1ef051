"""What is kept, found and refused: the words of `Table`, whoever implements it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from mcp_functions.protocol.errors import StateTooLarge

if TYPE_CHECKING:
    from collections.abc import Mapping


class Key(NamedTuple):
    """What finds an item. Another principal's item has another key: to everybody else, there is none.

    `kind` is one of the toolkit's words ("task", "conversation"), without a slash; `id` is unguessable where a client
    may name it; `principal` is a `principal_digest`, None on a server that knows nobody.
    """

    kind: str
    id: str
    principal: str | None = None


@dataclass(frozen=True)
class Item:
    """An item as it was read or written: who wants to replace it hands it back.

    Attributes:
        key: what found it.
        version: counts its writes from 1.
        payload: JSON.
        expires: unix seconds at which it ends; from then on it is as good as gone.
        blob: the key of the object that holds what did not fit into it.

    """

    key: Key
    version: int
    payload: Mapping[str, Any]
    expires: int
    blob: str | None = None


class Conflict(Exception):
    """Somebody else wrote first: read again, and decide again."""


class Unreadable(Exception):
    """An item is there and its seal does not open: after a new MCP_GENERATION, or somebody else wrote it.

    It is not absent: a task of it is an unknown task, but what it kept from happening twice must not happen now.
    """


class ItemTooLarge(StateTooLarge):
    """The payload does not fit into an item; `reason` says what to do about it."""


class Table(Protocol):
    """What tasks and single use keep. Every method may also raise these, and then nothing is known to have happened.

    Raises:
        TemporarilyUnavailable: the table or KMS cannot answer now. A write may have happened all the same; who reads
            again will see which.
        Misconfigured: they will not answer until the operator acts.

    """

    def get(self, key: Key) -> Item | None:
        """Read an item as the last write left it (strongly consistent); None if there is none, or it has ended.

        Raises:
            Unreadable: it is there, and its seal does not open.

        """

    def create(self, key: Key, payload: Mapping[str, Any], *, expires: int) -> Item:
        """Write an item that is not there.

        Args:
            key: that will find it.
            payload: JSON.
            expires: unix seconds at which it ends, at most the table's `max_age` from now. Who must not forget sets it
                past all that could still ask.

        Raises:
            Conflict: it is there already, and has not ended.
            ItemTooLarge: it does not fit.

        """

    def replace(self, item: Item, payload: Mapping[str, Any], *, expires: int | None = None) -> Item:
        """Write an item anew, if nobody has written it since it was read.

        Args:
            item: as `get`, `create` or `replace` returned it.
            payload: JSON, in the place of what was there.
            expires: unix seconds, as for `create`; as it was, if left out.

        Raises:
            Conflict: it has another version now, or is gone.
            ItemTooLarge: it does not fit.

        """

    def delete(self, item: Item) -> None:
        """Remove an item, if nobody has written it since it was read; one that is gone already is no conflict.

        Raises:
            Conflict: it has another version now.

        """
