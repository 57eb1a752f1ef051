"""The salt of each token stays unique even if the random generator repeats itself.

Two machines that start from one snapshot of memory have the same generator, and may draw the same random bytes. So the
salt also depends on the key, the context and the payload; and the package takes its randomness from the kernel.
"""

from __future__ import annotations

import ast
import os
from pathlib import Path
from unittest import mock

import pytest

import mcp_functions
from mcp_functions.seal.chunked_encryption import hedged_salt
from mcp_functions.seal.envelope import Envelope
from tests.support.strict_kms import StrictKms, make_keys

PACKAGE = Path(mcp_functions.__file__).parent
KEY = b"\x07" * 32
REPEATED_ENTROPY = b"\0" * 32
# Generators in the memory of the process, which a snapshot copies: `random`, and those of OpenSSL.
COPIED_GENERATORS = {
    "random",
    "generate_key",
    "Cobblestone128Encryptor",
    "Cobblestone256Encryptor",
    "RAND_bytes",
    "RAND_add",
    "RAND_status",
}


def test_different_payloads_have_different_salts_under_the_same_entropy() -> None:
    assert len({hedged_salt(KEY, b"context", b"%d" % number, REPEATED_ENTROPY) for number in range(100)}) == 100


def test_key_context_and_their_borders_change_the_salt() -> None:
    salts = {
        hedged_salt(KEY, b"context", b"0", REPEATED_ENTROPY),
        hedged_salt(KEY, b"contextx", b"0", REPEATED_ENTROPY),
        hedged_salt(KEY, b"context0", b"", REPEATED_ENTROPY),
        hedged_salt(b"\x08" * 32, b"context", b"0", REPEATED_ENTROPY),
    }
    assert len(salts) == 4


def test_different_entropy_gives_different_salts_to_the_same_payload() -> None:
    assert len({hedged_salt(KEY, b"context", b"same", os.urandom(32)) for _ in range(100)}) == 100


def test_every_seal_draws_32_bytes_of_entropy() -> None:
    drawn: list[int] = []

    def rand(size: int) -> bytes:
        drawn.append(size)
        return b"\0" * size

    kms = StrictKms()
    envelope = Envelope(make_keys(kms, kms.create_key()))
    envelope.seal(b"warm up")
    with mock.patch("os.urandom", rand):
        envelope.seal(b"a")
        envelope.seal(b"b")
    assert drawn == [32, 32]


def names_used(source: str) -> set[str]:
    """Return the modules, imported names and attributes in a module's source."""
    names = set()
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Attribute(attr="random"):
                pass  # a field of that name; the module itself must be imported
            case ast.alias(name=name) | ast.Attribute(attr=name) | ast.ImportFrom(module=str(name)):
                names.add(name)
    return names


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_module_uses_a_generator_that_a_snapshot_copies(path: Path) -> None:
    assert not names_used(path.read_text(encoding="utf-8")) & COPIED_GENERATORS


@pytest.mark.parametrize(
    "line",
    ["import os, random as r", "from random import choice", "AESGCM.generate_key(256)", "ssl.RAND_bytes(8)"],
)
def test_the_check_above_finds_a_copied_generator(line: str) -> None:
    assert names_used(line) & COPIED_GENERATORS
