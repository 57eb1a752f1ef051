"""Makes the seals and the tables of one function; each is made when it is first used.

A seal encrypts what a client or a table carries for the server (`seal.envelope`). Its data keys come from KMS, so a
function that seals nothing must not make one.
"""

from __future__ import annotations

from functools import cache, cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mcp_functions.seal.data_keys import Keyring
    from mcp_functions.seal.envelope import Codec, Seal
    from mcp_functions.seal.kms import Wrapping
    from mcp_functions.seal.request_state import RequestStates
    from mcp_functions.settings import Settings
    from mcp_functions.store import SealedTable

STATES = b"ks1/request-state"  # the label of a requestState


class SealFactory:
    """Makes the seals of states and the sealed tables of one function. They share their data keys.

        states(lifetime)          seals states that are valid for `lifetime` seconds
        states(lifetime, label)   seals the data of a dialect, which must not open as a requestState
        table(max_age)            stores items for at most `max_age` seconds

    Called again with the same arguments, each returns the same object.
    """

    def __init__(
        self,
        settings: Settings,
        service: str,
        wrapping: Sequence[Wrapping] | None = None,
        codec: Codec | None = None,
        *,
        now: Callable[[], float],
    ) -> None:
        """Store the parts of a seal; nothing is made before it is used.

        Args:
            settings: the settings of the deployment.
            service: the name of the server, to which data keys are bound.
            wrapping: the keys that encrypt data keys, as given to `serve`. Without it, the settings list them.
            codec: the author's own codec, as given to `serve`. Without it, an `Envelope` seals.
            now: the clock, unix seconds.
        """
        self._settings = settings
        self._service = service
        self._wrapping = wrapping
        self._codec = codec
        self._now = now
        self.states = cache(self._make_states)
        self.table = cache(self._make_table)

    @cached_property
    def _keys(self) -> Keyring:
        from mcp_functions.seal.data_keys import Keyring  # noqa: PLC0415 - many functions seal nothing
        from mcp_functions.seal.keys import Scope  # noqa: PLC0415
        from mcp_functions.seal.kms import KmsKey  # noqa: PLC0415

        wrapping = self._wrapping or [KmsKey(arn) for arn in self._settings.kms_keys]
        scope = Scope(self._service, self._settings.stage, self._settings.generation)
        return Keyring(wrapping, scope, now=self._now)

    def _make_states(self, lifetime: int, label: bytes = STATES) -> RequestStates:
        from mcp_functions.seal.request_state import RequestStates  # noqa: PLC0415

        seal = self.seal(label, max_age=lifetime, max_chars=self._settings.max_state_chars)
        anonymous = self._settings.auth_mode == "none"
        return RequestStates(seal, now=self._now, lifetime_seconds=lifetime, anonymous=anonymous)

    def _make_table(self, max_age: int) -> SealedTable:
        from mcp_functions import store  # noqa: PLC0415 - few functions have a table

        seal = self.seal(store.LABEL, max_age=max_age)
        rows = store.DynamoDbTable(self._settings.table, store.make_call)
        blobs = None
        if self._settings.blobs:
            from mcp_functions.store.s3 import S3  # noqa: PLC0415 - few tables have a bucket

            blob_seal = self.seal(store.BLOB_LABEL, max_age=max_age)
            blobs = store.BlobStore(S3(self._settings.blobs), blob_seal, self._service)
        return store.SealedTable(rows, seal, self._service, max_age=max_age, blobs=blobs, now=self._now)

    def seal(self, label: bytes, *, max_age: int, max_chars: int | None = None) -> Seal:
        """Make a seal. A token is valid for `max_age` seconds, and may be as long as an envelope allows by default.

        A token sealed under one label does not open under another. An author's codec ignores the label, so with it the
        caller writes the kind into the bytes.
        """
        if self._codec:
            from mcp_functions.seal.codec_adapter import CodecAdapter  # noqa: PLC0415 - most functions have an envelope

            return CodecAdapter(self._codec, label)
        from mcp_functions.seal.envelope import Envelope  # noqa: PLC0415 - an author's codec needs no cryptography
        from mcp_functions.seal.token_format import MAX_TOKEN_CHARS  # noqa: PLC0415

        limit = MAX_TOKEN_CHARS if max_chars is None else max_chars
        return Envelope(self._keys, label=label, max_age=max_age, max_chars=limit)
