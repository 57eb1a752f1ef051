"""The choice of the data key to seal with (envelope.md §6.2).

An epoch is a quarter of an hour of the wall clock. A data key belongs to the epoch in which KMS generated it. A
container knows the keys that it generated, and the keys under which it opened an authentic token. It seals with the
first of these that exists:

    the current key     the oldest key of the current epoch
    the previous key    the oldest key of the previous epoch; only in the grace period, the first minutes of an epoch
    a new key           KMS generates it
    the previous key    at any time in the epoch, while KMS is not available

If all containers ended their grace period in the same second, each would generate a key. So each container ends its
grace period at a random moment: most end it late, and a few early. The earliest container generates a key. The others
learn this key from its tokens, while they are still in their grace period:

    epoch 1    A generates key 1, and seals. B opens the token, and seals with key 1, too.
    epoch 2    at first A and B seal with key 1. A's grace period ends after 190 seconds: it generates key 2.
               B's would end after 215 seconds. Before that it opens a token of A, and then seals with key 2.

`Keyring` calls these functions with the keys of its cache, and has KMS generate the new ones.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp_functions.seal.keys import DataKey

EPOCH_SECONDS = 900


def choose_key(keys: Sequence[DataKey], now: float, grace: float) -> DataKey | None:
    """Choose the current key, or in the grace period the previous key. None if the container needs a new key.

    `now` is in unix seconds, and `grace` is the length of the grace period in seconds.
    """
    epoch = epoch_of(now)
    key = oldest_key(keys, epoch)
    if key is None and now - epoch * EPOCH_SECONDS < grace:
        return oldest_key(keys, epoch - 1)
    return key


def find_key_for_outage(keys: Sequence[DataKey], now: float) -> DataKey | None:
    """Find a key to seal with while KMS is not available: the current key, or else the previous key."""
    epoch = epoch_of(now)
    return oldest_key(keys, epoch) or oldest_key(keys, epoch - 1)


def oldest_key(keys: Sequence[DataKey], epoch: int) -> DataKey | None:
    """Return the oldest key of an epoch; None if there is no key of this epoch.

    All containers should seal with the same key, because each container that learns another key calls KMS. The oldest
    key has been in tokens for the longest time, so most containers know it. If KMS generated two keys in the same
    second, the order of their wrapped bytes decides.
    """
    candidates = [key for key in keys if epoch_of(key.wrapped_key.born) == epoch]
    return min(candidates, key=lambda key: (key.wrapped_key.born, key.wrapped_key.encrypted), default=None)


def epoch_of(seconds: float) -> int:
    """Return the number of the epoch at a time, which is given in unix seconds."""
    return int(seconds // EPOCH_SECONDS)


def last_use(born: int) -> int:
    """Return the unix second at which the last container stops to seal with a key that KMS generated at `born`.

    It is the end of the next epoch: until then, the key is the previous key.
    """
    return (epoch_of(born) + 2) * EPOCH_SECONDS


GRACE_SECONDS = 225  # the longest grace period of a container
# A container ends its grace period early by a random time with an exponential distribution, whose mean is this: 19
# seconds. In a fleet of any size, the earliest container is on average one mean ahead of the second one, and meanwhile
# its key spreads. A larger mean would leave more containers without a grace period: now it is one in 160,000 (e ** 12).
MEAN_EARLY_SECONDS = GRACE_SECONDS / 12
GRACE_RANDOM_BYTES = 6  # how many `draw_grace` needs


def draw_grace(random_bytes: bytes) -> float:
    """Return the length of a container's grace period in seconds: 0 or less if the container has none."""
    number = int.from_bytes(random_bytes, "big") + 1  # log(0) fails
    fraction = number / 2 ** (8 * GRACE_RANDOM_BYTES)  # above 0, and at most 1
    # The logarithm makes the distribution exponential.
    seconds_early = -math.log(fraction) * MEAN_EARLY_SECONDS
    return GRACE_SECONDS - seconds_early
