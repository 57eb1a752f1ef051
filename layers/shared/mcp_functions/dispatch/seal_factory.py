"""Makes the objects of one function that encrypt: for states, which clients carry, and for items of a table.

    seals = SealFactory(settings, service="shop/book", now=time.time)
    states = seals.states(600)      each state is valid for 600 seconds
    token = states.seal(…)          the encrypted state of a conversation, which the client sends back
    table = seals.table(86_400)     each item is stored encrypted, for at most a day

A seal encrypts bytes into a token of text, and opens it again (`seal.envelope`). Its data keys come from KMS. Many
functions encrypt nothing, so nothing here is made or imported before its first use.
"""

from __future__ import annotations

from functools import cache, cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mcp_functions.seal.codec_adapter import Codec
    from mcp_functions.seal.envelope import Seal
    from mcp_functions.seal.keyring import Keyring
    from mcp_functions.seal.kms import Wrapping
    from mcp_functions.seal.request_state import RequestStates
    from mcp_functions.settings import Settings
    from mcp_functions.store import SealedTable

STATES = b"ks1/request-state"  # the label of the state of a conversation


class SealFactory:
    """Makes the seals, the states and the tables of one function. All of them share the same data keys."""

    def __init__(
        self,
        settings: Settings,
        service: str,
        wrapping: Sequence[Wrapping] | None = None,
        codec: Codec | None = None,
        *,
        now: Callable[[], float],
    ) -> None:
        """Store what the seals need, without a call to KMS. Data keys are bound to the service, the name of the server.

        `wrapping` and `codec` are those of `serve`: by default an `Envelope` seals, with the KMS keys in the settings.
        """
        self._settings = settings
        self._service = service
        self._wrapping = wrapping
        self._codec = codec
        self._now = now
        self._states = cache(self._make_states)
        self._tables = cache(self._make_table)

    def states(self, lifetime: int, label: bytes = STATES) -> RequestStates:
        """Return the object that seals and opens states. It is made once for the same arguments.

        Each state is valid for `lifetime` seconds, and opens only under the label that sealed it, its kind.
        """
        return self._states(lifetime, label)

    @property
    def table_name(self) -> str:
        """The name of the table; "" if there is none."""
        return self._settings.table

    def table(self, max_age: int) -> SealedTable:
        """Return the table whose items live for at most `max_age` seconds. It is made once for each `max_age`."""
        return self._tables(max_age)

    def seal(self, label: bytes, *, max_age: int, max_chars: int | None = None) -> Seal:
        """Make a seal for one kind of token.

        An author's codec has limits of its own, and knows no labels. So with a codec `max_age` and `max_chars` have no
        effect, and the caller must write the kind of token into the bytes, and check it after opening.

        Args:
            label: the kind of token: a token that was sealed under one label does not open under another.
            max_age: how long a token is valid, in seconds.
            max_chars: the most characters of a token. None: as many as an envelope allows.
        """
        if self._codec:
            from mcp_functions.seal.codec_adapter import CodecAdapter

            return CodecAdapter(self._codec, label)
        from mcp_functions.seal.envelope import Envelope
        from mcp_functions.seal.token_format import MAX_TOKEN_CHARS

        limit = MAX_TOKEN_CHARS if max_chars is None else max_chars
        return Envelope(self._data_keys, label=label, max_age=max_age, max_chars=limit)

    def _make_states(self, lifetime: int, label: bytes) -> RequestStates:
        from mcp_functions.seal.request_state import RequestStates

        seal = self.seal(label, max_age=lifetime, max_chars=self._settings.max_state_chars)
        anonymous = self._settings.auth_mode == "none"  # then a state belongs to no user
        return RequestStates(seal, now=self._now, lifetime_seconds=lifetime, anonymous=anonymous)

    def _make_table(self, max_age: int) -> SealedTable:
        from mcp_functions import store

        rows = store.DynamoDbTable(self._settings.table, store.make_call)
        seal = self.seal(store.LABEL, max_age=max_age)
        blobs = None
        bucket = self._settings.blobs  # for values that are too large for an item
        if bucket:
            blobs = store.BlobStore(store.S3(bucket), self.seal(store.BLOB_LABEL, max_age=max_age), self._service)
        return store.SealedTable(rows, seal, self._service, max_age=max_age, blobs=blobs, now=self._now)

    @cached_property
    def _data_keys(self) -> Keyring:
        from mcp_functions.seal.keyring import Keyring
        from mcp_functions.seal.keys import Scope
        from mcp_functions.seal.kms import KmsKey

        wrapping = self._wrapping or [KmsKey(arn) for arn in self._settings.kms_keys]
        scope = Scope(self._service, self._settings.stage, self._settings.generation)
        return Keyring(wrapping, scope, now=self._now)
