"""A KMS for tests that refuses the requests that AWS refuses and moto accepts.

It has key states, key policies, an EncryptionContext that must match exactly, validation limits and multi-Region keys,
and it records every call. A test decides about failures: `kms.weather` returns the exception of a call, or None.

    blob: 01 02 | length of the key id | key id | number of the key material | nonce | encrypted data key | padding

A blob is as long as AWS's. Nothing authenticates its padding, because AWS does not promise that for its own blobs.
"""

# ruff: noqa: N803 - the arguments of a boto3 client are named so

from __future__ import annotations

import hashlib
import os
import struct
import subprocess
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from botocore.exceptions import ClientError
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from mcp_functions.seal.envelope import Envelope
from mcp_functions.seal.keyring import Keyring
from mcp_functions.seal.keys import Scope
from mcp_functions.seal.kms import KmsKey

if TYPE_CHECKING:
    from collections.abc import Callable

BLOB_BYTES = 184
BLOB_MAGIC = b"\x01\x02"
NONCE_BYTES = 12
ENCRYPTED_KEY_BYTES = 48  # a data key of 32 bytes, and the tag of AES-GCM
ACCOUNT = "111122223333"
START = 1_767_225_600.0  # 2026-01-01T00:00:00Z, the start of an epoch
SCOPE = Scope("demo/update_work_item", "prod", "1")

_HTTP_STATUS = {
    "KMSInternalException": 500,
    "DependencyTimeoutException": 503,
    "KeyUnavailableException": 500,
    "ServiceUnavailable": 503,
}


def refuse(code: str, operation: str = "Decrypt") -> NoReturn:
    raise kms_error(code, operation)


class Clock:
    """A clock that only a test advances; it returns unix seconds."""

    def __init__(self, at: float = START) -> None:
        self.at = at

    def __call__(self) -> float:
        return self.at

    def advance(self, seconds: float) -> None:
        self.at += seconds


class Repeatable:
    """Random bytes that are the same in every run of a test."""

    def __init__(self) -> None:
        self.drawn = 0

    def __call__(self, size: int) -> bytes:
        self.drawn += 1
        return hashlib.shake_256(b"%d" % self.drawn).digest(size)


class Call(NamedTuple):
    """One request to KMS."""

    operation: str
    key_id: str | None
    context: dict[str, str]
    outcome: str  # "ok", KMS's error code, or the class of an exception


@dataclass
class _Key:
    region: str
    usage: str
    materials: list[bytes]
    state: str = "Enabled"


def kms_error(code: str, operation: str = "Decrypt") -> ClientError:
    """Return the exception that boto3 raises for an error of KMS."""
    status = _HTTP_STATUS.get(code, 400)
    response: Any = {"Error": {"Code": code, "Message": code}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(response, operation)


@dataclass
class StrictKms:
    """KMS in one Region, as a boto3 client with the two operations that the toolkit uses.

    Attributes:
        region: the Region.
        keys: the keys by id.
        calls: the requests so far.
        weather: called with the operation of each request; returns the exception to raise, or None.
        policy: says whether the key policy allows an operation with a key id and an EncryptionContext.
        answer: may change each response.
    """

    region: str = "eu-west-1"
    keys: dict[str, _Key] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)
    weather: Callable[[str], Exception | None] = field(default=lambda _operation: None)
    policy: Callable[[str, str, dict[str, str]], bool] = field(default=lambda _operation, _key_id, _context: True)
    answer: Callable[[dict[str, Any]], dict[str, Any]] = field(default=lambda answer: answer)

    def create_key(self, *, multi_region: bool = False, usage: str = "ENCRYPT_DECRYPT") -> str:
        number = len(self.keys) + 1
        key_id = f"mrk-{number:032x}" if multi_region else f"00000000-0000-4000-8000-{number:012x}"
        self.keys[key_id] = _Key(self.region, usage, [os.urandom(32)])
        return self.arn(key_id)

    def replicate(self, arn: str, into: StrictKms) -> str:
        """Make the replica of a multi-Region key: the same id and material, but another state and policy."""
        key_id = arn.rpartition("/")[2]
        assert key_id.startswith("mrk-")
        into.keys[key_id] = _Key(into.region, "ENCRYPT_DECRYPT", self.keys[key_id].materials)
        return into.arn(key_id)

    def arn(self, key_id: str) -> str:
        return f"arn:aws:kms:{self.region}:{ACCOUNT}:key/{key_id}"

    def rotate(self, arn: str) -> None:
        """Rotate a key as KMS does: new key material encrypts, and the old material still decrypts."""
        self.keys[arn.rpartition("/")[2]].materials.append(os.urandom(32))

    def set_state(self, arn: str, state: str) -> None:
        self.keys[arn.rpartition("/")[2]].state = state

    def count(self, operation: str) -> int:
        return sum(call.operation == operation for call in self.calls)

    def generate_data_key(self, *, KeyId: str, KeySpec: str, EncryptionContext: dict[str, str]) -> dict[str, Any]:
        def run() -> dict[str, Any]:
            assert KeySpec == "AES_256"
            key_id = self._usable("GenerateDataKey", KeyId, EncryptionContext)
            plaintext = os.urandom(32)
            return {
                "KeyId": self.arn(key_id),
                "Plaintext": plaintext,
                "CiphertextBlob": self._wrap(key_id, plaintext, EncryptionContext),
            }

        return self._logged("GenerateDataKey", KeyId, EncryptionContext, run)

    def decrypt(
        self, *, CiphertextBlob: bytes, EncryptionContext: dict[str, str], KeyId: str | None = None
    ) -> dict[str, Any]:
        def run() -> dict[str, Any]:
            if not 1 <= len(CiphertextBlob) <= 6144:
                refuse("ValidationException")
            named = _key_id_of(CiphertextBlob)
            key_id = self._usable("Decrypt", KeyId or named, EncryptionContext)
            if named not in self.keys:
                refuse("InvalidCiphertextException")
            if named != key_id:
                refuse("IncorrectKeyException")
            plaintext = self._unwrap(key_id, CiphertextBlob, EncryptionContext)
            return {"KeyId": self.arn(key_id), "Plaintext": plaintext}

        return self._logged("Decrypt", KeyId, EncryptionContext, run)

    def _logged(
        self, operation: str, key_id: str | None, context: dict[str, str], run: Callable[[], dict[str, Any]]
    ) -> dict[str, Any]:
        try:
            self._raise_chosen_error(operation)
            answer = self.answer(run())
        except ClientError as error:
            self.calls.append(Call(operation, key_id, context, error.response["Error"]["Code"]))
            raise
        except Exception as error:
            self.calls.append(Call(operation, key_id, context, type(error).__name__))
            raise
        self.calls.append(Call(operation, key_id, context, "ok"))
        return answer

    def _raise_chosen_error(self, operation: str) -> None:
        error = self.weather(operation)
        if error:
            raise error

    def _usable(self, operation: str, key: str, context: dict[str, str]) -> str:
        """Return the id of a key, by its id or ARN, if this request may use the key."""
        key_id = key.rpartition("/")[2]
        has_only_text = all(isinstance(text, str) for pair in context.items() for text in pair)
        if not has_only_text or len(str(context)) > 8192:
            refuse("ValidationException", operation)
        if key.startswith("arn:") and key.split(":")[3] != self.region:
            refuse("NotFoundException", operation)
        if key_id in self.keys and not self.policy(operation, key_id, context):
            refuse("AccessDeniedException", operation)
        if key_id not in self.keys:
            refuse("NotFoundException", operation)
        if self.keys[key_id].usage != "ENCRYPT_DECRYPT":
            refuse("InvalidKeyUsageException", operation)
        if self.keys[key_id].state == "Disabled":
            refuse("DisabledException", operation)
        if self.keys[key_id].state != "Enabled":
            refuse("KMSInvalidStateException", operation)
        return key_id

    def _wrap(self, key_id: str, plaintext: bytes, context: dict[str, str]) -> bytes:
        materials = self.keys[key_id].materials
        nonce = os.urandom(NONCE_BYTES)
        head = BLOB_MAGIC + bytes([len(key_id)]) + key_id.encode() + bytes([len(materials) - 1]) + nonce
        encrypted = AESGCM(materials[-1]).encrypt(nonce, plaintext, head + _encoded(context))
        return (head + encrypted).ljust(BLOB_BYTES, b"\x30")

    def _unwrap(self, key_id: str, blob: bytes, context: dict[str, str]) -> bytes:
        number_at = len(BLOB_MAGIC) + 1 + blob[2]  # the place of the material's number; blob[2]: length of the key id
        nonce_at = number_at + 1
        end = nonce_at + NONCE_BYTES
        encrypted = blob[end : end + ENCRYPTED_KEY_BYTES]
        try:
            material = self.keys[key_id].materials[blob[number_at]]
            return AESGCM(material).decrypt(blob[nonce_at:end], encrypted, blob[:end] + _encoded(context))
        except (InvalidTag, IndexError, ValueError):
            return refuse("InvalidCiphertextException")


def _key_id_of(blob: bytes) -> str:
    if len(blob) < 3 or not blob.startswith(BLOB_MAGIC):
        refuse("InvalidCiphertextException")
    return blob[3 : 3 + blob[2]].decode("latin-1")


def _encoded(context: dict[str, str]) -> bytes:
    """Encode a context so that no two contexts are equal: moto joins names and values without their lengths."""
    parts = [text.encode() for name in sorted(context) for text in (name, context[name])]
    return hashlib.sha256(b"".join(struct.pack(">I", len(part)) + part for part in parts)).digest()


def make_keys(
    kms: StrictKms,
    *arns: str,
    scope: Scope = SCOPE,
    clock: Callable[[], float] | None = None,
) -> Keyring:
    """Return the data keys of a new container, which has cached none."""
    now = clock or Clock()
    return Keyring([KmsKey(arn, lambda: kms) for arn in arns], scope, now=now)


def make_envelope(
    kms: StrictKms,
    *arns: str,
    scope: Scope = SCOPE,
    clock: Callable[[], float] | None = None,
    label: bytes = b"ks1/request-state",
    max_age: float = 600,
) -> Envelope:
    return Envelope(make_keys(kms, *arns, scope=scope, clock=clock), label=label, max_age=max_age)


def run_python(code: str) -> str:
    """Run `code` in a new interpreter that finds the same modules, and return its output."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", code]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60, env=environment)  # noqa: S603
    return ran.stdout
