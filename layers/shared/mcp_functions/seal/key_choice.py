"""The choice of the data key to seal with (envelope.md §6.2).

An epoch is a quarter of an hour of the wall clock. A key belongs to the epoch in which it was born. A container knows
the keys that it generated, and the keys under which it opened an authentic token. It seals with

    1. a key of the current epoch;
    2. else, in the first minutes of an epoch (the grace period), a key of the previous epoch;
    3. else a new key, which KMS generates.

If all containers ended their grace period in the same second, each would generate a key. So each container ends it at a
moment of its own, which it draws at random. Most of these moments are late, and a few are early. The container with the
earliest one generates a key, and the others learn this key from its tokens while they are still in their grace period:

    epoch 1    A generates key 1, and seals. B opens the token, and seals with key 1, too.
    epoch 2    at first A and B seal with key 1. A's grace period ends after 190 seconds: it generates key 2.
               B's would end after 215 seconds. Before that it opens a token of A, and then seals with key 2.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp_functions.seal.keys import DataKey

EPOCH_SECONDS = 900
GRACE_SECONDS = 225  # the longest grace period of a container
GRACE_RANDOM_BYTES = 6  # what `draw_grace` needs


def choose_key(keys: Sequence[DataKey], now: float, grace: float) -> DataKey | None:
    """Choose the data key to seal with. Without one, the container needs a new key.

    Args:
        keys: the keys that may seal.
        now: the current time in unix seconds.
        grace: the length of this container's grace period in seconds (`draw_grace`).
    """
    epoch = epoch_of(now)
    key = oldest_key(keys, epoch)
    if key is None and now - epoch * EPOCH_SECONDS < grace:
        return oldest_key(keys, epoch - 1)
    return key


def oldest_key(keys: Sequence[DataKey], epoch: int) -> DataKey | None:
    """Return the oldest key of an epoch.

    All containers that know the same keys must choose the same one. So of two keys that were born in the same second,
    it is the one whose wrapped bytes sort first.
    """
    of_epoch = [key for key in keys if epoch_of(key.born) == epoch]
    return min(of_epoch, key=lambda key: (key.born, key.wrapped), default=None)


def draw_grace(random_bytes: bytes) -> float:
    """Return the length of a container's grace period in seconds.

    It ends early by a time with an exponential distribution, whose mean is a twelfth of the longest grace period.

    Args:
        random_bytes: `GRACE_RANDOM_BYTES` random bytes.
    """
    number = int.from_bytes(random_bytes, "big") + 1  # log(0) fails
    fraction = number / (1 << 8 * GRACE_RANDOM_BYTES)  # above 0, and at most 1
    early = -math.log(fraction) * GRACE_SECONDS / 12
    return GRACE_SECONDS - early


def epoch_of(seconds: float) -> int:
    """Return the number of the epoch at a time, which is given in unix seconds."""
    return int(seconds // EPOCH_SECONDS)


def last_use(born: int) -> int:
    """Return the unix second at which the last container stops to seal with a key that was born at `born`.

    It is the end of the next epoch: while KMS generates no key, a container still seals with one of the previous epoch.
    """
    return (epoch_of(born) + 2) * EPOCH_SECONDS
