"""The local KMS, called with boto3: it has one key in a file, and returns the error codes of AWS."""

from __future__ import annotations

import json
import stat
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from mcp_functions_harness.doubles import keyfile
from mcp_functions_harness.doubles.kms import MAX_REQUEST, KmsApi
from mcp_functions_harness.loopback import Loopback
from mcp_functions_harness.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from http.client import HTTPConnection
    from pathlib import Path

CONTEXT = {"service": "local/add", "stage": "local"}


class Kms:
    """A running KMS endpoint and a client of it."""

    def __init__(self, state_dir: Path) -> None:
        self.api = KmsApi(keyfile.load(state_dir))
        self.server = Loopback(max_body=MAX_REQUEST)
        self.server.start(self.api.answer)
        self.client: Any = boto3.client(
            "kms",
            endpoint_url=self.server.url,
            region_name="us-east-1",
            aws_access_key_id="local",
            aws_secret_access_key="local",  # noqa: S106 - nobody's
            config=Config(retries={"total_max_attempts": 1}, parameter_validation=False, proxies={}),
        )

    def stop(self) -> None:
        self.client.close()
        self.server.stop()

    def seal(self, context: dict[str, str] | None = None) -> tuple[bytes, bytes]:
        data_key = self.client.generate_data_key(
            KeyId=self.api.arn, KeySpec="AES_256", EncryptionContext=context or CONTEXT
        )
        return data_key["Plaintext"], data_key["CiphertextBlob"]

    def open(self, blob: bytes, context: dict[str, str] | None = None, **more: Any) -> bytes:  # noqa: ANN401
        opened = self.client.decrypt(CiphertextBlob=blob, EncryptionContext=context or CONTEXT, **more)
        return bytes(opened["Plaintext"])

    def refuses(self, call: Callable[[], object]) -> str:
        with pytest.raises(ClientError) as error:
            call()
        assert error.value.response["ResponseMetadata"]["HTTPStatusCode"] == 400
        return str(error.value.response["Error"]["Code"])


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kms]:
    running = Kms(tmp_path_factory.mktemp("state"))
    yield running
    running.stop()


@pytest.fixture
def kms(shared: Kms) -> Iterator[Kms]:
    yield shared
    if shared.client.describe_key(KeyId=shared.api.arn)["KeyMetadata"]["KeyState"] == "PendingDeletion":
        shared.client.cancel_key_deletion(KeyId=shared.api.arn)
    shared.client.enable_key(KeyId=shared.api.arn)


def test_a_token_from_before_a_restart_opens_after_it(tmp_path: Path) -> None:
    first = Kms(tmp_path)
    plaintext, blob = first.seal()
    first.stop()
    second = Kms(tmp_path)
    assert second.api.arn == first.api.arn
    assert second.open(blob, KeyId=first.api.arn) == plaintext
    second.stop()


def test_the_local_kms_describes_its_key_with_rotation_enabled(kms: Kms) -> None:
    described = kms.client.describe_key(KeyId=kms.api.arn)["KeyMetadata"]
    assert (described["Arn"], described["KeyState"], described["KeySpec"]) == (
        kms.api.arn,
        "Enabled",
        "SYMMETRIC_DEFAULT",
    )
    assert kms.client.get_key_rotation_status(KeyId=kms.api.arn)["KeyRotationEnabled"] is True
    assert [key["KeyArn"] for key in kms.client.list_keys()["Keys"]] == [kms.api.arn]


def test_a_token_from_before_a_rotation_opens_after_it(kms: Kms) -> None:
    plaintext, blob = kms.seal()
    kms.client.rotate_key_on_demand(KeyId=kms.api.arn)
    assert kms.open(blob) == plaintext


def test_decrypt_does_not_need_the_key_id(kms: Kms) -> None:
    plaintext, blob = kms.seal()
    assert kms.open(blob) == plaintext


@pytest.mark.parametrize("at", [0, 35, 36, 47, 48, 63, 64, 95])
@pytest.mark.parametrize("named", [True, False])
def test_a_changed_byte_anywhere_is_an_invalid_ciphertext(kms: Kms, at: int, named: bool) -> None:  # noqa: FBT001
    _, blob = kms.seal()
    damaged = blob[:at] + bytes([blob[at] ^ 0x80]) + blob[at + 1 :]
    more: dict[str, Any] = {"KeyId": kms.api.arn} if named else {}
    assert kms.refuses(lambda: kms.open(damaged, **more)) == "InvalidCiphertextException"


@pytest.mark.parametrize("blob", [b"x", b"\xff" * 64, b"x" * 63, b"x" * 6144])
def test_random_bytes_are_an_invalid_ciphertext(kms: Kms, blob: bytes) -> None:
    assert kms.refuses(lambda: kms.open(blob)) == "InvalidCiphertextException"


def test_a_truncated_blob_is_an_invalid_ciphertext(kms: Kms) -> None:
    _, blob = kms.seal()
    assert kms.refuses(lambda: kms.open(blob[:-1])) == "InvalidCiphertextException"


@pytest.mark.parametrize("blob", [b"", b"x" * 6145])
def test_an_empty_or_oversized_blob_is_not_valid(kms: Kms, blob: bytes) -> None:
    assert kms.refuses(lambda: kms.open(blob)) == "ValidationException"


@pytest.mark.parametrize(
    "other",
    [
        {"service": "local/add"},
        {**CONTEXT, "more": "1"},
        {"Service": "local/add", "stage": "local"},
        {"service": "local/add", "stage": "prod"},
        {"servic": "elocal/add", "stage": "local"},
        {"servicelocal/addstagelocal": ""},
    ],
)
def test_another_context_is_an_invalid_ciphertext(kms: Kms, other: dict[str, str]) -> None:
    _, blob = kms.seal()
    assert kms.refuses(lambda: kms.open(blob, other)) == "InvalidCiphertextException"


def test_a_context_that_is_too_long_is_not_valid(kms: Kms) -> None:
    assert kms.refuses(lambda: kms.seal({"long": "x" * 20_000})) == "ValidationException"


def test_another_key_is_an_incorrect_key(kms: Kms) -> None:
    other = kms.client.create_key()["KeyMetadata"]["KeyId"]
    _, blob = kms.seal()
    assert kms.refuses(lambda: kms.open(blob, KeyId=other)) == "IncorrectKeyException"
    kms.api._backend.delete_key(other)  # noqa: SLF001 - the API deletes in a week at the earliest


@pytest.mark.parametrize("key", ["00000000-0000-4000-8000-000000000000", "alias/nobody"])
def test_an_unknown_key_is_not_found(kms: Kms, key: str) -> None:
    _, blob = kms.seal()
    assert kms.refuses(lambda: kms.open(blob, KeyId=key)) == "NotFoundException"
    assert kms.refuses(lambda: kms.client.generate_data_key(KeyId=key, KeySpec="AES_256")) == "NotFoundException"


def test_a_disabled_key_neither_encrypts_nor_decrypts(kms: Kms) -> None:
    _, blob = kms.seal()
    kms.client.disable_key(KeyId=kms.api.arn)
    assert kms.refuses(kms.seal) == "DisabledException"
    assert kms.refuses(lambda: kms.open(blob)) == "DisabledException"
    assert kms.refuses(lambda: kms.open(blob, KeyId=kms.api.arn)) == "DisabledException"


def test_a_key_pending_deletion_neither_encrypts_nor_decrypts(kms: Kms) -> None:
    _, blob = kms.seal()
    kms.client.schedule_key_deletion(KeyId=kms.api.arn, PendingWindowInDays=7)
    assert kms.refuses(kms.seal) == "KMSInvalidStateException"
    assert kms.refuses(lambda: kms.open(blob)) == "KMSInvalidStateException"


def raw(kms: Kms, connect: Callable[[str], HTTPConnection], body: bytes, **headers: str) -> tuple[int, dict[str, str]]:
    connection = connect(kms.server.url)
    connection.request("POST", "/", body, {name.replace("_", "-"): value for name, value in headers.items()})
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())


def test_an_unsigned_request_is_refused(kms: Kms, connect: Callable[[str], HTTPConnection]) -> None:
    status, told = raw(kms, connect, b"{}", x_amz_target="TrentService.ListKeys")
    assert (status, told["__type"]) == (400, "MissingAuthenticationTokenException")


@pytest.mark.parametrize(
    ("target", "body", "kind"),
    [
        ("ListKeys", b"[]", "SerializationException"),
        ("Decrypt", '{"CiphertextBlob": "é"}'.encode(), "ValidationException"),
        ("ListKeys", b"{", "SerializationException"),
        ("Decrypt", b"{}", "ValidationException"),
        ("Decrypt", b'{"CiphertextBlob": 7}', "ValidationException"),
        ("Decrypt", b'{"CiphertextBlob": "eA==", "EncryptionContext": {"a": 1}}', "SerializationException"),
        ("BrewCoffee", b"{}", "UnknownOperationException"),
    ],
)
def test_a_malformed_kms_request_is_refused(
    kms: Kms, connect: Callable[[str], HTTPConnection], target: str, body: bytes, kind: str
) -> None:
    headers = {"authorization": "AWS4-HMAC-SHA256 Credential=local", "x_amz_target": f"TrentService.{target}"}
    status, told = raw(kms, connect, body, **headers)
    assert (status, told["__type"]) == (400, kind)


def test_only_the_owner_can_read_the_key_file_and_git_ignores_it(tmp_path: Path) -> None:
    state_dir = tmp_path / ".mcp-functions"
    made = keyfile.load(state_dir)
    assert stat.S_IMODE((state_dir / "kms.json").stat().st_mode) == 0o600
    assert (state_dir / ".gitignore").read_text() == "*\n"
    assert sorted(path.name for path in state_dir.iterdir()) == [".gitignore", "kms.json"]
    assert keyfile.load(state_dir) == made
    assert made.material.hex() not in repr(made)


def test_two_harnesses_that_start_at_once_share_the_first_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = keyfile.load(tmp_path)
    monkeypatch.setattr("pathlib.Path.exists", lambda _: False)
    assert keyfile.load(tmp_path) == first


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "{}",
        "\x00",
        '{"keyId": "x", "material": ""}',
        '{"keyId": "00000000-0000-4000-8000-000000000000", "material": "AAAA"}',
        '{"keyId": 7, "material": "AAAA"}',
        '{"keyId": "00000000-0000-4000-8000-000000000000", "material": "!"}',
    ],
)
def test_a_damaged_key_file_is_a_problem_with_its_fix(tmp_path: Path, text: str) -> None:
    (tmp_path / "kms.json").write_text(text)
    with pytest.raises(Problem, match=r"kms\.json is damaged: delete it"):
        keyfile.load(tmp_path)
    assert (tmp_path / "kms.json").read_text() == text


def test_a_key_file_that_cannot_be_written_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file, not a folder")
    with pytest.raises(Problem, match="cannot be read or created"):
        keyfile.load(tmp_path / "state")
