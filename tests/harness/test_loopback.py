"""The HTTP server of the harness: host names, framing, limits, and its stop."""

from __future__ import annotations

import socket
import threading
from typing import TYPE_CHECKING

import pytest

from mcp_functions_harness.loopback import HttpRequest, HttpResponse, Loopback
from mcp_functions_harness.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from http.client import HTTPConnection

LIMIT = 1000


def echo(request: HttpRequest) -> HttpResponse:
    return HttpResponse(200, (("content-type", "text/plain"),), b"none" if request.body is None else request.body)


@pytest.fixture(scope="module")
def server() -> Iterator[Loopback]:
    with Loopback(max_body=LIMIT) as listening:
        listening.start(echo)
        yield listening


def exchange(server: Loopback, sent: bytes) -> bytes:
    """Send bytes as they are, and read until the server closes."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
        connection.sendall(sent)
        connection.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: connection.recv(65536), b""))


def status(received: bytes) -> int:
    return int(received.split(b" ", 2)[1])


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8000", "127.0.0.1", "127.0.0.1:1", "[::1]", "[::1]:8000"])
def test_the_loopback_server_accepts_the_names_of_this_machine(server: Loopback, host: str) -> None:
    assert status(exchange(server, f"GET / HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())) == 200


@pytest.mark.parametrize(
    "host", ["example.com", "localhost.example.com", "127.0.0.1.nip.io", "localhost:x", "a@localhost", "127.0.0.2", ""]
)
def test_a_page_that_rebinds_its_own_name_is_refused(server: Loopback, host: str) -> None:
    assert status(exchange(server, f"GET / HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())) == 403


def test_a_request_without_a_host_is_refused(server: Loopback) -> None:
    assert status(exchange(server, b"GET / HTTP/1.0\r\n\r\n")) == 403


def test_a_request_with_two_hosts_is_refused(server: Loopback) -> None:
    assert status(exchange(server, b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: example.com\r\n\r\n")) == 403


@pytest.mark.parametrize(
    ("target", "path"),
    [
        ("http://127.0.0.1:8000/mcp", "/mcp"),
        ("HTTP://LOCALHOST/mcp?a=b", "/mcp?a=b"),
        ("http://localhost", "/"),
        ("http://localhost?a=http://b/", "/?a=http://b/"),
        ("/mcp", "/mcp"),
        ("/a?b=http://example.com/", "/a?b=http://example.com/"),
    ],
)
def test_a_request_target_may_be_an_absolute_url(target: str, path: str) -> None:
    came: list[HttpRequest] = []
    with Loopback(max_body=LIMIT) as listening:
        listening.start(lambda request: came.append(request) or echo(request))  # type: ignore[func-returns-value]
        assert status(exchange(listening, f"GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())) == 200
    assert [request.target for request in came] == [path]


def test_the_host_of_an_absolute_url_takes_precedence_over_the_header() -> None:
    came: list[HttpRequest] = []
    with Loopback(max_body=LIMIT) as listening:
        listening.start(lambda request: came.append(request) or echo(request))  # type: ignore[func-returns-value]
        ours = exchange(listening, b"GET http://localhost:1/ HTTP/1.1\r\nHost: example.com\r\n\r\n")
        assert status(ours) == 200
    assert [value for request in came for name, value in request.headers if name == "Host"] == ["localhost:1"]


@pytest.mark.parametrize("url", ["http://example.com/", "http://a@localhost/", "http:///", "http://localhost:x/"])
def test_an_absolute_url_with_another_host_is_refused(server: Loopback, url: str) -> None:
    assert status(exchange(server, f"GET {url} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())) == 403


def test_a_client_that_waits_for_100_before_it_sends_its_body_is_answered(server: Loopback) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
        connection.sendall(post("Content-Length: 2\r\nExpect: 100-continue\r\n", b""))
        interim = connection.recv(65536)
        assert interim == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(b"ab")
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    assert status(answer) == 200
    assert answer.endswith(b"\r\n\r\nab")


def test_one_connection_carries_many_requests(server: Loopback, connect: Callable[[str], HTTPConnection]) -> None:
    connection = connect(server.url)
    for number in range(3):
        connection.request("POST", "/", f"{number}")
        answer = connection.getresponse()
        assert (answer.read(), answer.will_close) == (f"{number}".encode(), False)


def test_the_server_disables_the_delay_of_small_packets(server: Loopback, monkeypatch: pytest.MonkeyPatch) -> None:
    options: list[tuple[int, ...]] = []
    set_option = socket.socket.setsockopt

    def remember(self: socket.socket, *option: int) -> None:
        options.append(option)
        set_option(self, *option)

    monkeypatch.setattr(socket.socket, "setsockopt", remember)
    exchange(server, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert (socket.IPPROTO_TCP, socket.TCP_NODELAY, True) in options


def test_the_server_listens_on_loopback_only(server: Loopback) -> None:
    assert server.url == f"http://127.0.0.1:{server.port}"
    with Loopback(port=0, max_body=1) as other:
        assert other._server.socket.getsockname()[0] == "127.0.0.1"  # noqa: SLF001 - nothing outside tells


def test_head_has_a_length_and_no_body(server: Loopback) -> None:
    received = exchange(server, b"HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert b"content-length: 4" in received
    assert received.endswith(b"\r\n\r\n")


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_the_server_passes_on_any_method(server: Loopback, method: str) -> None:
    assert exchange(server, f"{method} / HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()).endswith(b"none")


def test_an_unknown_method_is_refused_in_json(server: Loopback) -> None:
    received = exchange(server, b"BREW / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert status(received) == 501
    assert b"application/json" in received


def test_malformed_http_is_refused(server: Loopback) -> None:
    assert status(exchange(server, b"\x16\x03\x01 hello there you\r\n\r\n")) == 400


def post(headers: str, body: bytes) -> bytes:
    return f"POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\r\n".encode() + body


def test_the_chunks_of_a_body_are_joined(server: Loopback) -> None:
    chunks = b"3\r\nabc\r\nA;ext=1\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n"
    assert exchange(server, post("Transfer-Encoding: chunked\r\n", chunks)).endswith(b"\r\n\r\nabc0123456789")


@pytest.mark.parametrize(
    "chunks",
    [b"x\r\n", b"-1\r\n", b"3\r\nabcd\r\n0\r\n\r\n", b"5\r\nab", b"0\r\nno end", b"11111111111111111\r\n", b"\r\n"],
)
def test_malformed_chunks_are_refused(server: Loopback, chunks: bytes) -> None:
    assert status(exchange(server, post("Transfer-Encoding: chunked\r\n", chunks))) == 400


@pytest.mark.parametrize(
    "headers",
    [
        "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n",
        "Content-Length: 2\r\nContent-Length: 3\r\n",
        "Content-Length: +2\r\n",
        "Content-Length: two\r\n",
        "Content-Length: 9\r\n",
        "Transfer-Encoding: gzip, chunked\r\n",
    ],
)
def test_ambiguous_framing_of_a_body_is_refused(server: Loopback, headers: str) -> None:
    assert status(exchange(server, post(headers, b"ab"))) == 400


def test_a_body_of_the_largest_size_is_accepted_and_a_larger_one_is_refused(server: Loopback) -> None:
    assert status(exchange(server, post(f"Content-Length: {LIMIT}\r\n", b"a" * LIMIT))) == 200
    over = exchange(server, post(f"Content-Length: {LIMIT + 1}\r\n", b"a" * (LIMIT + 1)))
    assert status(over) == 413
    assert over.endswith(b'{"message": "Request Entity Too Large"}')


def test_chunks_over_the_limit_are_refused(server: Loopback) -> None:
    chunks = b"200\r\n" + b"a" * 0x200 + b"\r\n"
    assert status(exchange(server, post("Transfer-Encoding: chunked\r\n", chunks * 3 + b"0\r\n\r\n"))) == 413


def test_a_port_in_use_is_a_problem(server: Loopback) -> None:
    with pytest.raises(Problem, match=f"port {server.port} cannot be used .*in use.*--port"):
        Loopback(port=server.port, max_body=1)


def test_an_invalid_port_is_an_error() -> None:
    with pytest.raises(Problem, match="ports are 0 to 65535"):
        Loopback(port=70000, max_body=1)


def test_stopping_closes_idle_connections_and_leaves_no_thread(connect: Callable[[str], HTTPConnection]) -> None:
    before = set(threading.enumerate())
    with Loopback(max_body=LIMIT) as listening:
        listening.start(echo)
        idle = connect(listening.url)
        idle.request("GET", "/")
        idle.getresponse().read()
    assert set(threading.enumerate()) <= before
    with pytest.raises(OSError, match=r".*"):
        connect(listening.url).request("GET", "/")


def test_stopping_the_server_completes_a_response_in_progress(connect: Callable[[str], HTTPConnection]) -> None:
    asked, stopping = threading.Event(), threading.Event()

    def slowly(_request: HttpRequest) -> HttpResponse:
        asked.set()
        stopping.wait(60)
        return HttpResponse(200, (), b"done")

    listening = Loopback(max_body=LIMIT)
    listening.start(slowly)
    waiting = connect(listening.url)
    waiting.request("GET", "/")
    asked.wait(60)
    end = threading.Thread(target=listening.stop)
    end.start()
    stopping.set()
    assert waiting.getresponse().read() == b"done"
    end.join()


def test_a_client_that_closes_its_connection_causes_no_output(
    server: Loopback, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.sendall(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nab")
    assert status(exchange(server, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")) == 200
    assert capsys.readouterr().err == ""
