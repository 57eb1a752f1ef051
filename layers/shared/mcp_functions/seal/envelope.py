"""The envelope `ks1.`: bytes sealed into a token that only functions of the same scope can open (see envelope.md).

AES-256-GCM in the chunks of C2SP's chunked-encryption (Cobblestone-256), under a key derived for each token from a data
key that KMS wrapped; the token carries the wrapped key. The salt is hedged: it depends on `os.urandom` and on the
message. So clones of a snapshot with the same randomness never use one key for different messages.
"""

from __future__ import annotations

import binascii
import hmac
import logging
import os
import struct
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA512
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

from mcp_functions import observability
from mcp_functions.protocol.errors import InvalidRequestState, Misconfigured, StateTooLarge
from mcp_functions.protocol.json_writer import base64url
from mcp_functions.seal.data_keys import MAX_WRAPPED, Header, TokenReason, key_name
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_functions.seal.data_keys import DataKey, Keyring

PREFIX = "ks1."
SUITE = 0x01
INLINE = 0x01  # the key kind: the token holds the wrapped data key; 0x02 is reserved and refused
MAX_CHARS = 24 * 1024
STATE_LABEL = b"ks1/request-state"
CEILING = 4 * 1024 * 1024
MAX_AGE = 3600

# The fixed part of a token: suite, key kind, birth and wrapping key of the data key, length of the wrapped data key.
_FIXED = struct.Struct(">BBI4sH")
_SALT, _COMMITMENT, _TAG, _CHUNK = 24, 32, 16, 16 * 1024
_JTI = 16  # bytes of the commitment, which name a token
_INFO = b"c2sp.org/chunked-encryption@v1+AEAD_AES_256_GCM\0"
_TO_BASE64 = bytes.maketrans(b"-_+/=", b"+/\0\0\0")  # invalid characters become NUL, which the decoder refuses
_log = logging.getLogger(__name__)


class Codec(Protocol):
    """An author's replacement of `Envelope`. The toolkit still checks the claims in the payload."""

    def seal(self, payload: bytes, /) -> str:
        """Return a text that hides and authenticates `payload`."""

    def unseal(self, token: str, /) -> bytes:
        """Return the payload, or raise `InvalidRequestState`; any other exception counts as that."""


class _Parts(NamedTuple):
    """The parts of a token, not authenticated yet. `head` is the clear part: the fixed part and the wrapped key."""

    head: bytes
    header: Header
    salt: bytes
    commitment: bytes
    ciphertext: bytes


class Envelope:
    """Seals bytes into a token and opens it again, in one scope and under one label."""

    knows_callers: ClassVar[bool] = True

    def __init__(
        self,
        keys: Keyring,
        *,
        label: bytes = STATE_LABEL,
        max_chars: int = MAX_CHARS,
        max_age: float = MAX_AGE,
        rand: Callable[[int], bytes] = os.urandom,
    ) -> None:
        """Take the keyring, without a call to KMS.

        Args:
            keys: the keyring of the scope.
            label: the kind of payload; a token opens only under the label that sealed it.
            max_chars: limit of a token, in characters, when sealing and when opening.
            max_age: how long a token may live, in seconds; it bounds the age of the data keys.
            rand: returns so many random bytes. Clones of a snapshot need `os.urandom`: others repeat.

        Raises:
            Misconfigured: `max_chars` is not within 1 and the ceiling of 4 MiB.

        """
        if not 0 < max_chars <= CEILING:
            raise Misconfigured(reason=f"max_chars is {max_chars}: a token may have 1 to {CEILING} characters")
        self.max_chars, self.max_age = max_chars, max_age
        self._keys, self._rand = keys, rand
        self._warned = label != STATE_LABEL  # the size warning is for states: clients carry nothing else
        self._context = label + b"\0" + b"".join(_lp16(part.encode()) for part in keys.scope)

    def seal(self, payload: bytes, *, about: bytes = b"") -> str:
        """Seal `payload` into a token.

        Args:
            payload: to encrypt.
            about: further context that the token is bound to; `unseal` needs the same (§4).

        Raises:
            StateTooLarge: the token would be over the limit.
            TemporarilyUnavailable: no data key is available now.
            Misconfigured: no data key is available until the operator acts.

        """
        key = self._keys.key_to_seal()
        head = _head(key)
        self._check_size(len(payload), len(head))
        sealed = encrypt(key.plaintext, self._context + about + head, payload, self._rand(32))
        return PREFIX + base64url(head + sealed)

    def unseal(self, token: str, *, caller: str = "", about: bytes = b"") -> bytes:
        """Open a token.

        Args:
            token: that a client sent.
            caller: who is charged if KMS is asked (`claims.caller_id`).
            about: the same as in `seal`.

        Raises:
            InvalidRequestState: another scope sealed the token, or its key is too old.
            TemporarilyUnavailable: KMS is not available, or the caller's budget is empty.
            Misconfigured: KMS fails until the operator acts.

        """
        parts = _parse(token, self.max_chars)
        key = self._keys.key_to_open(parts.header, caller, max_age=self.max_age)
        context = self._context + about + parts.head
        try:
            payload = decrypt(key.plaintext, context, parts.salt, parts.commitment, parts.ciphertext)
        except InvalidRequestState:
            self._keys.reject(key, caller)
            raise
        self._keys.confirm(key)
        observability.current().jti = parts.commitment[:_JTI]
        return payload

    def _check_size(self, payload: int, head: int) -> None:
        """Check the size: "a server never mints a token that it would not accept"."""
        body = head + _SALT + _COMMITMENT + payload + _TAG * (payload // _CHUNK + 1)
        chars = len(PREFIX) + (body * 4 + 2) // 3
        if chars > self.max_chars:
            message = (
                f"the state is {payload} bytes, its token would have {chars} of at most {self.max_chars} characters:"
                f" keep references in the state instead of documents, or raise MCP_MAX_STATE_CHARS (up to {CEILING})"
            )
            raise StateTooLarge(message)
        if chars > self.max_chars // 4 and not self._warned:
            self._warned = True
            warning = "a token has %d characters, the cap is %d: clients carry it twice a round"
            _log.warning(warning, chars, self.max_chars)


def describe(token: str) -> dict[str, Any]:
    """Return the clear part of a token: suite, key kind, key, sizes. Nothing of it is authenticated here.

    Raises:
        InvalidRequestState: the text is not a token.

    """
    parts = _parse(token, CEILING)
    chunks = (len(parts.ciphertext) - 1) // (_CHUNK + _TAG) + 1
    return {
        "suite": SUITE,
        "kd": INLINE,
        "born": parts.header.born,
        "kek": parts.header.kek.hex(),
        "key": key_name(parts.header.wrapped),
        "wrapped_bytes": len(parts.header.wrapped),
        "payload_bytes": len(parts.ciphertext) - chunks * _TAG,
        "chars": len(token),
        "jti": base64url(parts.commitment[:_JTI]),
    }


def encrypt(data_key: bytes, context: bytes, payload: bytes, entropy: bytes) -> bytes:
    """Return salt, commitment and chunks (§4). `entropy` is 32 random bytes; the message hedges them."""
    salt = hedged_salt(data_key, context, payload, entropy)
    key, nonce, commitment = derive(data_key, salt, context)
    gcm = AESGCM(key)
    # "a chunk shorter than 16 KiB ends the message": one of zero bytes, if need be
    chunks = [
        gcm.encrypt(_nonce(nonce, number), payload[start : start + _CHUNK], None)
        for number, start in enumerate(range(0, len(payload) + 1, _CHUNK))
    ]
    return b"".join((salt, commitment, *chunks))


def decrypt(data_key: bytes, context: bytes, salt: bytes, commitment: bytes, ciphertext: bytes) -> bytes:
    """Return the payload (§4).

    Raises:
        InvalidRequestState: the key or the context differs, or a bit has changed.

    """
    key, nonce, expected = derive(data_key, salt, context)
    # "The commitment is compared, in constant time, before anything is decrypted."
    if not hmac.compare_digest(commitment, expected):
        raise InvalidRequestState(TokenReason.COMMITMENT)
    gcm, step = AESGCM(key), _CHUNK + _TAG
    try:
        # The last chunk is shorter than 16 KiB. Without it, the loop decrypts an empty chunk, which has no valid tag.
        return b"".join(
            gcm.decrypt(_nonce(nonce, number), ciphertext[start : start + step], None)
            for number, start in enumerate(range(0, len(ciphertext) + 1, step))
        )
    except (InvalidTag, ValueError):
        raise InvalidRequestState(TokenReason.TAG) from None


def derive(data_key: bytes, salt: bytes, context: bytes) -> tuple[bytes, bytes, bytes]:
    """Return a token's key (32 bytes), base nonce (12) and commitment (32), by HKDF-Expand (RFC 5869 §2.3)."""
    derived = HKDFExpand(SHA512(), 76, _INFO + salt + context).derive(data_key)
    return derived[:32], derived[32:44], derived[44:]


def hedged_salt(data_key: bytes, context: bytes, payload: bytes, entropy: bytes) -> bytes:
    """Return 24 bytes, which differ for different messages even if `entropy` repeats (§4.2)."""
    key = HKDFExpand(SHA512(), 32, b"ks1/hedge\0").derive(data_key)
    return hmac.digest(key, b"".join((entropy, len(context).to_bytes(4, "big"), context, payload)), "sha512")[:_SALT]


def _head(key: DataKey) -> bytes:
    """Return the clear part of a token, with the wrapped data key."""
    return _FIXED.pack(SUITE, INLINE, key.born, key.kek, len(key.wrapped)) + key.wrapped


def _parse(token: str, max_chars: int) -> _Parts:
    """Split a token, in the order of §7: a refusal here costs neither KMS nor a key derivation."""
    if not isinstance(token, str) or not token.startswith(PREFIX):
        raise InvalidRequestState(TokenReason.PREFIX)
    if len(token) > max_chars:
        raise InvalidRequestState(TokenReason.LENGTH)
    body = _decode(token[len(PREFIX) :])
    if len(body) < _FIXED.size:
        raise InvalidRequestState(TokenReason.TRUNCATED)
    suite, kind, born, kek, wrapped_size = _FIXED.unpack_from(body)
    if suite != SUITE:
        raise InvalidRequestState(TokenReason.SUITE)
    if kind != INLINE:
        raise InvalidRequestState(TokenReason.KEY_KIND)
    at = _FIXED.size + wrapped_size
    if not 1 <= wrapped_size <= MAX_WRAPPED or len(body) < at + _SALT + _COMMITMENT + _TAG:
        raise InvalidRequestState(TokenReason.TRUNCATED)
    header = Header(born, kek, body[_FIXED.size : at])
    salt, commitment = body[at : at + _SALT], body[at + _SALT : at + _SALT + _COMMITMENT]
    return _Parts(body[:at], header, salt, commitment, body[at + _SALT + _COMMITMENT :])


def _decode(text: str) -> bytes:
    """Decode base64url. "Only the canonical encoding is accepted": a token has one spelling."""
    try:
        encoded = text.encode("ascii").translate(_TO_BASE64) + b"=" * (-len(text) % 4)
        body = binascii.a2b_base64(encoded, strict_mode=True)
    except (ValueError, binascii.Error):
        raise InvalidRequestState(TokenReason.ENCODING) from None
    # The decoder ignores spare bits of the last character, so the last bytes are encoded again and compared.
    last = len(body) % 3
    if last and not encoded.endswith(binascii.b2a_base64(body[-last:], newline=False)):
        raise InvalidRequestState(TokenReason.ENCODING)
    return body


def _nonce(base: bytes, number: int) -> bytes:
    return (int.from_bytes(base, "big") ^ number).to_bytes(12, "big")


def _lp16(part: bytes) -> bytes:
    return struct.pack(">H", len(part)) + part
