"""The seal over HTTP, with each of the two clients that can call KMS: the package's own, and boto3's.

The server is the harness's; `make deployed` calls one that others wrote. All else about KMS is tested with a fake in
memory.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from mcp_functions.protocol.errors import TemporarilyUnavailable
from mcp_functions.seal.envelope import Envelope
from mcp_functions.seal.keyring import Keyring
from mcp_functions.seal.kms import KmsKey, kms_client
from mcp_functions_harness.doubles import keyfile
from mcp_functions_harness.doubles.kms import MAX_REQUEST, KmsApi
from mcp_functions_harness.loopback import start_server
from tests.seal.refusals import assert_refused
from tests.support.strict_kms import SCOPE, run_python

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mcp_functions.seal.keys import Scope

OTHER_SCOPES = {
    "service": SCOPE._replace(service="demo/get_weather"),
    "stage": SCOPE._replace(stage="dev"),
    "generation": SCOPE._replace(generation="2"),
}


@pytest.fixture(scope="module")
def kms(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """Start the harness's KMS on a socket; its URL, and the ARN of its key."""
    api = KmsApi(keyfile.load(tmp_path_factory.mktemp("kms")))
    with ExitStack() as until:
        yield start_server(until, api.answer, MAX_REQUEST), api.arn


@pytest.fixture
def kms_url(kms: tuple[str, str]) -> str:
    return kms[0]


@pytest.fixture
def boto3_client(kms_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:  # noqa: ANN401 - a boto3 client
    """Configure the environment, and make a client."""
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    monkeypatch.delenv("AWS_CONFIG_FILE", raising=False)
    monkeypatch.setenv("AWS_ENDPOINT_URL_KMS", kms_url)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("MCP_AWS_CLIENT", "boto3")
    return kms_client()


@pytest.fixture(params=["lean", "boto3"])
def remote_arn(
    boto3_client: Any,  # noqa: ANN401, ARG001 - it has configured the environment
    kms: tuple[str, str],
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> str:
    """Choose the client that the seal uses, and return its wrapping key."""
    monkeypatch.setenv("MCP_AWS_CLIENT", request.param)
    return kms[1]


def start_remote_container(arn: str, scope: Scope = SCOPE) -> Envelope:
    return Envelope(Keyring([KmsKey(arn)], scope))


@pytest.mark.usefixtures("limits_on_aws")
def test_the_boto3_client_has_short_timeouts_and_three_attempts(kms_url: str, request: pytest.FixtureRequest) -> None:
    boto3_client = request.getfixturevalue("boto3_client")
    config = boto3_client.meta.config
    assert boto3_client.meta.endpoint_url == kms_url
    assert (config.connect_timeout, config.read_timeout) == (0.5, 1)
    assert config.retries["total_max_attempts"] == 3


def test_a_token_opens_in_another_container(remote_arn: str) -> None:
    token = start_remote_container(remote_arn).seal(b"state")
    assert start_remote_container(remote_arn).unseal(token) == b"state"


@pytest.mark.parametrize("part", OTHER_SCOPES)
def test_a_token_of_another_scope_is_refused_over_http(remote_arn: str, part: str) -> None:
    token = start_remote_container(remote_arn, OTHER_SCOPES[part]).seal(b"state")
    with assert_refused("wrapped_key"):
        start_remote_container(remote_arn).unseal(token)


def test_an_endpoint_that_does_not_answer_is_an_outage(remote_arn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_KMS", "http://127.0.0.1:9")
    with pytest.raises(TemporarilyUnavailable) as error:
        start_remote_container(remote_arn).seal(b"state")
    assert error.value.reason == "kms:EndpointConnectionError"


def test_importing_and_building_the_seal_imports_nothing_of_aws() -> None:
    code = (
        "import sys; from mcp_functions.seal import envelope, keyring, keys, kms, request_state\n"
        "k = keyring.Keyring([kms.KmsKey('arn:aws:kms:eu-west-1:1:key/k')], keys.Scope('s', 't', '1'))\n"
        "request_state.RequestStates(envelope.Envelope(k))\n"
        "print([name for name in ('boto3', 'botocore', 'pydantic', 'random') if name in sys.modules])"
    )
    assert run_python(code).strip() == "[]"
