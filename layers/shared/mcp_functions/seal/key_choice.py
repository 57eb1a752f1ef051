"""Data keys and the choice of the one to seal with: plain data and one pure function (envelope.md §6).

Containers learn each other's keys from tokens. A container that opened a token under another container's key seals with
that key from then on. So a fleet converges on about one key per epoch.
"""

from __future__ import annotations

import hashlib
from enum import StrEnum
from typing import TYPE_CHECKING

from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

KEY_BYTES = 32
MAX_WRAPPED = 1024


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
    """The clear part of a token: time of birth in unix seconds, four bytes of the wrapping key, the wrapped key."""

    born: int
    kek: bytes
    wrapped: bytes


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
        """The part of this key that tokens carry."""
        return Header(self.born, self.kek, self.wrapped)


class Scope(NamedTuple):
    """The functions that share keys: `service` ("<stack>/<function>" or a shared audience), `stage`, `generation`."""

    service: str
    stage: str
    generation: str


class Rules(NamedTuple):
    """The lifetime of a data key, in seconds (envelope.md §6). `adopt=False` means one key per container and epoch."""

    epoch: int = 900
    grace: int = 225
    stale: int = 900
    skew: int = 60
    pause: int = 5
    adopt: bool = True


class Choice(NamedTuple):
    """The key to seal with. Without `key`, generate one; if KMS fails, seal with `stale`."""

    key: DataKey | None
    stale: DataKey | None = None


def key_name(wrapped: bytes) -> str:
    """Return a short name of a wrapped key, for logs."""
    return hashlib.sha256(wrapped).hexdigest()[:16]


def kek_hint(key_id: str) -> bytes:
    """Return the four bytes of a header that identify a wrapping key; `key_id` is the id without the ARN (§3)."""
    return hashlib.sha256(b"ks1/kek\0" + key_id.encode()).digest()[:4]


def rank(key: DataKey) -> tuple[int, bytes]:
    """Return the sort key of a data key, the same in every container: the oldest first, then by a digest."""
    return key.born, hashlib.sha256(key.wrapped).digest()


def choose_key(keys: Iterable[DataKey], now: float, early: float, rules: Rules) -> Choice:
    """Choose the data key to seal with (§6.2). It reads no clock and asks no KMS.

    Args:
        keys: the keys that may seal: this container generated them, or adopted them from tokens.
        now: the current time in unix seconds.
        early: the seconds by which this container leaves the grace period early, drawn again for each epoch.
        rules: the lifetime of a key.
    """
    alive = [key for key in keys if now < end_of(key.born, rules) + rules.stale]
    oldest = {key.born // rules.epoch: key for key in sorted(alive, key=rank, reverse=True)}  # of each epoch
    epoch = int(now // rules.epoch)
    # "the oldest proven key of the current epoch": two containers that know the same keys choose the same one.
    if epoch in oldest:
        return Choice(oldest[epoch])
    # "a few containers roll early, their key spreads through tokens, the rest adopt it within the grace period."
    if epoch - 1 in oldest and rules.adopt and now - epoch * rules.epoch < rules.grace - early:
        return Choice(oldest[epoch - 1])
    # "while KMS cannot answer, a proven key serves for `stale` seconds after its epoch": the newest such epoch.
    past = [born for born in oldest if born < epoch]
    return Choice(None, oldest[max(past)] if past else None)


def end_of(born: int, rules: Rules) -> int:
    """Return the unix second at which the epoch of a key born at `born` ends."""
    return (born // rules.epoch + 1) * rules.epoch


def last_use(born: int, rules: Rules) -> int:
    """Return the unix second after which no container seals with a key born at `born`."""
    return end_of(born, rules) + max(rules.grace, rules.stale)
