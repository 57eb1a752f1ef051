"""The toolkit calls the endpoint that botocore calls, and leaves any other configuration to boto3."""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import TYPE_CHECKING, Any
from unittest import mock

import botocore.session
import pytest

from mcp_functions import aws
from mcp_functions.aws import endpoints
from mcp_functions.seal.kms import kms_client
from tests.aws.calls import ARN, LAMBDA, SECRET

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("service", ["dynamodb", "kms", "lambda"])
@pytest.mark.parametrize("partition", ["aws", "aws-cn", "aws-us-gov"])
def test_every_region_has_the_endpoint_that_boto3_uses(
    service: str, partition: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ENDPOINT_URL_DYNAMODB", "AWS_ENDPOINT_URL_KMS", "AWS_ENDPOINT_URL_LAMBDA"):
        monkeypatch.delenv(name, raising=False)
    session = botocore.session.get_session()
    regions = session.get_available_regions(service, partition_name=partition)
    found = {region: aws.find_endpoint({**LAMBDA, "AWS_DEFAULT_REGION": region}, service) for region in regions}
    assert None not in found.values()
    for region in (regions[0], regions[-1]):  # a client takes its time to make
        client = session.create_client(service, region, aws_access_key_id="a", aws_secret_access_key=SECRET)
        target = found[region]
        assert target is not None
        assert (target.scheme, target.port, target.region) == ("https", 443, region)
        assert f"https://{target.host}" == f"https://{target.authority}" == client.meta.endpoint_url


def test_the_endpoint_variable_of_a_service_takes_precedence_over_the_general_one() -> None:
    both = {**LAMBDA, "AWS_ENDPOINT_URL": "https://aws.internal", "AWS_ENDPOINT_URL_KMS": "http://127.0.0.1:8001"}
    kms, invoke = aws.find_endpoint(both, "kms"), aws.find_endpoint(both, "lambda")
    assert kms is not None
    assert invoke is not None
    assert (kms.scheme, kms.authority) == ("http", "127.0.0.1:8001")
    assert (invoke.scheme, invoke.authority, invoke.port) == ("https", "aws.internal", 443)
    empty = aws.find_endpoint({**LAMBDA, "AWS_ENDPOINT_URL_KMS": ""}, "kms")  # as the template sets it
    assert empty is not None
    assert empty.host == "kms.eu-west-1.amazonaws.com"


@pytest.mark.parametrize(
    "said",
    [
        {"MCP_AWS_CLIENT": "boto3"},
        *({name: "1"} for name in (*endpoints.BOTO3_VARIABLES, *endpoints.TLS_VARIABLES)),
        {"AWS_ENDPOINT_URL_KMS": "http://user@host/"},
        {"AWS_ENDPOINT_URL_KMS": "https://host/path"},
        {"AWS_ENDPOINT_URL_KMS": "ftp://host"},
        {"AWS_DEFAULT_REGION": "us-iso-east-1"},
        {"AWS_DEFAULT_REGION": "eusc-de-east-1"},
        {"AWS_DEFAULT_REGION": "evil.example/-1"},
        {"AWS_DEFAULT_REGION": "", "AWS_REGION": ""},
        {"AWS_ACCESS_KEY_ID": ""},
        {"AWS_SECRET_ACCESS_KEY": ""},
        {"AWS_ACCESS_KEY_ID": "", "AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://127.0.0.1/creds"},  # SnapStart
    ],
    ids=str,
)
def test_the_toolkit_leaves_a_configuration_that_it_cannot_read_to_boto3(said: dict[str, str]) -> None:
    assert aws.find_endpoint(LAMBDA, "kms") is not None
    assert aws.find_endpoint({**LAMBDA, **said}, "kms") is None


def test_an_empty_configuration_file_is_ignored() -> None:
    assert aws.find_endpoint({**LAMBDA, "AWS_CONFIG_FILE": "/dev/null"}, "kms") is not None


ELSEWHERE = "http://127.0.0.1:9"


SERVICES = "".join(f"{name} =\n  endpoint_url = {ELSEWHERE}\n" for name in ("kms", "lambda", "dynamodb"))


CONFIGURATIONS = (
    None,
    "",
    f"[default]\nendpoint_url = {ELSEWHERE}\n",
    f"[default]\nservices = ours\n[services ours]\n{SERVICES}",
    f"[profile other]\nendpoint_url = {ELSEWHERE}\n",
    "[default]\nuse_fips_endpoint = true\n",
    "[default]\nuse_dualstack_endpoint = true\n",
    "[default]\nignore_configured_endpoint_urls = true\n",
    "[default]\nregion = eu-central-1\n",
)


VARIABLES: tuple[dict[str, str], ...] = (
    {},
    {"AWS_PROFILE": "other"},
    {"AWS_DEFAULT_PROFILE": "other"},
    {"AWS_CONFIG_FILE": "other/config"},
    {"AWS_CONFIG_FILE": "/dev/null"},
    {"AWS_SHARED_CREDENTIALS_FILE": "other/config"},
    {"AWS_SHARED_CREDENTIALS_FILE": "/dev/null"},
    {"AWS_ENDPOINT_URL": "https://aws.internal"},
    {"AWS_ENDPOINT_URL_KMS": "http://127.0.0.1:8001", "AWS_ENDPOINT_URL_DYNAMODB": "http://127.0.0.1:8002"},
    {"AWS_USE_FIPS_ENDPOINT": "true"},
    {"AWS_USE_DUALSTACK_ENDPOINT": "true"},
    {"AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true"},
    {"AWS_ACCOUNT_ID": "111122223333"},
    {"AWS_ACCOUNT_ID_ENDPOINT_MODE": "disabled"},
    {"AWS_DEFAULT_REGION": "us-gov-west-1"},
)


OPERATIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "kms": ("decrypt", {"KeyId": ARN, "CiphertextBlob": b"x"}),
    "lambda": ("invoke", {"FunctionName": "shop_add", "Payload": b"{}"}),
    "dynamodb": ("get_item", {"TableName": "t", "Key": {"key": {"S": "k"}}}),
}


@cache
def loader() -> Any:  # noqa: ANN401 - botocore's
    """Read botocore's descriptions of services once."""
    return botocore.session.Session().get_component("data_loader")


def endpoint_of_botocore(service: str) -> str:
    """Have botocore make a request in this environment, and return its address; nothing is sent."""
    sent: list[str] = []

    def instead(request: Any, **_more: object) -> Any:  # noqa: ANN401 - botocore's
        sent.append("/".join(request.url.split("/")[:3]))
        return mock.Mock(status_code=200, headers={}, content=b"{}")

    session = botocore.session.Session()
    session.register_component("data_loader", loader())
    client = session.create_client(service)
    client.meta.events.register("before-send", instead)
    operation, arguments = OPERATIONS[service]
    getattr(client, operation)(**arguments)
    client.close()
    return sent[0]


@pytest.mark.parametrize("service", OPERATIONS)
@pytest.mark.parametrize("file", ["config", "credentials"])
def test_the_toolkit_chooses_the_endpoint_that_botocore_chooses(
    service: str, file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".aws").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "config").write_text(CONFIGURATIONS[2] or "", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    without_boto3 = list[int]()
    for number, (content, variables) in enumerate(product(CONFIGURATIONS, VARIABLES)):
        written = tmp_path / ".aws" / file
        written.unlink(missing_ok=True)
        if content is not None:
            written.write_text(content, encoding="utf-8")
        environment = {**LAMBDA, "HOME": str(tmp_path), **variables}
        with mock.patch.dict("os.environ", environment, clear=True):
            target = aws.find_endpoint(environment, service)
            if target:
                without_boto3.append(number)
                assert f"{target.scheme}://{target.authority}" == endpoint_of_botocore(service), (
                    content,
                    variables,
                )
    assert without_boto3[:2] == [0, 4]  # no file, no variable; and a file that is /dev/null


@pytest.mark.parametrize("named", ["AWS_REGION", "AWS_DEFAULT_REGION"])
def test_both_clients_read_the_region_from_either_variable_of_lambda(
    named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL_KMS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(named, "eu-south-2")
    target = aws.find_endpoint({**LAMBDA, "AWS_DEFAULT_REGION": "", "AWS_REGION": "", named: "eu-south-2"}, "kms")
    assert target is not None
    monkeypatch.setenv("MCP_AWS_CLIENT", "boto3")
    assert kms_client().meta.endpoint_url == f"https://{target.authority}" == "https://kms.eu-south-2.amazonaws.com"


def test_certificate_variables_do_not_matter_for_http_but_proxy_variables_do() -> None:
    harness = {**LAMBDA, "AWS_ENDPOINT_URL_KMS": "http://127.0.0.1:8001"}
    for name in endpoints.TLS_VARIABLES:
        assert aws.find_endpoint({**harness, name: "/etc/ssl/certs/ours.pem"}, "kms") is not None
    for name in endpoints.PLAIN_VARIABLES:
        assert aws.find_endpoint({**harness, name: "http://proxy:3128"}, "kms") is None
