"""Encryption of a message under a data key: C2SP chunked-encryption, instance Cobblestone-256 (envelope.md §4).

    message = salt (24 bytes) || commitment (32) || chunk 0 || chunk 1 || …
    chunk   = AES-256-GCM of up to 16 KiB, with a tag of 16 bytes

The last chunk is shorter than 16 KiB, and may be empty. If all chunks are full, the end of the message is missing.

`derive` makes a key, nonces and a commitment for each message, from the data key, the salt and the context. The
commitment binds the message to one data key. AES-GCM alone does not: a message can be made that two keys decrypt.
"""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA512
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

from mcp_functions.protocol.errors import InvalidRequestState
from mcp_functions.seal.keys import TokenReason

if TYPE_CHECKING:
    from collections.abc import Iterator

SALT_BYTES = 24
COMMITMENT_BYTES = 32
TAG_BYTES = 16
CHUNK_BYTES = 16 * 1024  # the plaintext of one chunk
SEALED_CHUNK_BYTES = CHUNK_BYTES + TAG_BYTES
MIN_MESSAGE_BYTES = SALT_BYTES + COMMITMENT_BYTES + TAG_BYTES
ENTROPY_BYTES = 32
INFO = b"c2sp.org/chunked-encryption@v1+AEAD_AES_256_GCM\0"


def encrypt(data_key: bytes, context: bytes, payload: bytes, entropy: bytes) -> bytes:
    """Encrypt a payload into a message. `entropy` is 32 random bytes."""
    salt = hedged_salt(data_key, context, payload, entropy)
    key, base_nonce, commitment = derive(data_key, salt, context)
    gcm = AESGCM(key)
    chunks = [gcm.encrypt(nonce, piece, None) for nonce, piece in _cut(payload, CHUNK_BYTES, base_nonce)]
    return b"".join((salt, commitment, *chunks))


def decrypt(data_key: bytes, context: bytes, message: bytes) -> bytes:
    """Decrypt the payload of a message.

    Raises:
        InvalidRequestState: the data key or the context differs, or the message was changed or cut.
    """
    salt, expected, chunks = split(message)
    key, base_nonce, commitment = derive(data_key, salt, context)
    # "The commitment is compared, in constant time, before anything is decrypted."
    if not hmac.compare_digest(commitment, expected):
        raise InvalidRequestState(TokenReason.COMMITMENT)
    if len(chunks) % SEALED_CHUNK_BYTES == 0:  # every chunk is full, so the last one is missing
        raise InvalidRequestState(TokenReason.TAG)
    gcm = AESGCM(key)
    pieces = _cut(chunks, SEALED_CHUNK_BYTES, base_nonce)
    try:
        return b"".join(gcm.decrypt(nonce, piece, None) for nonce, piece in pieces)
    except (InvalidTag, ValueError):
        raise InvalidRequestState(TokenReason.TAG) from None


def split(message: bytes) -> tuple[bytes, bytes, bytes]:
    """Split a message into salt, commitment and chunks."""
    start = SALT_BYTES + COMMITMENT_BYTES
    return message[:SALT_BYTES], message[SALT_BYTES:start], message[start:]


def message_size(payload_size: int) -> int:
    """Return the size in bytes of the message that holds a payload of `payload_size` bytes."""
    chunks = payload_size // CHUNK_BYTES + 1  # the last chunk is never full
    return SALT_BYTES + COMMITMENT_BYTES + payload_size + chunks * TAG_BYTES


def hedged_salt(data_key: bytes, context: bytes, payload: bytes, entropy: bytes) -> bytes:
    """Return a salt that depends on the payload, too, and not only on `entropy` (§4.2).

    Clones of a snapshot may get the same `entropy`. Even then, two different payloads have two different keys.
    """
    key = HKDFExpand(SHA512(), 32, b"ks1/hedge\0").derive(data_key)
    code = hmac.new(key, entropy + len(context).to_bytes(4, "big") + context, "sha512")
    code.update(payload)
    return code.digest()[:SALT_BYTES]


def derive(data_key: bytes, salt: bytes, context: bytes) -> tuple[bytes, bytes, bytes]:
    """Derive the key, the first nonce and the commitment of one message, by HKDF-Expand (RFC 5869 §2.3)."""
    derived = HKDFExpand(SHA512(), 76, INFO + salt + context).derive(data_key)
    return derived[:32], derived[32:44], derived[44:]


def _cut(content: bytes, size: int, base_nonce: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Cut bytes into pieces of `size`, each with its nonce; the last piece is shorter."""
    first = int.from_bytes(base_nonce, "big")
    for number, start in enumerate(range(0, len(content) + 1, size)):
        yield (first ^ number).to_bytes(12, "big"), content[start : start + size]
