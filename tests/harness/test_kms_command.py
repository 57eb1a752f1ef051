"""`kms`: the harness's KMS and DynamoDB, at an address that containers reach. They have the project's key and table."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from http.client import HTTPConnection
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import boto3
import pytest

from mcp_functions_harness.command import run as main
from mcp_functions_harness.loopback import Loopback

if TYPE_CHECKING:
    from collections.abc import Iterator

COMMAND = [sys.executable, "-W", "error", "-m", "mcp_functions_harness", "kms", "--port", "0"]


@pytest.fixture
def kms(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Start the command, and return its address and the variables to export."""
    command = [*COMMAND, *getattr(request, "param", ())]
    serving = subprocess.Popen(command, cwd=tmp_path, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # noqa: S603
    assert serving.stdout
    said: list[str] = []
    while not said or "Ctrl-C" not in said[-1]:
        line = serving.stdout.readline()
        assert line, serving.communicate()[1]
        said.append(line)
    yield said[0].split()[3].rstrip(","), dict(re.findall(r"^export (\w+)=(.*)$", "".join(said), re.MULTILINE))
    serving.send_signal(signal.SIGINT)
    assert serving.communicate(timeout=60) == ("", "")
    assert serving.returncode == 0


def client(url: str) -> Any:  # noqa: ANN401 - boto3's clients have no type of their own
    nobody = boto3.Session("nobody", "nobody", region_name="us-east-1")
    return nobody.client("kms", endpoint_url=url)


def status(url: str, host: str) -> int:
    connection = HTTPConnection(urlsplit(url).netloc, timeout=60)
    connection.request(
        "POST", "/", "{}", {"host": host, "authorization": "AWS4-", "x-amz-target": "TrentService.ListKeys"}
    )
    answered = connection.getresponse().status
    connection.close()
    return answered


def test_a_data_key_is_wrapped_and_unwrapped(kms: tuple[str, dict[str, str]]) -> None:
    url, exports = kms
    context = {"purpose": "mcp-request-state"}
    arn = exports["MCP_KMS_KEYS"]
    data_key = client(url).generate_data_key(KeyId=arn, KeySpec="AES_256", EncryptionContext=context)
    opened = client(url).decrypt(KeyId=arn, CiphertextBlob=data_key["CiphertextBlob"], EncryptionContext=context)
    assert opened["Plaintext"] == data_key["Plaintext"]


def test_the_table_is_served_at_the_same_address(kms: tuple[str, dict[str, str]]) -> None:
    url, exports = kms
    nobody = boto3.Session("nobody", "nobody", region_name="us-east-1")
    table = nobody.resource("dynamodb", endpoint_url=url).Table(exports["MCP_TABLE"])
    table.put_item(Item={"key": "a", "expires": 7})
    assert table.get_item(Key={"key": "a"})["Item"]["expires"] == 7
    assert exports["AWS_ENDPOINT_URL_DYNAMODB"] == exports["AWS_ENDPOINT_URL_KMS"]


def test_docker_desktop_reaches_the_local_kms_under_the_exported_name(kms: tuple[str, dict[str, str]]) -> None:
    url, exports = kms
    inside = exports["AWS_ENDPOINT_URL_KMS"]
    assert inside == url.replace("127.0.0.1", "host.docker.internal")
    assert status(url, urlsplit(inside).netloc) == 200
    assert status(url, "evil.example") == 403


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has more loopback addresses than one")
@pytest.mark.parametrize("kms", [["--address", "127.0.0.2"]], indirect=True)
def test_the_local_kms_responds_at_another_address(kms: tuple[str, dict[str, str]]) -> None:
    url, exports = kms
    assert url.startswith("http://127.0.0.2:")
    assert exports["AWS_ENDPOINT_URL_KMS"] == url
    assert client(url).list_keys()["Keys"][0]["KeyArn"] == exports["MCP_KMS_KEYS"]
    assert status(url, urlsplit(url).netloc) == 200
    assert status(url, "evil.example") == 403


def test_the_local_kms_has_the_key_of_the_project_at_every_address(
    kms: tuple[str, dict[str, str]], tmp_path: Path
) -> None:
    _, exports = kms
    kept = (tmp_path / ".mcp-functions" / "kms.json").read_text(encoding="utf-8")
    assert exports["MCP_KMS_KEYS"].rpartition("/")[2] in kept


def test_an_address_of_another_machine_is_reported_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["kms", "--port", "0", "--address", "192.0.2.1"]) == 2
    expected = "mcp-functions: 192.0.2.1 is no address of this machine: `ip address` lists them\n"
    assert capsys.readouterr().err == expected


def test_a_port_in_use_is_reported_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with Loopback(max_body=1) as taken:
        assert main(["kms", "--port", str(taken.port)]) == 2
    assert "choose another with --port" in capsys.readouterr().err
    assert not Path(".mcp-functions").exists()


@pytest.mark.parametrize("address", ["0.0.0.0", "bridge", "172.17.0", "::1", ""])  # noqa: S104 - refused
def test_wildcard_and_invalid_addresses_are_refused(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kms", "--address", address]) == 2
    assert "--address" in capsys.readouterr().err
