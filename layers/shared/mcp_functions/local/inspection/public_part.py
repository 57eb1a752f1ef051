"""Reads the part of a token that everybody can read, without a key (envelope.md §2)."""

from __future__ import annotations

from math import ceil
from typing import Any

from mcp_functions.protocol.json_writer import base64url
from mcp_functions.seal.chunked_encryption import SEALED_CHUNK_BYTES, TAG_BYTES, split
from mcp_functions.seal.keys import key_name
from mcp_functions.seal.token_format import MAX_TOKEN_CHARS, parse


def describe(text: str) -> dict[str, Any]:
    """Return the readable part of a token, by the names in envelope.md.

    Raises:
        InvalidRequestState: the text is not a token.
    """
    token = parse(text, MAX_TOKEN_CHARS)
    return {
        "born": token.wrapped_key.born,  # when the data key was made, in unix seconds
        "kek": token.wrapped_key.kek_hint.hex(),  # which KMS key wraps the data key: a hash of its ARN
        "key": key_name(token.wrapped_key.encrypted),  # the name of the data key
        "payload_bytes": _payload_bytes(token.message),  # the size of the sealed part's content
        "chars": len(text),
        "jti": base64url(token.id),  # the token's id
    }


def _payload_bytes(message: bytes) -> int:
    """Return the size of the content that a message encrypts in chunks, each with a tag."""
    _salt, _commitment, chunks = split(message)
    chunk_count = ceil(len(chunks) / SEALED_CHUNK_BYTES)
    return len(chunks) - chunk_count * TAG_BYTES
