"""The package's clients of KMS, Lambda and DynamoDB sign, choose endpoints, retry and fail as botocore does."""

from __future__ import annotations

import base64
import datetime as dt
import json
import logging
import os
import resource
import socket
import ssl
import threading
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from itertools import product
from typing import TYPE_CHECKING, Any
from unittest import mock

import boto3
import botocore.session
import pytest
from botocore import auth, awsrequest
from botocore.credentials import Credentials as Theirs
from botocore.retries import standard
from hypothesis import given
from hypothesis import strategies as st

from mcp_functions import aws
from mcp_functions.aws import clients, connection, endpoints, errors
from mcp_functions.aws.clients import KmsClient, LambdaClient
from mcp_functions.aws.endpoints import Credentials, Endpoint
from mcp_functions.aws.errors import ConnectionClosedError
from mcp_functions.aws.signing import sign
from mcp_functions.http.forwarding import lambda_client
from mcp_functions.seal.kms import kms_client
from mcp_functions.store import blobs, make_call
from mcp_functions.tasks.task_store import lambda_client as summons_client
from tests.support.certificates import server_context, write_certificate
from tests.support.http_servers import ScriptedResponse, ScriptedServer
from tests.support.strict_kms import run_python

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from mcp_functions.store.dynamodb import Call

SECRET = "hunter2"  # noqa: S105 - what must not come through
ARN = "arn:aws:kms:eu-west-1:111122223333:key/0a"
LAMBDA = {
    "AWS_ACCESS_KEY_ID": "AKID",
    "AWS_SECRET_ACCESS_KEY": SECRET,
    "AWS_SESSION_TOKEN": "session",
    "AWS_REGION": "eu-west-1",
    "AWS_DEFAULT_REGION": "eu-west-1",
}
VISIBLE = st.text("abcXYZ019-._~ =+/,:;", max_size=20).map(str.strip)


@pytest.fixture(autouse=True)
def _empty_home_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the developer's AWS configuration files, because with one the toolkit would call through boto3."""
    monkeypatch.setenv("HOME", str(tmp_path))


# The signature


@given(
    st.sampled_from(["/", "/2015-03-31/functions/shop_add/invocations", "/2015-03-31/functions/a%3Ab%25/invocations"]),
    st.dictionaries(st.sampled_from(["content-type", "x-amz-target", "user-agent", "x-amzn-trace-id"]), VISIBLE),
    st.binary(max_size=100),
    st.sampled_from([None, "token+/="]),
    st.integers(0, 4_000_000_000),
)
def test_a_request_has_the_signature_that_botocore_computes(
    path: str, headers: dict[str, str], body: bytes, token: str | None, at: int
) -> None:
    key = Credentials("AKID", SECRET, token)
    known = {"host": "kms.eu-west-1.amazonaws.com", **headers}
    endpoint = Endpoint("kms", "eu-west-1", "https", host=known["host"], port=443, credentials=key)
    ours = sign(path, known, body, endpoint, at)
    request = awsrequest.AWSRequest("POST", f"https://kms.eu-west-1.amazonaws.com{path}", dict(known), body)
    moment = dt.datetime.fromtimestamp(at, dt.UTC)
    with mock.patch.object(auth, "get_current_datetime", return_value=moment):
        auth.SigV4Auth(Theirs("AKID", SECRET, token), "kms", "eu-west-1").add_auth(request)
    theirs = {name.lower(): value for name, value in request.headers.items()}
    assert ours == {name: theirs[name] for name in ours}


def test_printing_credentials_does_not_show_their_secret() -> None:
    assert SECRET not in repr(Credentials("AKID", SECRET, SECRET))


# The endpoints


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


def test_a_process_reads_the_trusted_certificates_once_at_init_for_all_services(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[ssl.SSLContext] = []
    read = ssl.create_default_context

    def counted() -> ssl.SSLContext:
        made.append(read())
        return made[-1]

    monkeypatch.setattr(ssl, "create_default_context", counted)
    asked: list[ssl.SSLContext] = []

    def encrypt(connected: socket.socket, _host: str, context: ssl.SSLContext, _deadline: object) -> None:
        connected.close()
        asked.append(context)
        message = "nobody"
        raise RuntimeError(message)

    monkeypatch.setattr(connection, "_connect", lambda *_limits: socket.socket())
    monkeypatch.setattr(connection, "encrypt", encrypt)
    connection.tls_context.cache_clear()
    deadline = connection.Deadline(10)
    for service in ("kms", "dynamodb", "lambda"):
        target = aws.find_endpoint(LAMBDA, service)
        assert target is not None
        assert target.scheme == "https"
        with mock.patch.dict("os.environ", LAMBDA, clear=True):
            aws.prepare(service)
        pool = connection.ConnectionPool(target, aws.CallLimits(1, 1, 3))
        with pytest.raises(Exception, match="nobody"):
            pool.post("/", {}, b"", deadline)
    assert len(made) == 1
    assert asked == made * 3


# The calls, each by our client and by boto3's


@pytest.fixture
def service() -> Iterator[ScriptedServer]:
    with ScriptedServer().listening() as running:
        yield running


@pytest.fixture(params=["lean", "boto3"])
def client_kind(request: pytest.FixtureRequest, service: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> str:
    services = ("DYNAMODB", "KMS", "LAMBDA")
    known = {**LAMBDA, **{f"AWS_ENDPOINT_URL_{name}": f"http://{service.host}" for name in services}}
    unset = endpoints.BOTO3_VARIABLES + endpoints.TLS_VARIABLES + endpoints.PLAIN_VARIABLES
    for name in (*unset, "AWS_LAMBDA_FUNCTION_NAME", "_X_AMZN_TRACE_ID"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {**known, "MCP_AWS_CLIENT": request.param}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("time.sleep", lambda _seconds: None)
    return str(request.param)


def data_key() -> bytes:
    return json.dumps({"KeyId": ARN, "Plaintext": "a2V5", "CiphertextBlob": "d3JhcHBlZA=="}).encode()


def test_mcp_aws_client_chooses_the_client(client_kind: str) -> None:
    assert isinstance(kms_client(), KmsClient) == isinstance(lambda_client(), LambdaClient) == (client_kind == "lean")


def test_both_clients_send_kms_the_same_requests(client_kind: str, service: ScriptedServer) -> None:
    assert client_kind
    service.script += [ScriptedResponse(body=data_key()), ScriptedResponse(body=data_key())]
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


def error(status: int, code: str, *, header: bool = False) -> ScriptedResponse:
    body = json.dumps({"message": SECRET, **({} if header else {"__type": code})}).encode()
    return ScriptedResponse(status, body, {"x-amzn-errortype": f"{code}:http://internal/"} if header else {})


def outcome(client: Any, operation: str = "decrypt", **arguments: object) -> tuple[str, int]:  # noqa: ANN401
    try:
        getattr(client, operation)(**arguments or {"KeyId": ARN, "CiphertextBlob": b"x"})
    except Exception as raised:  # noqa: BLE001 - of both clients
        response = getattr(raised, "response", None)
        if response is None:
            return type(raised).__name__, 0
        return response["Error"]["Code"], response["ResponseMetadata"]["HTTPStatusCode"]
    finally:
        client.close()
    return "answered", 200


OTHER_REQUESTS = ScriptedResponse(body=data_key())


@pytest.mark.parametrize(
    ("script", "found", "asked"),
    [
        ([OTHER_REQUESTS], ("answered", 200), 1),
        ([error(400, "InvalidCiphertextException")], ("InvalidCiphertextException", 400), 1),
        ([error(400, "com.amazonaws.kms#DisabledException")], ("DisabledException", 400), 1),
        ([error(400, "AccessDeniedException")], ("AccessDeniedException", 400), 1),
        ([error(400, "ThrottlingException"), OTHER_REQUESTS], ("answered", 200), 2),
        ([error(400, "ThrottlingException")] * 3, ("ThrottlingException", 400), 3),
        ([error(500, "KMSInternalException")] * 2 + [OTHER_REQUESTS], ("answered", 200), 3),
        ([error(503, "ServiceUnavailable")] * 3, ("ServiceUnavailable", 503), 3),
        ([error(503, "KMSInvalidStateException")] * 3, ("KMSInvalidStateException", 503), 3),
        ([error(400, "RequestTimeout")] * 3, ("RequestTimeout", 400), 3),
        ([error(501, "NotImplemented")], ("NotImplemented", 501), 1),
        ([ScriptedResponse(502, b"<html>")] * 3, ("502", 502), 3),
        ([None, OTHER_REQUESTS], ("answered", 200), 2),
        ([None] * 3, ("ConnectionClosedError", 0), 3),
    ],
)
def test_a_failed_kms_request_is_retried_as_often_as_by_boto3(
    client_kind: str, service: ScriptedServer, script: list[ScriptedResponse | None], found: tuple[str, int], asked: int
) -> None:
    assert client_kind
    service.script += script
    assert outcome(kms_client()) == found
    assert len(service.asked) == asked


def test_a_kms_that_does_not_respond_is_a_read_timeout(
    client_kind: str, service: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcp_functions.seal.kms.LIMITS", aws.CallLimits(0.5, 0.05, 3))
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("AWS_ENDPOINT_URL_KMS", f"http://127.0.0.1:{silent.getsockname()[1]}")
        assert outcome(kms_client()) == ("ReadTimeoutError", 0)
    assert client_kind
    assert service.asked == []


class Dripping:
    """A server that answers a byte at a time: each when it is let, or after some milliseconds all the same."""

    def __init__(self) -> None:
        self.let, self.asked, self.body = threading.Semaphore(0), 0, data_key()
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._socket.close()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                connection, _address = self._socket.accept()
                with connection, suppress(OSError):
                    self._drip(connection)

    def _drip(self, connection: socket.socket) -> None:
        connection.recv(65536)
        self.asked += 1
        for byte in b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(self.body) + self.body:
            self.let.acquire(timeout=0.005)
            connection.sendall(bytes([byte]))


@pytest.fixture
def dripping() -> Iterator[Dripping]:
    running = Dripping()
    yield running
    running.close()


def test_a_response_that_arrives_byte_by_byte_does_not_extend_the_timeout(
    dripping: Dripping, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = aws.find_endpoint({**LAMBDA, "AWS_ENDPOINT_URL_KMS": dripping.url}, "kms")
    assert target is not None
    seconds = [0.0]

    def clock() -> float:
        seconds[0] += 0.1  # for each time that the client looks: it looks before each byte
        dripping.let.release()
        return seconds[0]

    monkeypatch.setattr("time.monotonic", clock)
    monkeypatch.setattr("time.sleep", lambda _seconds: None)
    client = KmsClient(target, aws.CallLimits(0.5, 5, 3))
    assert outcome(client) == ("ReadTimeoutError", 0)
    assert dripping.asked == 3
    assert seconds[0] < 3 * (0.5 + 5) + 1  # three attempts, and the looks after the last byte of each


@pytest.fixture
def half_of_the_longest_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the random bytes of the system make 0.5, so that a client waits for half of the longest time."""
    monkeypatch.setattr("os.urandom", lambda size: b"\x80".ljust(size, b"\0"))


@pytest.mark.usefixtures("half_of_the_longest_wait")
def test_the_pauses_between_retries_count_towards_the_time_limit_of_a_call(
    service: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = aws.find_endpoint({**LAMBDA, "AWS_ENDPOINT_URL_KMS": f"http://{service.host}"}, "kms")
    assert target is not None
    seconds, waits = [0.0], list[float]()

    def sleep(wait: float) -> None:
        waits.append(wait)
        seconds[0] += wait

    monkeypatch.setattr("time.monotonic", lambda: seconds[0])
    monkeypatch.setattr("time.sleep", sleep)
    client = KmsClient(target, aws.CallLimits(0.1, 0.2, 3))
    service.script += [error(400, "ThrottlingException")] * 3
    assert outcome(client) == ("ThrottlingException", 400)
    assert (waits, len(service.asked)) == ([0.5], 2)  # a second more would be over the 0.9 of three attempts


def test_a_closed_port_is_a_connection_error(client_kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert client_kind
    monkeypatch.setenv("AWS_ENDPOINT_URL_KMS", "http://127.0.0.1:1")
    assert outcome(kms_client()) == ("EndpointConnectionError", 0)


def test_the_client_retries_the_errors_that_botocore_retries() -> None:
    throttled, transient = vars(standard.ThrottledRetryableChecker), vars(standard.TransientRetryableChecker)
    assert set(throttled["_THROTTLED_ERROR_CODES"]) == errors.THROTTLED_CODES
    assert set(transient["_TRANSIENT_ERROR_CODES"]) == errors.TRANSIENT_CODES
    assert set(transient["_TRANSIENT_STATUS_CODES"]) == errors.TRANSIENT_STATUSES


@pytest.mark.usefixtures("half_of_the_longest_wait")
def test_the_pauses_between_retries_grow_and_are_longer_for_throttling(
    service: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = aws.find_endpoint({**LAMBDA, "AWS_ENDPOINT_URL_KMS": f"http://{service.host}"}, "kms")
    assert target is not None
    waits: list[float] = []
    monkeypatch.setattr("time.sleep", waits.append)
    for told in (error(400, "ThrottlingException"), error(500, "KMSInternalException")):
        service.script += [told] * 3
        client = KmsClient(target, aws.CallLimits(1, 1, 3))
        assert outcome(client)[1] == told.status
    assert waits == [0.5, 1.0, 0.025, 0.05]


def test_a_function_is_invoked_with_the_unchanged_event(client_kind: str, service: ScriptedServer) -> None:
    assert client_kind
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
    client_kind: str, service: ScriptedServer, response: ScriptedResponse | None
) -> None:
    assert client_kind
    service.script += [response, ScriptedResponse()]
    result = outcome(lambda_client(), "invoke", FunctionName="shop_add", Payload=b"{}")
    assert result[0] in {"ConnectionClosedError", "TooManyRequestsException", "ServiceException", "502"}
    assert len(service.asked) == 1


def test_the_client_does_not_reuse_a_connection_that_the_server_closed(
    client_kind: str, service: ScriptedServer
) -> None:
    assert client_kind
    service.script += [ScriptedResponse(hang_up=True)] * 3
    client = lambda_client()
    for _ in range(3):
        client.invoke(FunctionName="shop_add", Payload=b"{}")
        threading.Event().wait(0.05)  # until the server has closed its side
    client.close()
    assert (len(service.asked), len(service.connections)) == (3, 3)


@pytest.fixture
def thousand_open_files() -> Iterator[None]:
    """Open so many files that the next socket gets a number over 1023, which `select` refuses."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard), hard))
    with ExitStack() as files:
        for _ in range(1100):
            files.enter_context(open(os.devnull, "rb"))  # noqa: PTH123 - nothing is read
        yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("thousand_open_files")
def test_a_connection_is_reused_in_a_process_with_a_thousand_open_files(
    client_kind: str, service: ScriptedServer
) -> None:
    assert client_kind
    service.script += [ScriptedResponse()] * 2
    client = lambda_client()
    for _ in range(2):
        client.invoke(FunctionName="shop_add", Payload=b"{}")["Payload"].read()
    client.close()
    assert (len(service.asked), len(service.connections)) == (2, 1)


def test_an_invocation_passes_on_the_trace_of_lambda(
    client_kind: str, service: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert client_kind
    trace = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1;Lineage=a87bd80c:0"
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "shop_mcp")
    monkeypatch.setenv("_X_AMZN_TRACE_ID", trace)
    client = lambda_client()
    client.invoke(FunctionName="shop_add", Payload=b"{}")
    client.close()
    assert service.asked[0][1]["x-amzn-trace-id"] == trace


def test_a_worker_invocation_is_repeated_without_a_response(client_kind: str, service: ScriptedServer) -> None:
    assert client_kind
    service.script += [None, ScriptedResponse(202, b"")]
    client: Any = summons_client()
    client.invoke(FunctionName="shop_add-worker:live", InvocationType="Event", Payload=b"{}")["Payload"].read()
    client.close()
    assert [path for path, _headers, _body in service.asked] == [
        "/2015-03-31/functions/shop_add-worker%3Alive/invocations"
    ] * 2
    assert {headers["x-amz-invocation-type"] for _path, headers, _body in service.asked} == {"Event"}


# DynamoDB

ROW = {"key": {"S": "shop/add/task/-/żółw"}, "version": {"N": "1"}}
WRONG_CHECKSUM = ScriptedResponse(headers={"x-amz-crc32": "1"})
ITEM = ScriptedResponse(body=json.dumps({"Item": ROW}).encode())
PUT: dict[str, Any] = {
    "TableName": "t",
    "Item": ROW,
    "ConditionExpression": "#version = :version",
    "ExpressionAttributeNames": {"#version": "version"},
    "ExpressionAttributeValues": {":version": {"N": "1"}},
}
GET: dict[str, Any] = {"TableName": "t", "Key": {"key": ROW["key"]}, "ConsistentRead": True}


@contextmanager
def call_table() -> Iterator[Call]:
    """Make a call, and close its client in the end: a container never does."""
    call = make_call()
    try:
        yield call
    finally:
        for cell in getattr(call, "__closure__", ()):
            if hasattr(cell.cell_contents, "close"):
                cell.cell_contents.close()


def test_both_clients_send_the_table_the_same_requests(client_kind: str, service: ScriptedServer) -> None:
    service.script += [ITEM, ScriptedResponse(), ScriptedResponse()]
    with call_table() as call:
        assert call("GetItem", GET)["Item"] == ROW
        call("PutItem", PUT)
        call("DeleteItem", {"TableName": "t", "Key": {"key": ROW["key"]}})
    assert [json.loads(body) for _path, _headers, body in service.asked] == [
        GET, PUT, {"TableName": "t", "Key": {"key": ROW["key"]}},
    ]  # fmt: skip
    assert [headers["x-amz-target"] for _path, headers, _body in service.asked] == [
        "DynamoDB_20120810.GetItem", "DynamoDB_20120810.PutItem", "DynamoDB_20120810.DeleteItem",
    ]  # fmt: skip
    for path, headers, _body in service.asked:
        assert (path, headers["content-type"]) == ("/", "application/x-amz-json-1.0")
        assert "/eu-west-1/dynamodb/aws4_request" in headers["authorization"]
        assert (headers["user-agent"] == clients.USER_AGENT) == (client_kind == "lean")


def error_of_table(operation: str, request: dict[str, Any]) -> errors.Failure | None:
    try:
        with call_table() as call:
            call(operation, request)
    except Exception as error:  # noqa: BLE001 - of both clients
        return errors.read_failure(error)
    return None


CONFLICT = error(400, "com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException")


@pytest.mark.parametrize(
    ("script", "failure", "asked"),
    [
        ([CONFLICT], ("ConditionalCheckFailedException", 400), 1),
        ([error(400, "com.amazon.coral.validate#ValidationException")], ("ValidationException", 400), 1),
        ([error(400, "com.amazonaws.dynamodb.v20120810#ResourceNotFoundException")],
         ("ResourceNotFoundException", 400), 1),
        ([error(400, "ProvisionedThroughputExceededException"), ScriptedResponse()], None, 2),
        ([error(400, "ThrottlingException")] * 3, ("ThrottlingException", 400), 3),
        ([error(500, "InternalServerError"), CONFLICT], ("ConditionalCheckFailedException", 400), 2),
        ([ScriptedResponse(503, b"<html>")] * 3, ("503", 503), 3),
        ([None, ScriptedResponse()], None, 2),
        ([None] * 3, ("ConnectionClosedError", 0), 3),
        ([WRONG_CHECKSUM, ScriptedResponse(headers={"x-amz-crc32": "2745614147"})], None, 2),
    ],
    ids=str,
)  # fmt: skip
def test_both_clients_read_responses_of_the_table_alike_after_the_same_retries(
    client_kind: str,
    service: ScriptedServer,
    script: list[ScriptedResponse | None],
    failure: tuple[str, int] | None,
    asked: int,
) -> None:
    assert client_kind
    service.script += script
    assert error_of_table("PutItem", PUT) == failure
    assert len(service.asked) == asked


def test_a_table_that_does_not_respond_is_a_read_timeout(client_kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert client_kind
    monkeypatch.setattr("mcp_functions.store.dynamodb.LIMITS", aws.CallLimits(0.5, 0.05, 3))
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", f"http://127.0.0.1:{silent.getsockname()[1]}")
        assert error_of_table("GetItem", GET) == ("ReadTimeoutError", 0)


@pytest.mark.usefixtures("half_of_the_longest_wait")
def test_a_response_of_the_table_with_a_wrong_checksum_is_an_error(
    service: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = aws.find_endpoint({**LAMBDA, "AWS_ENDPOINT_URL_DYNAMODB": f"http://{service.host}"}, "dynamodb")
    assert target is not None
    waits: list[float] = []
    monkeypatch.setattr("time.sleep", waits.append)
    client = clients.DynamoDbClient(target, aws.CallLimits(1, 1, 3))
    service.script += [WRONG_CHECKSUM] * 3
    with pytest.raises(ConnectionClosedError):
        client.get_item(**GET)
    client.close()
    assert waits == [0.025, 0.05]


# Cleaning up

FORKS = """
import os, signal
from mcp_functions import aws
from mcp_functions.http import forwarding
from mcp_functions.aws.clients import LambdaClient
from mcp_functions.tasks import task_store
target = aws.find_endpoint({environment!r}, "lambda")
made = []
def make():
    made.append(LambdaClient(target, aws.CallLimits(1, 1, 1)))
    return made[-1]
task_store.lambda_client = make
door, summons = forwarding.CachedClient(make), task_store.WorkerInvoker("worker")
door().invoke(FunctionName="f", Payload=b"{{}}")
summons("task", None)
read, write = os.pipe()
if os.fork() == 0:
    signal.alarm(20)  # a connection of the parent would wait for a response that never comes
    del made[:]
    door().invoke(FunctionName="f", Payload=b"{{}}")
    summons("task", None)
    os.write(write, b"%d" % len(made))
    os._exit(0)
os.close(write)
print(os.read(read, 9).decode())
"""


def test_a_forked_child_makes_its_own_lambda_clients(service: ScriptedServer) -> None:
    environment = {**LAMBDA, "AWS_ENDPOINT_URL_LAMBDA": f"http://{service.host}"}
    assert run_python(FORKS.format(environment=environment)).strip() == "2"
    assert len(service.asked) == len(service.connections) == 4


# TLS


def test_a_client_sends_requests_only_to_a_server_with_a_trusted_certificate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate = write_certificate(tmp_path, "127.0.0.1")
    with ScriptedServer().listening(server_context(certificate)) as service:
        target = aws.find_endpoint({**LAMBDA, "AWS_ENDPOINT_URL_KMS": f"https://{service.host}"}, "kms")
        assert target is not None
        stranger = KmsClient(target, aws.CallLimits(5, 5, 3))
        assert outcome(stranger) == ("SSLError", 0)
        assert service.asked == []
        monkeypatch.setattr(connection, "tls_context", lambda: ssl.create_default_context(cafile=str(certificate)))
        service.script += [OTHER_REQUESTS, OTHER_REQUESTS]
        friend = KmsClient(target, aws.CallLimits(5, 5, 3))
        assert friend.decrypt(KeyId=ARN, CiphertextBlob=b"x")["Plaintext"] == base64.b64decode("a2V5")
        assert outcome(friend) == ("answered", 200)
        assert (len(service.asked), len(service.connections)) == (2, 1)


CONNECTS = """
import ssl, sys
from mcp_functions.aws import connection
connection.tls_context = lambda: ssl.create_default_context(cafile={certificate!r})
host, _colon, port = {host!r}.partition(":")
connection.open_connection("https", host, int(port), 5, connection.Deadline(5)).close()
print("ssl" in sys.modules, "encodings.idna" in sys.modules)
"""


def test_a_connection_to_a_host_in_ascii_does_not_import_the_idna_codec(tmp_path: Path) -> None:
    certificate = write_certificate(tmp_path, "127.0.0.1")
    with ScriptedServer().listening(server_context(certificate)) as service:
        code = CONNECTS.format(certificate=str(certificate), host=service.host)
        assert run_python(code).split() == ["True", "False"]


def test_boto3_is_imported_at_init_if_it_is_the_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCP_AWS_CLIENT", "boto3")
    script = "import sys; from mcp_functions import aws; aws.prepare('kms'); print('botocore.session' in sys.modules)"
    assert run_python(script).strip() == "True"


@pytest.mark.parametrize("make", [lambda_client, summons_client, kms_client, make_call, blobs.s3_client])
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
