"""Reads the part of a token that everybody can read, without a key (envelope.md §2)."""

from __future__ import annotations

from typing import Any

from mcp_functions.protocol.json_writer import base64url
from mcp_functions.seal.chunked_encryption import SEALED_CHUNK_BYTES, TAG_BYTES, split
from mcp_functions.seal.keys import key_name
from mcp_functions.seal.token_format import KEY_IN_TOKEN, MAX_TOKEN_CHARS, SUITE, parse


def describe(text: str) -> dict[str, Any]:
    """Return the readable part of a token.

    `suite` is the algorithms, `kd` how the data key is stored, `born` when it was made (unix seconds), `kek` which KMS
    key wraps it, `key` its name, and `jti` the token's id. The other members are sizes.

    Raises:
        InvalidRequestState: the text is not a token.
    """
    token = parse(text, MAX_TOKEN_CHARS)
    return {
        "suite": SUITE,
        "kd": KEY_IN_TOKEN,
        "born": token.header.born,
        "kek": token.header.kek_hint.hex(),
        "key": key_name(token.header.wrapped),
        "wrapped_bytes": len(token.header.wrapped),
        "payload_bytes": _payload_bytes(token.message),
        "chars": len(text),
        "jti": base64url(token.id),
    }


def _payload_bytes(message: bytes) -> int:
    """Return the size of the payload of a message."""
    _salt, _commitment, chunks = split(message)
    count = (len(chunks) - 1) // SEALED_CHUNK_BYTES + 1
    return len(chunks) - count * TAG_BYTES
