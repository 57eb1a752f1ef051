"""A small project with a question and a task, and a proxy before its harness that changes requests or responses."""

from __future__ import annotations

import json
from http.client import HTTPConnection
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from mcp_functions_harness import Harness, command
from mcp_functions_harness.loopback import HttpRequest, HttpResponse, Loopback, json_response
from tests.harness.conftest import write_functions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Gate = Callable[[Callable[[HttpRequest], HttpRequest | HttpResponse]], str]

FUNCTIONS = {
    "mcp/app.py": """
from pathlib import Path
from mcp_functions import serve_catalog

handler = serve_catalog(Path(__file__).with_name("catalog.json"))
""",
    "greet/app.py": '''
from typing import Literal
from mcp_functions import Elicit, serve, tool

@tool
def greet(*, elicit: Elicit) -> str:
    """Greet whoever is there."""
    name = elicit("who", "Who is there?", str)
    if name == "nobody":
        raise RuntimeError(name)
    return f"{elicit('how', 'How?', Literal['Hello', 'Servus'])} {name}"

handler = serve(greet)
''',
    "delete/app.py": '''
from mcp_functions import serve, tool

@tool
def delete(name: str) -> str:
    """Delete somebody: nobody may call it without being told to."""
    raise RuntimeError(name)

handler = serve(delete)
''',
    "count/app.py": '''
from mcp_functions import Elicit, serve, tool

@tool(task="required")
def count(most: int, *, elicit: Elicit) -> int:
    """Count."""
    return sum(range(most)) if elicit("sure", "Are you sure?", bool) else 0

handler = serve(count)
''',
    "letter/app.py": '''
from mcp_functions import Elicit, prompt, serve

@prompt
def letter(topic: str, *, elicit: Elicit) -> str:
    """Draft a letter."""
    return f"A letter on {topic} to {elicit('reader', 'Who reads it?', str)}"

handler = serve(letter)
''',
}
FOLDERS = 4  # without the endpoint
SIGNER = Credentials("AKIAEXAMPLE", "example")


class Verified(NamedTuple):
    """The exit code of the command, and the outcome and text of each check."""

    code: int
    lines: dict[str, tuple[str, str]]

    def failed(self) -> dict[str, str]:
        return {name: text for name, (outcome, text) in self.lines.items() if outcome == "FAILED"}


@pytest.fixture(scope="session")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the project's functions and their catalog."""
    written = write_functions(tmp_path_factory.mktemp("project") / "functions", FUNCTIONS)
    assert command.run(["catalog", "--functions", str(written)]) == 0
    return written


@pytest.fixture(scope="module")
def harness(directory: Path) -> Iterator[Harness]:
    with Harness(directory, state_dir=directory.parent / "open") as running:
        yield running


@pytest.fixture
def verify(directory: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., Verified]:
    """Run the command for this project."""

    def run(target: str, *words: str) -> Verified:
        code = command.run(["verify", target, "--functions", str(directory), *words])
        out, _functions = capsys.readouterr()
        lines = {}
        for line in out.splitlines():
            outcome, _, rest = line.partition(" ")
            name, _, text = rest.strip().partition(": ")
            lines[name] = (outcome, text)
        assert {outcome for outcome, _ in lines.values()} <= {"ok", "FAILED", "skipped"}, out
        return Verified(code, lines)

    return run


@pytest.fixture
def gate() -> Iterator[Callable[..., str]]:
    """Put a gate before a harness, and return the endpoint's URL there."""
    with Loopback(max_body=1_000_000) as loopback:

        def start(
            url: str,
            decide: Callable[[HttpRequest], HttpRequest | HttpResponse],
            told: Callable[[str], object] = lambda _request_id: None,
        ) -> str:
            def answer(request: HttpRequest) -> HttpResponse:
                decided = decide(request)
                if isinstance(decided, HttpResponse):
                    return decided
                response = forward(url, decided)
                told(dict(response.headers).get("apigw-requestid", ""))
                return response

            loopback.start(answer)
            return f"{loopback.url}/mcp"

        yield start


def forward(url: str, request: HttpRequest) -> HttpResponse:
    kept = {name: value for name, value in request.headers if name.lower() not in {"host", "connection"}}
    connection = HTTPConnection(urlsplit(url).netloc, timeout=60)
    try:
        connection.request(request.method, request.target, request.body, kept)
        response = connection.getresponse()
        hop = {"connection", "content-length", "date"}
        headers = tuple((name.lower(), value) for name, value in response.getheaders() if name.lower() not in hop)
        return HttpResponse(response.status, headers, response.read())
    finally:
        connection.close()


def demand_signature(request: HttpRequest) -> HttpRequest | HttpResponse:
    """Refuse a request without a valid signature, as the authorizer of API Gateway does; OPTIONS needs none."""
    if request.method == "OPTIONS":
        return request
    given = request.header("authorization")
    signed = given.partition("SignedHeaders=")[2].partition(",")[0].split(";")
    headers = {name: value for name, value in request.headers if name.lower() in signed}
    asked = AWSRequest(request.method, f"http://{request.header('host')}{request.target}", headers, request.body)
    asked.context["timestamp"] = request.header("x-amz-date")
    signer = SigV4Auth(SIGNER, "execute-api", "eu-central-1")
    signature = signer.signature(signer.string_to_sign(asked, signer.canonical_request(asked)), asked)
    if not given or not given.endswith(f"Signature={signature}"):
        return json_response(403, {"message": "Forbidden"})
    return HttpRequest(request.method, request.target, headers_without(request, "authorization"), request.body)


def headers_without(request: HttpRequest, name: str) -> tuple[tuple[str, str], ...]:
    return tuple(pair for pair in request.headers if pair[0].lower() != name)


def damage_state(request: HttpRequest) -> HttpRequest:
    """Change a character of the state that a client brings."""
    message = json.loads(request.body or b"{}")
    state = message.get("params", {}).get("requestState")
    if state is None:
        return request
    message["params"]["requestState"] = state[:-2] + ("A" if state[-2] != "A" else "B") + state[-1]
    return HttpRequest(request.method, request.target, request.headers, json.dumps(message).encode())
