"""Encryption of a message under a data key: C2SP chunked-encryption, instance Cobblestone-256 (envelope.md §4).

    message    = salt (24 bytes) || commitment (32 bytes) || ciphertext
    ciphertext = chunk 0 || chunk 1 || …
    chunk      = AES-256-GCM of up to 16 KiB, with a tag of 16 bytes

The plaintext of the last chunk is shorter than 16 KiB, and may be empty. If all chunks are full, the end of the message
is missing.

`derive` makes a key, a first nonce and a commitment for each message, from the data key, the salt and the context. The
commitment binds the message to one data key. AES-GCM alone does not: an attacker can make a message that two keys
decrypt.
"""

from __future__ import annotations

import hmac
import os
from typing import TYPE_CHECKING

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA512
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

from mcp_functions.protocol.errors import InvalidRequestState

if TYPE_CHECKING:
    from collections.abc import Iterator

SALT_BYTES = 24
COMMITMENT_BYTES = 32
CIPHER_KEY_BYTES = 32  # a key of AES-256
NONCE_BYTES = 12
TAG_BYTES = 16
CHUNK_BYTES = 16 * 1024  # the plaintext of one chunk
SEALED_CHUNK_BYTES = CHUNK_BYTES + TAG_BYTES
MIN_MESSAGE_BYTES = SALT_BYTES + COMMITMENT_BYTES + TAG_BYTES  # `token_format` refuses less
ENTROPY_BYTES = 32


def encrypt(data_key: bytes, context: bytes, payload: bytes) -> bytes:
    """Encrypt a payload into a message."""
    # envelope.md §4.2: "the kernel's generator is reseeded in every clone of a snapshot", unlike those of libraries
    salt = hedged_salt(data_key, context, payload, entropy=os.urandom(ENTROPY_BYTES))
    key, first_nonce, commitment = derive(data_key, salt, context)
    cipher = AESGCM(key)
    parts = [salt, commitment]
    for number, piece in enumerate(_cut(payload, CHUNK_BYTES)):
        parts.append(cipher.encrypt(_nonce(first_nonce, number), piece, None))
    return b"".join(parts)


def decrypt(data_key: bytes, context: bytes, message: bytes) -> bytes:
    """Decrypt the payload of a message; InvalidRequestState if the key or context differs, or it was changed or cut."""
    salt, expected_commitment, ciphertext = split(message)
    key, first_nonce, commitment = derive(data_key, salt, context)
    # envelope.md §4.1: "A reader compares it, in constant time, before it decrypts."
    if not hmac.compare_digest(commitment, expected_commitment):
        raise InvalidRequestState(reason="commitment")
    if len(ciphertext) % SEALED_CHUNK_BYTES == 0:  # every chunk is full, so the last one is missing
        raise InvalidRequestState(reason="tag")
    cipher = AESGCM(key)
    pieces = []
    try:
        for number, chunk in enumerate(_cut(ciphertext, SEALED_CHUNK_BYTES)):
            pieces.append(cipher.decrypt(_nonce(first_nonce, number), chunk, None))
    except (InvalidTag, ValueError):  # ValueError: the last chunk is shorter than a tag
        raise InvalidRequestState(reason="tag") from None
    return b"".join(pieces)


def split(message: bytes) -> tuple[bytes, bytes, bytes]:
    """Split a message into the salt, the commitment and the ciphertext, which is all chunks."""
    start = SALT_BYTES + COMMITMENT_BYTES
    return message[:SALT_BYTES], message[SALT_BYTES:start], message[start:]


def message_size(payload_size: int) -> int:
    """Return the size in bytes of the message that holds a payload of `payload_size` bytes."""
    chunks = payload_size // CHUNK_BYTES + 1  # the last chunk is never full
    return SALT_BYTES + COMMITMENT_BYTES + payload_size + chunks * TAG_BYTES


def hedged_salt(data_key: bytes, context: bytes, payload: bytes, entropy: bytes) -> bytes:
    """Return a salt that depends on the payload, too, as a hedge against bad randomness (envelope.md §4.2).

    Lambda may start many containers from one snapshot of memory, and these may get the same `entropy`. Even then, two
    different payloads have two different salts, and so two keys.
    """
    hedge_key = HKDFExpand(SHA512(), length=32, info=b"ks1/hedge\0").derive(data_key)
    message = entropy + len(context).to_bytes(4, "big") + context + payload
    return hmac.digest(hedge_key, message, "sha512")[:SALT_BYTES]


def derive(data_key: bytes, salt: bytes, context: bytes) -> tuple[bytes, bytes, bytes]:
    """Derive the key, the first nonce and the commitment of one message (envelope.md §4.1).

    This is HKDF-Expand without HKDF-Extract: a data key is random already (RFC 5869 §3.3).
    """
    info = b"c2sp.org/chunked-encryption@v1+AEAD_AES_256_GCM\0" + salt + context
    key_and_nonce = CIPHER_KEY_BYTES + NONCE_BYTES
    output = HKDFExpand(SHA512(), key_and_nonce + COMMITMENT_BYTES, info).derive(data_key)
    return output[:CIPHER_KEY_BYTES], output[CIPHER_KEY_BYTES:key_and_nonce], output[key_and_nonce:]


def _cut(content: bytes, size: int) -> Iterator[bytes]:
    """Cut bytes into pieces of `size` bytes and a shorter last piece, which may be empty."""
    full_pieces = len(content) // size
    for number in range(full_pieces + 1):
        yield content[number * size : (number + 1) * size]


def _nonce(first_nonce: bytes, number: int) -> bytes:
    """Return the nonce of a chunk: "`nonce` XOR `i`" (envelope.md §4.3).

    AES-GCM must not use a nonce twice under one key.
    """
    return (int.from_bytes(first_nonce, "big") ^ number).to_bytes(NONCE_BYTES, "big")
