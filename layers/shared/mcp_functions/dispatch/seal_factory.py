"""What one scope seals, made when it is first asked for: nobody pays for keys, seals or tables that are not used."""

from __future__ import annotations

from functools import lru_cache
from threading import Lock
from typing import TYPE_CHECKING, cast

from mcp_functions.seal.forgetting import forgetful

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mcp_functions.seal.data_keys import Keys, Wrapping
    from mcp_functions.seal.envelope import Codec
    from mcp_functions.seal.request_state import RequestStates
    from mcp_functions.settings import Settings
    from mcp_functions.store import Bucket, Table

STATES = b"ks1/request-state"


class SealFactory:
    """What one scope seals: the states that clients carry, and the items of a table. Both under the same data keys.

    `states(lifetime)` and `table(max_age)` make one for every number of seconds, and give it again: what they have
    learnt is worth keeping. `states(lifetime, label)` is for what dialects carry, which is no requestState.
    """

    def __init__(
        self,
        found: Settings,
        service: str,
        wrapping: Sequence[Wrapping] | None = None,
        codec: Codec | None = None,
        *,
        now: Callable[[], float],
    ) -> None:
        """Remember what the deployment decided; nothing is made before it is asked for.

        Args:
            found: the deployment's settings.
            service: `<stack>/<function>`, or a shared audience.
            wrapping: another KMS than that of the settings.
            codec: another seal altogether.
            now: unix seconds.

        """
        self._found, self._service, self._wrapping, self._codec, self._now = found, service, wrapping, codec, now
        self._making, self._made = Lock(), cast("Keys | None", None)
        self.states = lru_cache(self._states)
        self.table = lru_cache(self._table)
        forgetful(self)

    def reset(self) -> None:
        """Make another lock: in a forked child the old one may be held by a thread that is not there."""
        self._making = Lock()

    @property
    def _keys(self) -> Keys:
        with self._making:  # two that are made at once would each have their own
            self._made = self._made or self._make_keys()
            return self._made

    def _make_keys(self) -> Keys:
        from mcp_functions.seal.data_keys import Keys, KmsKey, Scope  # noqa: PLC0415 - only where something is sealed

        wraps = self._wrapping or [KmsKey(arn) for arn in self._found.kms_keys]
        return Keys(wraps, Scope(self._service, self._found.stage, self._found.generation), now=self._now)

    def _states(self, lifetime: int, label: bytes = STATES) -> RequestStates:
        from mcp_functions.seal.request_state import RequestStates  # noqa: PLC0415

        seal = self.seal(label, max_age=lifetime, max_chars=self._found.max_state_chars)
        anonymous = self._found.auth_mode == "none"
        return RequestStates(seal, now=self._now, lifetime_seconds=lifetime, anonymous=anonymous)

    def _table(self, max_age: int) -> Table:
        from mcp_functions import store  # noqa: PLC0415 - of few functions

        seal = self._codec or store.envelope(self._keys, max_age=max_age)
        rows = store.DynamoDb(self._found.table, store.make_call)
        blobs = self._blobs(max_age) if self._found.blobs else None
        return store.SealedTable(rows, seal, self._service, max_age=max_age, blobs=blobs, now=self._now)

    def _blobs(self, max_age: int) -> tuple[Bucket, Codec]:
        from mcp_functions import store  # noqa: PLC0415 - of few functions
        from mcp_functions.store.s3 import S3  # noqa: PLC0415 - of fewer

        seal = self._codec or store.envelope(self._keys, max_age=max_age, label=store.BLOB_LABEL)
        return S3(self._found.blobs), seal

    def seal(self, label: bytes, *, max_age: int, max_chars: int) -> Codec:
        """Make what seals bytes of another kind than states and items.

        Args:
            label: says the kind; nothing sealed under one opens under another. An own codec knows no labels: with it,
                whoever seals says the kind inside.
            max_age: seconds that what is sealed may live.
            max_chars: of a token.

        """
        if self._codec:
            return self._codec
        from mcp_functions.seal.envelope import Envelope  # noqa: PLC0415 - a seal of one's own needs no cryptography

        return Envelope(self._keys, label=label, max_age=max_age, max_chars=max_chars)
