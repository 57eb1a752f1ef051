"""Data keys, and the choice of the one to seal with: plain data and one pure function (envelope.md §6).

An epoch is a quarter of an hour by the wall clock. A key belongs to the epoch in which it was born. A key is "proven"
in a container that generated it, or that opened an authentic token under it. A container seals only with proven keys.

Each container first looks for a proven key of the current epoch. If it has none, it uses the key of the previous epoch
for a short time, the grace period, and then generates a key. So containers learn each other's keys from tokens, and the
whole fleet generates about one key per epoch.
"""

from __future__ import annotations

import hashlib
from enum import StrEnum
from typing import TYPE_CHECKING

from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

KEY_BYTES = 32  # the size of every data key
MAX_WRAPPED = 1024  # the most bytes that a wrapped data key may have
# This constant is part of the token format. With another value, no token that exists would open, so it never changes.
KEK_HINT_LABEL = b"ks1/kek\0"


class TokenReason(StrEnum):
    """The reason why a token is refused: for the log and the metric, never on the wire (§8)."""

    PREFIX = "prefix"
    LENGTH = "length"
    ENCODING = "encoding"
    TRUNCATED = "truncated"
    SUITE = "suite"
    KEY_KIND = "key_kind"
    KEK_UNKNOWN = "kek_unknown"
    BORN_FUTURE = "born_future"
    BORN_PAST = "born_past"
    WRAPPED_KEY = "wrapped_key"
    KEK_RETIRED = "kek_retired"
    COMMITMENT = "commitment"
    TAG = "tag"


class Header(NamedTuple):
    """The part of a token that identifies its data key, and that is not encrypted."""

    born: int  # when the data key was generated, in unix seconds
    kek: bytes  # the hint at the wrapping key ("key encryption key") that wraps the data key; see `kek_hint`
    wrapped: bytes  # the wrapped data key


class DataKey(NamedTuple):
    """An unwrapped data key: the three fields of its header, and 32 secret bytes."""

    born: int
    kek: bytes
    wrapped: bytes
    plaintext: bytes

    def __repr__(self) -> str:
        """Show the key without its plaintext."""
        return f"DataKey(born={self.born}, kek={self.kek.hex()}, wrapped={key_name(self.wrapped)})"

    @property
    def header(self) -> Header:
        """The header of the tokens under this key."""
        return Header(self.born, self.kek, self.wrapped)


class Scope(NamedTuple):
    """The functions that share keys: `service` ("<stack>/<function>" or a shared audience), `stage`, `generation`."""

    service: str
    stage: str
    generation: str


class Rules(NamedTuple):
    """The lifetime of a data key (envelope.md §6.1). Times are in seconds."""

    epoch: int = 900  # the length of an epoch
    grace: int = 225  # after the start of an epoch: how long a key of the epoch before may still seal
    stale: int = 900  # after the end of a key's epoch: how long the key may still seal while KMS cannot answer
    skew: int = 60  # how far two clocks may differ
    pause: int = 5  # after a failed GenerateDataKey: how long a container does not try again
    adopt: bool = True  # whether a container may seal with keys that other containers generated


class Choice(NamedTuple):
    """The key to seal with. Without `key`, generate one; if KMS cannot answer, seal with `fallback`."""

    key: DataKey | None
    fallback: DataKey | None = None  # a key of an earlier epoch


def key_name(wrapped: bytes) -> str:
    """Return a short name of a wrapped key, for logs."""
    return hashlib.sha256(wrapped).hexdigest()[:16]


def kek_hint(key_id: str) -> bytes:
    """Return the four bytes of a header that identify a wrapping key; `key_id` is the id without the ARN (§3)."""
    return hashlib.sha256(KEK_HINT_LABEL + key_id.encode()).digest()[:4]


def rank(key: DataKey) -> tuple[int, bytes]:
    """Return the sort key of a data key: its age, then a digest. So every container sorts keys in the same order."""
    return key.born, hashlib.sha256(key.wrapped).digest()


def choose_key(keys: Iterable[DataKey], now: float, early: float, rules: Rules) -> Choice:
    """Choose the data key to seal with (§6.2). It reads no clock and asks no KMS.

    Args:
        keys: the proven keys that may seal.
        now: the current time in unix seconds.
        early: the random seconds by which the grace period ends earlier in this container. Without them, all containers
            would generate a key in the same second.
        rules: the lifetime of a key.
    """
    alive = [key for key in keys if now < end_of(key.born, rules) + rules.stale]
    oldest = _oldest_of_epochs(alive, rules)
    epoch = int(now // rules.epoch)
    # §6.2, rule 1: "the oldest key of the current epoch". Two containers that know the same keys choose the same one.
    if epoch in oldest:
        return Choice(oldest[epoch])
    # Rule 2: "while now - start of the epoch < grace - early, the oldest key of the previous epoch". A few containers
    # generate a key of the new epoch early. It spreads through tokens, and the others adopt it in the grace period.
    since_start = now - epoch * rules.epoch
    is_in_grace = rules.adopt and since_start < rules.grace - early
    if is_in_grace and epoch - 1 in oldest:
        return Choice(oldest[epoch - 1])
    # Rules 3 and 4: a new key, "and if KMS cannot answer, the oldest key of the latest earlier epoch".
    past = [earlier for earlier in oldest if earlier < epoch]
    if not past:
        return Choice(None)
    return Choice(None, fallback=oldest[max(past)])


def _oldest_of_epochs(keys: Iterable[DataKey], rules: Rules) -> dict[int, DataKey]:
    """Return the oldest key of each epoch, by the number of the epoch."""
    oldest: dict[int, DataKey] = {}
    for key in sorted(keys, key=rank):
        oldest.setdefault(key.born // rules.epoch, key)
    return oldest


def end_of(born: int, rules: Rules) -> int:
    """Return the unix second at which the epoch of a key born at `born` ends."""
    return (born // rules.epoch + 1) * rules.epoch


def last_use(born: int, rules: Rules) -> int:
    """Return the unix second after which no container seals with a key born at `born`."""
    return end_of(born, rules) + max(rules.grace, rules.stale)
