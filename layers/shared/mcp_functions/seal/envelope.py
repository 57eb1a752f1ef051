"""The envelope `ks1.`: bytes sealed into a token that only functions of the same scope can open.

    seal:    data key of the keyring -> encrypt payload -> write token
    unseal:  parse token -> unwrap its data key with KMS, or take it from the keyring's cache -> decrypt payload

`keys` says what a data key and a wrapped key are. Each token holds its data key in wrapped form, so any container with
access to KMS can open it. A label names a kind of payload, for example the state of a conversation, so that a token of
one kind does not open as another.

The specification is envelope.md. `token_format` has the outer layer of a token, and `chunked_encryption` the inner one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from mcp_functions import observability
from mcp_functions.protocol.errors import Misconfigured, StateTooLarge
from mcp_functions.seal import chunked_encryption, token_format
from mcp_functions.seal.keys import with_length
from mcp_functions.seal.token_format import MAX_TOKEN_CHARS

if TYPE_CHECKING:
    from mcp_functions.seal.codec_adapter import CodecAdapter
    from mcp_functions.seal.keyring import Keyring
    from mcp_functions.seal.keys import DataKey

    Seal: TypeAlias = "Envelope | CodecAdapter"  # what seals payloads

MAX_CHARS = 24 * 1024  # the default limit of a token
MAX_AGE = 3600  # the default lifetime of a token, in seconds
STATE_LABEL = b"ks1/request-state"


class Envelope:
    """Seals bytes into a token and opens it again, in one scope and under one label."""

    def __init__(
        self,
        keys: Keyring,
        *,
        label: bytes = STATE_LABEL,
        max_chars: int = MAX_CHARS,
        max_age: float = MAX_AGE,
    ) -> None:
        """Keep the keyring, without a call to KMS.

        Args:
            keys: the keyring of the scope.
            label: the kind of payload; a token opens only under the label that sealed it.
            max_chars: the limit of a token in characters, when sealing and when opening.
            max_age: how long a token may live after it was sealed, in seconds. If the data key of a token is so old
                that every token under it must have ended, the token is refused before KMS is asked.

        Raises:
            Misconfigured: `max_chars` is not from 1 to `MAX_TOKEN_CHARS`.
        """
        if not 0 < max_chars <= MAX_TOKEN_CHARS:
            raise Misconfigured(reason=f"max_chars is {max_chars}: a token may have 1 to {MAX_TOKEN_CHARS} characters")
        self.max_chars = max_chars
        self.max_age = max_age
        self._keys = keys
        # The first part of a token's context (envelope.md §4); `seal` and `unseal` append `about` and the token's head.
        # Two contexts are never the same bytes: each part of the scope has its length before it.
        self._context = label + b"\0" + b"".join(with_length(part.encode()) for part in keys.scope)

    def seal(self, payload: bytes, *, about: bytes = b"") -> str:
        """Seal `payload` into a token.

        Args:
            payload: the bytes to encrypt.
            about: the further context that the token is bound to; `unseal` needs the same (envelope.md §4).

        Raises:
            StateTooLarge: the token would be over the limit.
            TemporarilyUnavailable: no data key is available now.
            Misconfigured: no data key is available until the operator acts.
        """
        key = self._keys.key_to_seal()
        head = token_format.write_head(key.wrapped_key)
        # Counted before the encryption, which takes six times the memory of the payload.
        chars = token_format.count_chars(head, payload)
        if chars > self.max_chars:  # `unseal` would refuse the token
            error = (
                f"the state is {len(payload)} bytes, its token would have {chars} of at most {self.max_chars}"
                " characters: keep references in the state instead of documents, or raise MCP_MAX_STATE_CHARS"
                f" (up to {MAX_TOKEN_CHARS})"
            )
            raise StateTooLarge(error)
        message = chunked_encryption.encrypt(key.plaintext, self._context + about + head, payload)
        return token_format.write(head, message)

    def unseal(self, token: str, *, caller: str = "", about: bytes = b"") -> bytes:
        """Open a token.

        Args:
            token: the token from the client.
            caller: the caller whose budget is charged for a call to KMS (`binding.caller_id`).
            about: the same context as in `seal`.

        Raises:
            InvalidRequestState: another scope sealed the token, or its key is too old.
            TemporarilyUnavailable: KMS is not available, or the caller's budget is empty.
            Misconfigured: KMS fails until the operator acts.
        """
        parsed = token_format.parse(token, self.max_chars)
        context = self._context + about + parsed.head

        def decrypt(key: DataKey) -> bytes:
            return chunked_encryption.decrypt(key.plaintext, context, parsed.message)

        payload = self._keys.open(parsed.wrapped_key, decrypt, caller=caller, max_age=self.max_age)
        observability.current().jti = parsed.id
        return payload
