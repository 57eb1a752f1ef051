"""Calls of KMS and Lambda: our client and boto3's send the same requests, retry and fail alike."""

from __future__ import annotations

import json
import logging
import socket
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.retries import standard

from mcp_functions import aws
from mcp_functions.aws import errors
from mcp_functions.aws.clients import KmsClient, LambdaClient
from mcp_functions.http.forwarding import lambda_client
from mcp_functions.seal.kms import kms_client
from mcp_functions.store import blobs, make_call
from mcp_functions.tasks.task_store import lambda_client as worker_client
from tests.aws.calls import ANSWERED, ARN, KEY_RESPONSE, error, outcome
from tests.support.http_servers import ScriptedResponse, ScriptedServer
from tests.support.strict_kms import run_python

if TYPE_CHECKING:
    from collections.abc import Callable


def test_mcp_aws_client_chooses_the_client(client_kind: str) -> None:
    assert isinstance(kms_client(), KmsClient) == isinstance(lambda_client(), LambdaClient) == (client_kind == "lean")


@pytest.mark.usefixtures("client_kind")
def test_both_clients_send_kms_the_same_requests(service: ScriptedServer) -> None:
    service.script += [KEY_RESPONSE, KEY_RESPONSE]
    with_context = {"EncryptionContext": {"purpose": "żółw"}}
    client = kms_client()
    made = client.generate_data_key(KeyId=ARN, KeySpec="AES_256", **with_context)
    opened = client.decrypt(KeyId=ARN, CiphertextBlob=b"wrapped", **with_context)
    client.close()
    assert {name: made[name] for name in ("KeyId", "Plaintext", "CiphertextBlob")} == {
        "KeyId": ARN, "Plaintext": b"key", "CiphertextBlob": b"wrapped",
    }  # fmt: skip
    assert opened["Plaintext"] == b"key"
    (path, headers, body), (_path, second, asked) = service.asked
    assert path == "/"
    assert json.loads(body) == {"KeyId": ARN, "KeySpec": "AES_256", **with_context}
    assert json.loads(asked) == {"KeyId": ARN, "CiphertextBlob": "d3JhcHBlZA==", **with_context}
    assert (headers["x-amz-target"], second["x-amz-target"]) == ("TrentService.GenerateDataKey", "TrentService.Decrypt")
    assert headers["content-type"] == "application/x-amz-json-1.1"
    assert headers["x-amz-security-token"] == "session"
    assert "content-type;host;x-amz-date;x-amz-security-token;x-amz-target" in headers["authorization"]
    assert len(service.connections) == 1


@pytest.mark.usefixtures("client_kind")
@pytest.mark.parametrize(
    ("script", "found", "asked"),
    [
        ([KEY_RESPONSE], ANSWERED, 1),
        ([error(400, "InvalidCiphertextException")], ("InvalidCiphertextException", 400), 1),
        ([error(400, "com.amazonaws.kms#DisabledException")], ("DisabledException", 400), 1),
        ([error(400, "AccessDeniedException")], ("AccessDeniedException", 400), 1),
        ([error(400, "ThrottlingException"), KEY_RESPONSE], ANSWERED, 2),
        ([error(400, "ThrottlingException")] * 3, ("ThrottlingException", 400), 3),
        ([error(500, "KMSInternalException")] * 2 + [KEY_RESPONSE], ANSWERED, 3),
        ([error(503, "ServiceUnavailable")] * 3, ("ServiceUnavailable", 503), 3),
        ([error(503, "KMSInvalidStateException")] * 3, ("KMSInvalidStateException", 503), 3),
        ([error(400, "RequestTimeout")] * 3, ("RequestTimeout", 400), 3),
        ([error(501, "NotImplemented")], ("NotImplemented", 501), 1),
        ([ScriptedResponse(502, b"<html>")] * 3, ("502", 502), 3),
        ([None, KEY_RESPONSE], ANSWERED, 2),
        ([None] * 3, ("ConnectionClosedError", 0), 3),
    ],
)
def test_a_failed_kms_request_is_retried_as_often_as_by_boto3(
    service: ScriptedServer, script: list[ScriptedResponse | None], found: tuple[str, int], asked: int
) -> None:
    service.script += script
    assert outcome(kms_client()) == found
    assert len(service.asked) == asked


@pytest.mark.usefixtures("client_kind")
def test_a_kms_that_does_not_respond_is_a_read_timeout(
    service: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcp_functions.seal.kms.LIMITS", aws.CallLimits(0.5, 0.05, 3))
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("AWS_ENDPOINT_URL_KMS", f"http://127.0.0.1:{silent.getsockname()[1]}")
        assert outcome(kms_client()) == ("ReadTimeoutError", 0)
    assert service.asked == []


@pytest.mark.usefixtures("client_kind")
def test_a_closed_port_is_a_connection_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_KMS", "http://127.0.0.1:1")
    assert outcome(kms_client()) == ("EndpointConnectionError", 0)


def test_the_client_retries_the_errors_that_botocore_retries() -> None:
    throttled, transient = vars(standard.ThrottledRetryableChecker), vars(standard.TransientRetryableChecker)
    assert set(throttled["_THROTTLED_ERROR_CODES"]) == errors.THROTTLED_CODES
    assert set(transient["_TRANSIENT_ERROR_CODES"]) == errors.TRANSIENT_CODES
    assert set(transient["_TRANSIENT_STATUS_CODES"]) == errors.TRANSIENT_STATUSES


@pytest.mark.usefixtures("client_kind")
def test_a_function_is_invoked_with_the_unchanged_event(service: ScriptedServer) -> None:
    body = b'{"statusCode":200}' + b" " * (6 * 1024 * 1024)
    service.script += [
        ScriptedResponse(body=body),
        ScriptedResponse(body=b"{}", headers={"x-amz-function-error": "Unhandled"}),
    ]
    client = lambda_client()
    answer = client.invoke(FunctionName="shop_add", Payload=b'{"a": 1}')
    failed = client.invoke(FunctionName="shop_add", Payload=b"{}")
    client.close()
    assert answer["Payload"].read() == body
    assert "FunctionError" not in answer
    assert failed["FunctionError"] == "Unhandled"
    path, _headers, sent = service.asked[0]
    assert (path, sent) == ("/2015-03-31/functions/shop_add/invocations", b'{"a": 1}')


@pytest.mark.usefixtures("client_kind")
@pytest.mark.parametrize(
    "response",
    [
        None,
        error(429, "TooManyRequestsException", header=True),
        error(500, "ServiceException", header=True),
        ScriptedResponse(502),
    ],
    ids=str,
)
def test_the_client_never_retries_the_invocation_of_a_function(
    service: ScriptedServer, response: ScriptedResponse | None
) -> None:
    service.script += [response, ScriptedResponse()]
    result = outcome(lambda_client(), "invoke", FunctionName="shop_add", Payload=b"{}")
    assert result[0] in {"ConnectionClosedError", "TooManyRequestsException", "ServiceException", "502"}
    assert len(service.asked) == 1


@pytest.mark.usefixtures("client_kind")
def test_an_invocation_passes_on_the_trace_of_lambda(service: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1;Lineage=a87bd80c:0"
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "shop_mcp")
    monkeypatch.setenv("_X_AMZN_TRACE_ID", trace)
    client = lambda_client()
    client.invoke(FunctionName="shop_add", Payload=b"{}")
    client.close()
    assert service.asked[0][1]["x-amzn-trace-id"] == trace


@pytest.mark.usefixtures("client_kind")
def test_a_worker_invocation_is_repeated_without_a_response(service: ScriptedServer) -> None:
    service.script += [None, ScriptedResponse(202, b"")]
    client: Any = worker_client()
    client.invoke(FunctionName="shop_add-worker:live", InvocationType="Event", Payload=b"{}")["Payload"].read()
    client.close()
    assert [path for path, _headers, _body in service.asked] == [
        "/2015-03-31/functions/shop_add-worker%3Alive/invocations"
    ] * 2
    assert {headers["x-amz-invocation-type"] for _path, headers, _body in service.asked} == {"Event"}


def test_boto3_is_imported_at_init_if_it_is_the_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCP_AWS_CLIENT", "boto3")
    script = "import sys; from mcp_functions import aws; aws.prepare('kms'); print('botocore.session' in sys.modules)"
    assert run_python(script).strip() == "True"


@pytest.mark.parametrize("make", [lambda_client, worker_client, kms_client, make_call, blobs.s3_client])
def test_the_clients_of_boto3_log_nothing_at_debug_and_keep_no_default_session(
    make: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MCP_AWS_CLIENT", "boto3")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
    log = logging.getLogger("botocore")
    before = log.level
    try:
        log.setLevel(logging.DEBUG)
        made = make()
        assert log.level == logging.WARNING
        assert boto3.DEFAULT_SESSION is None  # credentials from before a snapshot would live on in it
        if make is not make_call:
            assert made.meta.config.connect_timeout + made.meta.config.read_timeout <= 30  # API Gateway's
    finally:
        log.setLevel(before)
