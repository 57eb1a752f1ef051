"""The keyring of a container: the data keys that seal and open its tokens (envelope.md §6).

A data key encrypts tokens. KMS makes it, and wraps it: KMS encrypts it under a key that never leaves KMS. The header of
a token holds the wrapped data key. So a container that lacks the data key asks KMS to unwrap it, and then knows it.

    to seal    `key_choice` chooses a data key that the container knows, or has KMS generate one
    to open    `token_opening` takes the data key from the cache, or has KMS unwrap it

Threads may share a keyring. Containers may not: Lambda (SnapStart) can start many containers from one snapshot of
memory, which then would have the same secrets. So the keyring forgets its keys before a snapshot, after a restore and
in a forked child.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from mcp_functions.seal.key_cache import KeyCache
from mcp_functions.seal.key_choice import KeyChoice
from mcp_functions.seal.kms import Wrapping, WrappingKeys
from mcp_functions.seal.resets import register_for_reset
from mcp_functions.seal.token_opening import TokenOpener

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mcp_functions.seal.keys import DataKey, Header, Scope

MAX_KEYS = 256  # how many data keys a container caches


class Keyring:
    """The data keys of one scope, as one container sees them."""

    def __init__(
        self,
        wrappings: Sequence[Wrapping],
        scope: Scope,
        *,
        now: Callable[[], float] = time.time,
        rand: Callable[[int], bytes] = os.urandom,
    ) -> None:
        """Keep the wrapping keys, without a call to them.

        Args:
            wrappings: the wrapping keys; the first one seals, each of them opens.
            scope: the service, stage and generation, part of every EncryptionContext and every derivation.
            now: the wall clock, in unix seconds; a monotonic clock would be wrong after a snapshot.
            rand: the function that returns a number of random bytes, for `key_choice`.

        Raises:
            Misconfigured: there is no wrapping key, or two that headers cannot tell apart.
        """
        self._wrapping_keys = WrappingKeys(wrappings, scope)
        self.scope = scope
        self._now = now
        self._rand = rand
        self.reset()
        register_for_reset(self)

    def reset(self) -> None:
        """Forget every key, budget and lock. A call that is under way keeps the old ones, and ends with them."""
        cache = KeyCache(MAX_KEYS)
        self._choice = KeyChoice(self._wrapping_keys, cache, now=self._now, rand=self._rand)
        self._opener = TokenOpener(self._wrapping_keys, cache, now=self._now)

    def key_to_seal(self) -> DataKey:
        """Return the data key to seal with now; see `KeyChoice.key_to_seal`."""
        return self._choice.key_to_seal()

    def open(self, header: Header, decrypt: Callable[[DataKey], bytes], *, caller: str, max_age: float) -> bytes:
        """Decrypt a token under its data key; see `TokenOpener.open`."""
        return self._opener.open(header, decrypt, caller=caller, max_age=max_age)
