"""Clones of a snapshot: machines that begin with the same memory, down to the state of every random generator in it.

The clone is made with clone(2) into a new PID namespace: like a restored machine it keeps its process id, and no
at-fork handler runs, so a library that only looks at those two does not notice. That takes root, on Linux; elsewhere
the test is skipped, and `tests/seal/test_envelope.py` still says that salts differ when all randomness repeats.
"""

from __future__ import annotations

import base64
import json
import sys

import pytest

from tests.support.strict_kms import run_python

CLONES = r"""
import base64, ctypes, json, os, platform, sys
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from mcp_functions.seal.envelope import Envelope
from mcp_functions.seal.data_keys import Keyring, Scope

CLONE_NEWPID, SIGCHLD = 0x20000000, 17
SYS_CLONE = {"x86_64": 56, "aarch64": 220}[platform.machine()]
libc = ctypes.CDLL(None, use_errno=True)

class Own:
    id = "own"
    def generate(self, context):
        return b"k" * 32, b"wrapped"
    def unwrap(self, wrapped, context):
        return b"k" * 32

def clone(work):
    '''Run `work` in a clone whose own process id is 1, as its sibling's is; return what it prints.'''
    read, write = os.pipe()
    child = libc.syscall(SYS_CLONE, CLONE_NEWPID | SIGCHLD, 0, 0, 0, 0)
    if child < 0:
        print(json.dumps({"skip": os.strerror(ctypes.get_errno())}))
        sys.stdout.flush()
        os._exit(0)
    if child == 0:
        os.write(write, json.dumps([os.getpid(), *work()]).encode())
        os._exit(0)
    os.close(write)
    libc.waitpid(child, None, 0)
    return json.loads(os.read(read, 65536))

def machine():
    '''The machine that is cloned: process 1 of its own namespace, warm, with every generator in use.'''
    sealing = Envelope(Keyring([Own()], Scope("s", "t", "1")))
    sealing.seal(b"warm up")
    AESGCM.generate_key(256)
    def round(text):
        return lambda: [AESGCM.generate_key(256).hex(), os.urandom(16).hex(), sealing.seal(text * 32)]
    return [clone(round(b"AAAA")), clone(round(b"BBBB")), clone(round(b"AAAA"))]

print(json.dumps(clone(machine)))
"""


@pytest.fixture(scope="module")
def clones() -> list[tuple[int, str, str, bytes]]:
    """Return of each clone: its process id, a key by OpenSSL's generator, bytes of the kernel's, its token's body."""
    if sys.platform != "linux":
        pytest.skip("clone(2) is Linux")
    found = json.loads(run_python(CLONES))
    if isinstance(found, dict):
        pytest.skip(f"clone(2) into a PID namespace: {found['skip']}")
    return [
        (pid, generated, kernel, base64.urlsafe_b64decode(token[4:] + "=="))
        for pid, generated, kernel, token in found[1:]
    ]


HEAD = 12 + len(b"wrapped")
SALT = slice(HEAD, HEAD + 24)
CIPHERTEXT = slice(HEAD + 56, -16)


def test_the_clones_are_clones_to_openssl_so_that_the_test_below_means_something(
    clones: list[tuple[int, str, str, bytes]],
) -> None:
    assert len({pid for pid, *_ in clones}) == 1
    assert len({kernel for _, _, kernel, _ in clones}) == 3
    if len({generated for _, generated, _, _ in clones}) > 1:
        pytest.skip("this OpenSSL notices the clone, so the danger that is tested below is not there")


def test_no_two_clones_ever_use_the_same_salt_or_key_stream(clones: list[tuple[int, str, str, bytes]]) -> None:
    bodies = [body for *_, body in clones]
    assert len({body[SALT] for body in bodies}) == 3
    plain = bytes(a ^ b for a, b in zip(b"AAAA" * 32, b"BBBB" * 32, strict=True))
    streams = bytes(a ^ b for a, b in zip(bodies[0][CIPHERTEXT], bodies[1][CIPHERTEXT], strict=True))
    assert streams != plain
    assert bodies[0][CIPHERTEXT] != bodies[2][CIPHERTEXT]
