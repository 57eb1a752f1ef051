"""Two other readers open the tokens of the package, and refuse the same ones.

The first one is written here from the rules of envelope.md, and reads the published vectors. The other one is
Cobblestone of the `cryptography` package, which implements the same encryption. A vector is a token, the key and the
clock of its reader, and the payload or the reason for a refusal.
"""

from __future__ import annotations

import base64
import hashlib
import os
import struct
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from cryptography.cobblestone import Cobblestone256Decryptor, Cobblestone256Encryptor
from cryptography.exceptions import InvalidTag
from hypothesis import given, settings
from hypothesis import strategies as st

import mcp_functions
from mcp_functions.protocol.errors import InvalidRequestState
from mcp_functions.seal import chunked_encryption
from tests.seal.refusals import assert_refused
from tests.support.envelope_vectors import VECTORS
from tests.support.reasons import CLAIM_REASONS, TOKEN_REASONS

if TYPE_CHECKING:
    from tests.support.envelope_vectors import Vector

ACCEPTED = [name for name, vector in VECTORS.items() if vector.refusal is None]
REFUSED = [name for name, vector in VECTORS.items() if vector.refusal]
WITH_ENTROPY = [name for name, vector in VECTORS.items() if "entropy" in vector]  # so that the token can be made again
CHUNK_EDGES = [0, 1, 16383, 16384, 16385, 32767, 32768, 40000]  # sizes around the chunks of 16 KiB
KEY = b"\x07" * 32
CONTEXT = b"ks1/request-state\0any context"


@pytest.mark.parametrize("name", ACCEPTED)
def test_an_accepted_vector_opens_to_its_payload(name: str) -> None:
    vector = VECTORS[name]
    assert vector.envelope().unseal(vector["token"], about=vector.about) == vector.payload


@pytest.mark.parametrize("name", REFUSED)
def test_a_refused_vector_is_refused_for_its_reason(name: str) -> None:
    vector = VECTORS[name]
    with assert_refused(str(vector.refusal)):
        vector.envelope().unseal(vector["token"], about=vector.about)


@pytest.mark.parametrize("name", WITH_ENTROPY)
def test_sealing_with_the_entropy_of_a_vector_makes_its_token(name: str) -> None:
    vector = VECTORS[name]
    assert vector.envelope(at="born").seal(vector.payload, about=vector.about) == vector["token"]


def test_a_vector_exists_for_every_reason() -> None:
    needs_two_keys = {"kek_retired"}  # a vector has one key; tests/seal/test_kms_failures.py tests this reason
    assert {VECTORS[name].refusal for name in REFUSED} | needs_two_keys == TOKEN_REASONS


@pytest.mark.parametrize("reason", sorted(TOKEN_REASONS | CLAIM_REASONS))
def test_the_specification_names_every_reason(reason: str) -> None:
    specification = Path(mcp_functions.__file__).parent / "seal" / "envelope.md"
    assert f"`{reason}`" in specification.read_text(encoding="utf-8")


class RefusedError(Exception):
    """A token is refused for one of these reasons."""

    def __init__(self, reasons: list[str]) -> None:
        self.reasons = reasons


def require(condition: object, reason: str) -> None:
    if not condition:
        raise RefusedError([reason])


def open_by_the_rules(vector: Vector) -> bytes:
    """Open a token by the rules of envelope.md §7, in their order, with nothing of the package."""
    token, now = vector["token"], float(vector["now"])
    require(token.startswith("ks1."), "prefix")
    require(len(token) <= int(vector["max-chars"]), "length")
    text = token.removeprefix("ks1.")
    body = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    require(base64.urlsafe_b64encode(body).decode().rstrip("=") == text, "encoding")
    require(len(body) >= 12, "truncated")
    suite, kind, born, kek, wrapped_bytes = struct.unpack(">BBI4sH", body[:12])
    require(suite == 1, "suite")
    require(kind == 1, "key_kind")
    require(1 <= wrapped_bytes <= 1024, "truncated")
    require(len(body) >= 12 + wrapped_bytes + 72, "truncated")
    require(kek == hashlib.sha256(b"ks1/kek\0" + vector["key-id"].encode()).digest()[:4], "kek_unknown")
    require(born <= now + 60, "born_future")
    last_use = (born // 900 + 2) * 900
    require(now <= last_use + int(vector["max-age"]) + 60, "born_past")
    head, message = body[: 12 + wrapped_bytes], body[12 + wrapped_bytes :]
    require(head[12:].hex() == vector["wrapped"], "wrapped_key")
    require(born == int(vector["born"]), "wrapped_key")
    return decrypt_with_cobblestone(vector, head, message)


def decrypt_with_cobblestone(vector: Vector, head: bytes, message: bytes) -> bytes:
    """Decrypt the message in the context of envelope.md §4."""
    scope = [vector[name].encode() for name in ("service", "stage", "generation")]
    scope_with_lengths = b"".join(struct.pack(">H", len(part)) + part for part in scope)
    context = vector["label"].encode() + b"\0" + scope_with_lengths + vector.about + head
    reader = Cobblestone256Decryptor(bytes.fromhex(vector["data-key"]), context)
    try:
        return reader.update(message) + reader.finalize()
    except (InvalidTag, ValueError):  # Cobblestone does not tell the two reasons apart
        raise RefusedError(["commitment", "tag"]) from None


@pytest.mark.parametrize("name", ACCEPTED)
def test_a_reader_written_from_the_specification_accepts_the_same_vectors(name: str) -> None:
    assert open_by_the_rules(VECTORS[name]) == VECTORS[name].payload


@pytest.mark.parametrize("name", REFUSED)
def test_a_reader_written_from_the_specification_refuses_the_same_vectors(name: str) -> None:
    with pytest.raises(RefusedError) as error:
        open_by_the_rules(VECTORS[name])
    assert VECTORS[name].refusal in error.value.reasons


@pytest.mark.parametrize("size", CHUNK_EDGES)
def test_cobblestone_decrypts_what_we_encrypt(size: int) -> None:
    payload = os.urandom(size)
    message = chunked_encryption.encrypt(KEY, CONTEXT, payload)
    reader = Cobblestone256Decryptor(KEY, CONTEXT)
    assert reader.update(message) + reader.finalize() == payload


@pytest.mark.parametrize("size", CHUNK_EDGES)
def test_we_decrypt_what_cobblestone_encrypts(size: int) -> None:
    payload = os.urandom(size)
    writer = Cobblestone256Encryptor(KEY, CONTEXT)
    message = writer.update(payload) + writer.finalize()
    assert chunked_encryption.decrypt(KEY, CONTEXT, message) == payload


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 70_000), st.binary(max_size=40), st.data())
def test_cobblestone_and_we_refuse_the_same_damage(size: int, context: bytes, data: st.DataObject) -> None:
    message = bytearray(chunked_encryption.encrypt(KEY, context, b"p" * size))
    place = data.draw(st.integers(0, len(message) - 1))
    message[place] ^= data.draw(st.integers(1, 255))
    with pytest.raises(InvalidRequestState):
        chunked_encryption.decrypt(KEY, context, bytes(message))
    reader = Cobblestone256Decryptor(KEY, context)
    with pytest.raises((InvalidTag, ValueError)):
        reader.update(bytes(message)) + reader.finalize()
