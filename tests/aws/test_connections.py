"""Connections of the toolkit's own clients: time limits, reuse, TLS, and a process that forks."""

from __future__ import annotations

import base64
import os
import resource
import socket
import ssl
import threading
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING
from unittest import mock

import pytest

from mcp_functions import aws
from mcp_functions.aws import connection
from mcp_functions.aws.clients import KmsClient
from mcp_functions.http.forwarding import lambda_client
from tests.aws.calls import ANSWERED, ARN, DATA_KEY, KEY_RESPONSE, LAMBDA, endpoint_at, error, outcome
from tests.support.certificates import server_context, write_certificate
from tests.support.http_servers import ScriptedResponse, ScriptedServer
from tests.support.strict_kms import run_python

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class Dripping:
    """A server that answers a byte at a time: each when it is let, or after some milliseconds all the same."""

    def __init__(self) -> None:
        self.let, self.asked, self.body = threading.Semaphore(0), 0, DATA_KEY
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
    endpoint = endpoint_at("kms", dripping.url)
    seconds = [0.0]

    def clock() -> float:
        seconds[0] += 0.1  # for each time that the client looks: it looks before each byte
        dripping.let.release()
        return seconds[0]

    monkeypatch.setattr("time.monotonic", clock)
    monkeypatch.setattr("time.sleep", lambda _seconds: None)
    client = KmsClient(endpoint, aws.CallLimits(0.5, 5, 3))
    assert outcome(client) == ("ReadTimeoutError", 0)
    assert dripping.asked == 3
    assert seconds[0] < 3 * (0.5 + 5) + 1  # three attempts, and the looks after the last byte of each


@pytest.mark.usefixtures("half_of_the_longest_wait")
def test_the_pauses_between_retries_count_towards_the_time_limit_of_a_call(
    service: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint = endpoint_at("kms", f"http://{service.host}")
    seconds, waits = [0.0], list[float]()

    def sleep(wait: float) -> None:
        waits.append(wait)
        seconds[0] += wait

    monkeypatch.setattr("time.monotonic", lambda: seconds[0])
    monkeypatch.setattr("time.sleep", sleep)
    client = KmsClient(endpoint, aws.CallLimits(0.5, 3.5, 7))
    service.script += [error(400, "ThrottlingException")] * 7
    assert outcome(client) == ("ThrottlingException", 400)
    # 16 seconds more would be over the 28 of seven attempts
    assert (waits, len(service.asked)) == ([0.5, 1.0, 2.0, 4.0, 8.0], 6)


@pytest.mark.usefixtures("half_of_the_longest_wait")
def test_the_pauses_between_retries_grow_and_are_longer_for_throttling(
    service: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint = endpoint_at("kms", f"http://{service.host}")
    waits: list[float] = []
    monkeypatch.setattr("time.sleep", waits.append)
    for told in (error(400, "ThrottlingException"), error(500, "KMSInternalException")):
        service.script += [told] * 3
        client = KmsClient(endpoint, aws.CallLimits(5, 5, 3))
        assert outcome(client)[1] == told.status
    assert waits == [0.5, 1.0, 0.025, 0.05]


@pytest.mark.usefixtures("client_kind")
def test_the_client_does_not_reuse_a_connection_that_the_server_closed(service: ScriptedServer) -> None:
    service.script += [ScriptedResponse(hang_up=True)] * 3
    client = lambda_client()
    for _ in range(3):
        client.invoke(FunctionName="shop_add", Payload=b"{}")
        assert service.closed.acquire(timeout=60)
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


@pytest.mark.usefixtures("client_kind")
@pytest.mark.usefixtures("thousand_open_files")
def test_a_connection_is_reused_in_a_process_with_a_thousand_open_files(service: ScriptedServer) -> None:
    service.script += [ScriptedResponse()] * 2
    client = lambda_client()
    for _ in range(2):
        client.invoke(FunctionName="shop_add", Payload=b"{}")["Payload"].read()
    client.close()
    assert (len(service.asked), len(service.connections)) == (2, 1)


FORKS = """
import os, signal
from mcp_functions import aws
from mcp_functions.http import forwarding
from mcp_functions.aws.clients import LambdaClient
from mcp_functions.tasks import task_store
target = aws.find_endpoint({environment!r}, "lambda")
made = []
def make():
    made.append(LambdaClient(target, aws.CallLimits(5, 5, 1)))
    return made[-1]
task_store.lambda_client = make
door, summons = forwarding.CachedClient(make), task_store.WorkerInvoker("worker")
door().invoke(FunctionName="f", Payload=b"{{}}")
summons("task", None)
read, write = os.pipe()
if os.fork() == 0:
    signal.alarm(60)  # a connection of the parent would wait for a response that never comes
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
        with mock.patch.dict("os.environ", {**LAMBDA, "HOME": os.environ["HOME"]}, clear=True):
            aws.prepare(service)
        pool = connection.ConnectionPool(target, aws.CallLimits(5, 5, 3))
        with pytest.raises(Exception, match="nobody"):
            pool.post("/", {}, b"", deadline)
    assert len(made) == 1
    assert asked == made * 3


def test_a_client_sends_requests_only_to_a_server_with_a_trusted_certificate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate = write_certificate(tmp_path, "127.0.0.1")
    with ScriptedServer().listening(server_context(certificate)) as service:
        endpoint = endpoint_at("kms", f"https://{service.host}")
        stranger = KmsClient(endpoint, aws.CallLimits(5, 5, 3))
        assert outcome(stranger) == ("SSLError", 0)
        assert service.asked == []
        monkeypatch.setattr(connection, "tls_context", lambda: ssl.create_default_context(cafile=str(certificate)))
        service.script += [KEY_RESPONSE, KEY_RESPONSE]
        friend = KmsClient(endpoint, aws.CallLimits(5, 5, 3))
        assert friend.decrypt(KeyId=ARN, CiphertextBlob=b"x")["Plaintext"] == base64.b64decode("a2V5")
        assert outcome(friend) == ANSWERED
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
