"""The harness with `auth="jwt"`: which routes require a token, and what a function gets of it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from mcp_functions_harness import Harness, authorization, catalog

from .conftest import write_functions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from http.client import HTTPConnection
    from pathlib import Path

    from mcp_functions_harness.issuer import Issuer

    Ask = Callable[..., tuple[int, dict[str, str], Any]]

ECHO = """
import json
def handler(event, context):
    return {"statusCode": 200, "headers": {"content-type": "application/json"}, "body": json.dumps(event)}
"""
CHALLENGES = """
def handler(event, context):
    return {"statusCode": 403, "headers": {"WWW-Authenticate": "Bearer error=insufficient_scope"}, "body": "{}"}
"""
SEEN = "import os\nSEEN = dict(os.environ)\ndef handler(event, context): return SEEN\n"
FRONT = """
from pathlib import Path
from mcp_functions import serve_catalog

handler = serve_catalog(Path(__file__).with_name("catalog.json"))
"""
LOGGED = """
import json
from mcp_functions import Caller, serve, tool

@tool
def whoami(*, caller: Caller) -> str:
    return caller.subject

served = serve(whoami)
def handler(event, context):  # an author's own log
    print(json.dumps(event))
    return served(event, context)
handler.handlers = served.handlers
"""
FUNCTIONS = {"mcp/app.py": ECHO, "echo/app.py": ECHO, "challenges/app.py": CHALLENGES, "seen/app.py": SEEN}


@pytest.fixture(scope="module")
def harness(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Harness]:
    root = tmp_path_factory.mktemp("project")
    with Harness(write_functions(root / "functions", FUNCTIONS), state_dir=root / "s", auth="jwt") as running:
        yield running


@pytest.fixture
def issuer(harness: Harness) -> Issuer:
    assert harness.issuer
    return harness.issuer


@pytest.fixture
def ask(harness: Harness, connect: Callable[[str], HTTPConnection]) -> Ask:
    def send(method: str, path: str, token: str | None = None) -> tuple[int, dict[str, str], Any]:
        connection = connect(harness.url)
        connection.request(method, path, headers={"Authorization": f"Bearer {token}"} if token else {})
        answer = connection.getresponse()
        text = answer.read()
        return answer.status, dict(answer.getheaders()), json.loads(text) if text else None

    return send


@pytest.mark.parametrize("path", ["/mcp", "/mcp/echo"])
@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
def test_an_endpoint_requires_a_token(method: str, path: str, ask: Ask, harness: Harness) -> None:
    before = len(harness.invocations)
    assert ask(method, path)[0] == 401
    assert len(harness.invocations) == before


@pytest.mark.parametrize("path", ["/mcp", "/mcp/echo"])
def test_a_function_gets_the_principal_of_the_token(path: str, ask: Ask, issuer: Issuer) -> None:
    status, _, event = ask("POST", path, issuer.token(subject="ann", scope="work:read"))
    assert (status, event["routeKey"]) == (200, f"ANY {path}")
    told = event["requestContext"]["authorizer"]["jwt"]
    assert told["scopes"] is None
    assert (told["claims"]["sub"], told["claims"]["scope"]) == ("ann", "work:read")
    assert all(isinstance(value, str) for value in told["claims"].values())


@pytest.mark.parametrize(
    ("version", "meta"),
    [
        (
            "2026-07-28",
            {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
            },
        ),
        ("2025-11-25", {}),
    ],
)
def test_a_function_behind_the_endpoint_gets_the_principal_and_no_token(
    version: str,
    meta: dict[str, Any],
    tmp_path: Path,
    connect: Callable[[str], HTTPConnection],
    capsys: pytest.CaptureFixture[str],
) -> None:
    functions = write_functions(tmp_path / "functions", {"mcp/app.py": FRONT, "whoami/app.py": LOGGED})
    catalog.write(functions, catalog.generate(functions))
    params = {"name": "whoami", "arguments": {}, "_meta": meta}
    with Harness(functions, state_dir=tmp_path / "s", auth="jwt") as running:
        assert running.issuer
        headers = {
            "Authorization": f"Bearer {running.issuer.token(subject='ann')}",
            "Cookie": "a=secret-cookie",
            "Content-Type": "application/json",
            "Mcp-Protocol-Version": version,
            "Mcp-Method": "tools/call",
            "Mcp-Name": "whoami",
        }
        connection = connect(running.url)
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        connection.request("POST", "/mcp?access_token=secret-query", json.dumps(message), headers)
        assert b'"text":"ann"' in connection.getresponse().read()
    (event,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith('{"version"')]
    assert json.loads(event)["requestContext"]["authorizer"]["jwt"]["claims"]["sub"] == "ann"
    assert "Bearer" not in event
    assert "secret-" not in event


@pytest.mark.parametrize("path", ["", "/mcp"])
@pytest.mark.parametrize("method", ["GET", "OPTIONS"])
def test_the_metadata_of_the_endpoint_requires_no_token(method: str, path: str, ask: Ask) -> None:
    route = f"/.well-known/oauth-protected-resource{path}"
    status, _, event = ask(method, route)
    assert (status, event["routeKey"], event["rawPath"]) == (200, f"ANY {route}", route)
    assert "authorizer" not in event["requestContext"]


def test_a_preflight_requires_no_token(ask: Ask) -> None:
    status, _, event = ask("OPTIONS", "/mcp")
    assert (status, event["routeKey"]) == (200, "OPTIONS /mcp")
    assert ask("OPTIONS", "/mcp/echo")[0] == 401


def test_without_functions_mcp_the_metadata_and_the_token_of_the_page_have_every_scope(
    tmp_path: Path, connect: Callable[[str], HTTPConnection]
) -> None:
    close = "from mcp_functions import serve, tool\n\n@tool(scopes=['work:write'])\ndef close() -> str: ...\n\n"
    functions = write_functions(tmp_path / "functions", {"close/app.py": f"{close}handler = serve(close)\n"})
    with Harness(functions, state_dir=tmp_path / "s", auth="jwt") as running:
        connection = connect(running.url)
        connection.request("GET", "/.well-known/oauth-protected-resource/mcp")
        assert json.loads(connection.getresponse().read())["scopes_supported"] == ["work:write"]
        token = authorization.make_token(running.issuer, functions)
        assert token
        assert token["scopes"] == ("work:write",)


@pytest.mark.parametrize("path", ["/.well-known/oauth-protected-resource/other", "/.well-known/", "/token", "/jwks"])
def test_no_other_path_is_routed(path: str, ask: Ask, issuer: Issuer) -> None:
    assert ask("GET", path, issuer.token())[0] == 404


def test_the_challenge_of_a_function_is_sent_under_another_header_name(ask: Ask, issuer: Issuer) -> None:
    status, headers, _ = ask("POST", "/mcp/challenges", issuer.token())
    assert (status, headers["x-amzn-remapped-www-authenticate"]) == (403, "Bearer error=insufficient_scope")
    assert "www-authenticate" not in headers


def test_functions_get_the_variables_of_the_template(harness: Harness, issuer: Issuer) -> None:
    seen = harness.functions["seen"].handler({}, None)
    assert {name: value for name, value in seen.items() if name.startswith(("MCP_AUTH", "MCP_JWT", "MCP_RES"))} == {
        "MCP_AUTH_MODE": "jwt",
        "MCP_JWT_ISSUER": issuer.url,
        "MCP_JWT_AUDIENCE": harness.url,
        "MCP_RESOURCE_URL": harness.url,
    }


def test_the_issuer_leaves_no_thread_port_or_variable_after_the_harness_stopped(tmp_path: Path) -> None:
    threads, environment = set(threading.enumerate()), dict(os.environ)
    directory = write_functions(tmp_path / "functions", {"a/app.py": ECHO})
    with Harness(directory, state_dir=tmp_path / "s", auth="jwt") as running:
        assert running.issuer
        port = urlsplit(running.issuer.url).port
    assert (set(threading.enumerate()) - threads, dict(os.environ)) == (set(), environment)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))


def test_a_harness_without_auth_has_no_issuer_and_no_metadata(
    tmp_path: Path, connect: Callable[[str], HTTPConnection]
) -> None:
    directory = write_functions(tmp_path / "functions", {"mcp/app.py": ECHO})
    with Harness(directory, state_dir=tmp_path / "s") as running:
        assert running.issuer is None
        connection = connect(running.url)
        connection.request("GET", "/.well-known/oauth-protected-resource")
        assert connection.getresponse().status == 404


def test_serve_names_the_issuer_and_prints_a_token(tmp_path: Path, connect: Callable[[str], HTTPConnection]) -> None:
    write_functions(tmp_path / "functions", {"echo/app.py": ECHO})
    command = [sys.executable, "-W", "error", "-m", "mcp_functions_harness", "serve", "--port", "0", "--auth", "jwt"]
    with subprocess.Popen(command, cwd=tmp_path, text=True, stdout=subprocess.PIPE) as serving:  # noqa: S603
        assert serving.stdout
        said: list[str] = []
        while not said or "Ctrl-C" not in said[-1]:
            said.append(serving.stdout.readline().rstrip("\n"))
            assert said[-1] or serving.poll() is None
        url = said[0].split()[-1]
        connection = connect(url)
        connection.request("POST", "/mcp/echo", headers={"Authorization": f"Bearer {said[-2]}"})
        claims = json.loads(connection.getresponse().read())["requestContext"]["authorizer"]["jwt"]["claims"]
        serving.terminate()
    assert (claims["sub"], claims["aud"]) == ("local-user", url)
    assert f"AuthMode is jwt: a call needs an access token for {url} of {claims['iss']}." in said
