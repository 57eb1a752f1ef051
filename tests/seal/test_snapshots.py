"""Snapshots and forks: two environments that begin with the same memory do not share keys, salts or budgets.

Lambda (SnapStart) starts many environments from one snapshot of memory. Keyrings are reset around it, by hooks, and in
a forked child. Even without a hook the salts of two clones differ; the tests of that make real clones with clone(2),
which takes root, on Linux. Elsewhere they are skipped, and `test_randomness.py` tests the salts with repeated entropy.
"""

from __future__ import annotations

import base64
import json
import sys
from typing import TYPE_CHECKING, NamedTuple
from unittest import mock
from weakref import WeakSet

import pytest

from mcp_functions.seal import resets
from mcp_functions.seal.envelope import Envelope
from mcp_functions.seal.keyring import Keyring
from mcp_functions.seal.kms import KmsKey
from tests.support.strict_kms import SCOPE, StrictKms, make_keys, run_python

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.strict_kms import Clock

# The beginning of a script: a fake of Lambda's `snapshot_restore_py`, and a keyring whose KMS counts the keys.
KEYRING_SCRIPT = """
import os, sys, types
sys.modules["snapshot_restore_py"] = runtime = types.ModuleType("snapshot_restore_py")
before_snapshot, after_restore = [], []
runtime.register_before_snapshot, runtime.register_after_restore = before_snapshot.append, after_restore.append
from mcp_functions.seal.keyring import Keyring
from mcp_functions.seal.keys import Scope
hooks_at_import = len(before_snapshot) + len(after_restore)
class CountingKms:
    id, generated = "counting", 0
    def generate(self, context):
        self.generated += 1
        return b"%032d" % self.generated, b"%d" % self.generated
kms = CountingKms()
keyring = Keyring([kms], Scope("s", "t", "1"))
"""


def run_with_keyring(code: str) -> str:
    """Run code in a new process after `KEYRING_SCRIPT`; return its output."""
    return run_python(KEYRING_SCRIPT + code).strip()


def test_importing_the_seal_registers_no_hook() -> None:
    assert run_with_keyring("print(hooks_at_import)") == "0"


def test_many_keyrings_register_one_pair_of_hooks() -> None:
    code = "Keyring([kms], Scope('s', 't', '2')); print(len(before_snapshot), len(after_restore))"
    assert run_with_keyring(code) == "1 1"


@pytest.mark.parametrize("hook", ["before_snapshot", "after_restore"])
def test_a_hook_forgets_the_data_key(hook: str) -> None:
    code = f"keyring.key_to_seal(); {hook}[0](); keyring.key_to_seal(); print(kms.generated)"
    assert run_with_keyring(code) == "2"


def test_a_forked_child_forgets_the_data_key_and_its_parent_keeps_it() -> None:
    code = """
keyring.key_to_seal()
is_child = os.fork() == 0
if not is_child:
    os.wait()
keyring.key_to_seal()
os.write(1, b"child %d " % kms.generated if is_child else b"parent %d" % kms.generated)
os._exit(0)
"""
    assert run_with_keyring(code) == "child 2 parent 1"


@pytest.fixture
def call_hook(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Return the function that Lambda calls around a snapshot. It resets what is made from now on, in this test."""
    monkeypatch.setattr(resets, "_registered", WeakSet())
    return resets._reset_all  # noqa: SLF001


def test_a_reset_forgets_the_client_the_keys_and_the_grace_period(
    kms: StrictKms, arn: str, clock: Clock, call_hook: Callable[[], None]
) -> None:
    make_client = mock.Mock(return_value=kms)
    keys = Keyring([KmsKey(arn, make_client)], SCOPE, now=clock)
    token, grace = Envelope(keys).seal(b"state"), keys._grace  # noqa: SLF001
    call_hook()
    assert Envelope(keys).unseal(token) == b"state"
    assert kms.count("Decrypt") == 1
    assert make_client.call_count == 2
    assert keys._grace != grace  # noqa: SLF001


def test_a_reset_forgets_the_budgets(kms: StrictKms, arn: str, call_hook: Callable[[], None]) -> None:
    keys = make_keys(kms, arn)
    assert keys._budgets.take("alice", 60, now=0)  # noqa: SLF001
    call_hook()
    assert keys._budgets.take("alice", 60, now=0)  # noqa: SLF001


# Clones for which no hook is called. Like a restored machine, a clone in a new PID namespace keeps its process id, and
# no handler of a fork runs. So a library that only looks at these two does not notice that it was cloned.

CLONES = r"""
import base64, ctypes, json, os, platform, sys
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from mcp_functions.seal.envelope import Envelope
from mcp_functions.seal.keyring import Keyring
from mcp_functions.seal.keys import Scope

CLONE_NEWPID, SIGCHLD = 0x20000000, 17
SYS_CLONE = {"x86_64": 56, "aarch64": 220}[platform.machine()]
libc = ctypes.CDLL(None, use_errno=True)

class OneKey:
    '''A KMS that gives every clone the same data key, so that only the salts can differ.'''
    id = "one-key"
    def generate(self, context):
        return b"k" * 32, b"wrapped"
    def unwrap(self, wrapped, context):
        return b"k" * 32

def clone(work):
    '''Run `work` in a clone whose own process id is 1, as that of every clone. Return the id and the result.'''
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
    '''Be the machine of which clones are made: process 1 of its own namespace, with every generator in use.'''
    sealing = Envelope(Keyring([OneKey()], Scope("s", "t", "1")))
    sealing.seal(b"warm up")
    AESGCM.generate_key(256)
    def use_generators(payload):
        return lambda: [AESGCM.generate_key(256).hex(), os.urandom(16).hex(), sealing.seal(payload * 128)]
    return [clone(use_generators(payload)) for payload in (b"A", b"A", b"B")]

print(json.dumps(clone(machine)))
"""


class Clone(NamedTuple):
    """The random values and the token of one clone."""

    process_id: int
    openssl_key: str  # from OpenSSL's generator, which is in the memory of the process
    kernel_bytes: str  # from the kernel's generator
    token: str

    @property
    def salt(self) -> bytes:
        return self._body()[:24]

    @property
    def ciphertext(self) -> bytes:
        return self._body()[56:-16]  # between the salt with the commitment, and the tag

    def _body(self) -> bytes:
        """Return the token without its header."""
        return base64.urlsafe_b64decode(self.token.removeprefix("ks1.") + "==")[12 + len(b"wrapped") :]


@pytest.fixture(scope="module")
def clones() -> list[Clone]:
    """Make three clones of one machine. Two seal 128 times A, and the third one B."""
    if sys.platform != "linux":
        pytest.skip("clone(2) is Linux")
    output = json.loads(run_python(CLONES))
    if isinstance(output, dict):
        pytest.skip(f"clone(2) into a PID namespace: {output['skip']}")
    _pid_of_the_machine, *rows = output
    return [Clone(*row) for row in rows]


def test_openssl_returns_the_same_random_bytes_in_clones(clones: list[Clone]) -> None:
    assert len({clone.process_id for clone in clones}) == 1
    if len({clone.openssl_key for clone in clones}) > 1:
        pytest.skip("this OpenSSL notices the clone, so it would not repeat itself")


def test_the_kernel_gives_each_clone_other_bytes(clones: list[Clone]) -> None:
    assert len({clone.kernel_bytes for clone in clones}) == 3


def test_no_two_clones_use_the_same_salt(clones: list[Clone]) -> None:
    assert len({clone.salt for clone in clones}) == 3


def test_no_two_clones_encrypt_with_the_same_key_stream(clones: list[Clone]) -> None:
    _, second, third = clones
    # If the key streams were equal, they would cancel out: A ^ stream ^ B ^ stream = A ^ B.
    assert xor(second.ciphertext, third.ciphertext) != xor(b"A" * 128, b"B" * 128)


def xor(one: bytes, other: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(one, other, strict=True))
