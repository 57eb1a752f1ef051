"""The Runtime API of an environment answers its own process, and no page in a browser."""

from __future__ import annotations

from contextlib import closing
from http.client import HTTPConnection
from typing import TYPE_CHECKING

import pytest

from mcp_functions_harness.runtime.api import BASE, Ready, Response, RuntimeApi, Task

from .conftest import PID

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .conftest import Stack

NEXT, INIT_ERROR = f"{BASE}/invocation/next", f"{BASE}/init/error"
Header = tuple[str, str]


@pytest.fixture
def api() -> Iterator[RuntimeApi]:
    running = RuntimeApi()
    yield running
    running.stop()


def ask(api: RuntimeApi, method: str, path: str, *headers: Header, body: bytes = b"") -> tuple[int, bytes]:
    """Send one request; Host is the address of the API if no header says otherwise."""
    with closing(HTTPConnection(api.address, timeout=60)) as connection:
        connection.putrequest(method, path, skip_host=any(name == "host" for name, _value in headers))
        for header in (*headers, ("content-length", str(len(body)))):
            connection.putheader(*header)
        connection.endheaders(body)
        response = connection.getresponse()
        return response.status, response.read()


@pytest.mark.parametrize(
    "header",
    [
        ("origin", "https://evil.example"),
        ("origin", "null"),
        ("origin", ""),
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-site", "same-site"),
        ("sec-fetch-site", "same-origin"),
        ("host", "evil.example"),
        ("host", "127.0.0.1"),
        ("host", "127.0.0.1:1"),
        ("host", "localhost:{port}"),
    ],
    ids=str,
)
def test_a_web_page_cannot_call_the_runtime_api(api: RuntimeApi, header: Header) -> None:
    header = header[0], header[1].format(port=api.address.rpartition(":")[2])
    api.give(Task("r-1", b"{}", "arn", "trace"))
    asked = [("GET", NEXT), ("POST", INIT_ERROR), ("POST", f"{BASE}/invocation/r-1/response")]
    for method, path in asked:
        status, body = ask(api, method, path, header, body=b"" if method == "GET" else b"{}")
        assert (status, b"r-1" in body) == (403, False)
    assert api.events.empty()
    assert ask(api, "GET", NEXT)[1] == b"{}"  # the event is still there


def test_the_runtime_api_accepts_the_process_of_the_environment(api: RuntimeApi) -> None:
    api.give(Task("r-1", b"{}", "arn", "trace"))
    assert ask(api, "GET", NEXT, ("sec-fetch-site", "none")) == (200, b"{}")
    assert ask(api, "POST", f"{BASE}/invocation/r-1/response", body=b"5")[0] == 202
    assert [api.events.get(), api.events.get()] == [Ready(), Response(b"5")]


def test_the_runtime_api_accepts_the_runtime_client_of_lambda(deploy: Callable[..., Stack]) -> None:
    assert deploy({"tells": PID}).value("tells") > 0
