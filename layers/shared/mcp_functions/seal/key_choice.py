"""Data keys, and the choice of the one to seal with: plain data and pure functions (envelope.md §6).

An epoch is a quarter of an hour by the wall clock. A key belongs to the epoch in which it was born. A container seals
with a key that it generated, or under which it opened an authentic token.

Each container first looks for a key of the current epoch. If it has none, it uses the key of the previous epoch for a
short time, the grace period, and then generates a key. So containers learn each other's keys from tokens, and the whole
fleet generates about one key per epoch:

    epoch 1      A generates key 1, and seals. B opens the token, and seals under key 1, too.
    epoch 2      grace period: A and B still seal under key 1. A ends its grace period early, and generates key 2.
                 B opens a token of A, and seals under key 2. It never asked for a key.
"""

from __future__ import annotations

import hashlib
import math
from enum import StrEnum
from typing import TYPE_CHECKING

from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

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


def key_name(wrapped: bytes) -> str:
    """Return a short name of a wrapped key, for logs."""
    return hashlib.sha256(wrapped).hexdigest()[:16]


def kek_hint(key_id: str) -> bytes:
    """Return the four bytes of a header that identify a wrapping key; `key_id` is the id without the ARN (§3)."""
    return hashlib.sha256(KEK_HINT_LABEL + key_id.encode()).digest()[:4]


def rank(key: DataKey) -> tuple[int, bytes]:
    """Return the sort key of a data key: its birth, then a digest. So every container sorts keys in the same order."""
    return key.born, hashlib.sha256(key.wrapped).digest()


def choose_key(keys: Sequence[DataKey], now: float, seed: bytes, rules: Rules) -> DataKey | None:
    """Choose the data key to seal with (§6.2, rules 1 and 2). Without one, the container needs a new key.

    Args:
        keys: the keys that may seal.
        now: the current time in unix seconds.
        seed: random bytes of the container, which stay the same; see `early_seconds`.
        rules: the lifetime of a key.
    """
    epoch = int(now // rules.epoch)
    # Rule 1: "the oldest key of the current epoch". Two containers that know the same keys choose the same one.
    current = _oldest_of(epoch, keys, rules)
    if current:
        return current
    # Rule 2: "while now - start of the epoch < grace - early, the oldest key of the previous epoch".
    previous = _oldest_of(epoch - 1, keys, rules)
    since_start = now - epoch * rules.epoch
    if previous and rules.adopt and since_start < rules.grace - early_seconds(seed, epoch, rules):
        return previous
    return None


def choose_stale_key(keys: Sequence[DataKey], now: float, rules: Rules) -> DataKey | None:
    """Choose the data key to seal with while KMS cannot generate one (§6.2, rule 4); None if all are too old.

    It is "the oldest key of the latest earlier epoch whose end is less than `stale` seconds ago".
    """
    current = int(now // rules.epoch)
    epochs = {key.born // rules.epoch for key in keys if now < end_of(key.born, rules) + rules.stale}
    earlier = [epoch for epoch in epochs if epoch < current]
    return _oldest_of(max(earlier), keys, rules) if earlier else None


def early_seconds(seed: bytes, epoch: int, rules: Rules) -> float:
    """Return by how many seconds a container leaves the grace period of an epoch before its end.

    Without this, all containers would generate a key in the same second. The distribution is exponential with a mean of
    grace/12. So a few containers generate a key, it spreads through tokens, and the others have time to adopt it.

    Args:
        seed: random bytes of the container, which stay the same.
        epoch: the number of the epoch.
        rules: the lifetime of a key.
    """
    digest = hashlib.sha256(seed + b"%d" % epoch).digest()
    uniform = (int.from_bytes(digest[:7], "big") + 1) / (1 << 56)  # above 0 and at most 1: log(0) fails
    return -math.log(uniform) * rules.grace / 12


def _oldest_of(epoch: int, keys: Sequence[DataKey], rules: Rules) -> DataKey | None:
    of_epoch = [key for key in keys if key.born // rules.epoch == epoch]
    return min(of_epoch, key=rank, default=None)


def end_of(born: int, rules: Rules) -> int:
    """Return the unix second at which the epoch of a key born at `born` ends."""
    return (born // rules.epoch + 1) * rules.epoch


def last_use(born: int, rules: Rules) -> int:
    """Return the unix second after which no container seals with a key born at `born`."""
    return end_of(born, rules) + max(rules.grace, rules.stale)
