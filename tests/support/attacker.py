"""A site to attack: the harness with AuthMode jwt, several functions, KMS under observation, and a clock.

The harness's issuer gives each person an access token, as in a deployment; every request goes over HTTP.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

import pytest

from mcp_functions.local import Harness, catalog, environment
from mcp_functions.local.doubles.kms import KmsApi
from mcp_functions.local.loopback import HttpResponse
from tests.local.conftest import write_functions
from tests.support import wire

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from mcp_functions.local.issuer import Issuer
    from mcp_functions.local.loopback import HttpRequest

AHEAD = "ATTACKER_SECONDS_AHEAD"  # of the functions' clock; their own variable, the toolkit knows nothing of it
ACTS = "ATTACKER_ACTS"  # file in which the functions write down what they did
CLIENT = "client"
YEARS = 10 * 366 * 86_400  # seconds
VARYING = {"date", "apigw-requestid", "x-amzn-requestid"}

HEAD = f"""
import os, time
from pathlib import Path
from typing import Literal
from pydantic import BaseModel
from mcp_functions import Elicit, prompt, resource, serve, tool

def now():
    return time.time() + float(os.environ["{AHEAD}"])

def act(what):
    with Path(os.environ["{ACTS}"]).open("a") as acts:
        acts.write(what + "\\n")

class Text(BaseModel):
    text: str
"""
APPS = {
    "travel/app.py": HEAD
    + '''
@tool
def book(city: str, *, elicit: Elicit) -> str:
    """Book a journey, in three rounds."""
    seat = elicit("seat", f"Which seat to {city}?", Text).text
    meal = elicit("meal", "Which meal?", Text).text
    act(f"booked {city}")
    return "Booked." if seat and meal else "?"

@tool
def cancel(city: str, *, elicit: Elicit) -> str:
    """Cancel a journey, in two rounds."""
    elicit("seat", f"Which seat to {city}?", Text)
    act(f"cancelled {city}")
    return "Cancelled."

@prompt
def postcard(city: str, *, elicit: Elicit) -> str:
    """Write a postcard."""
    elicit("seat", f"Which seat to {city}?", Text)
    return "Greetings."

handler = serve(book, cancel, postcard, now=now)
''',
    "bank/app.py": HEAD
    + '''
@tool
def pay(city: str, *, elicit: Elicit) -> str:
    """Pay."""
    elicit("seat", f"Which seat to {city}?", Text)
    act(f"paid {city}")
    return "Paid."

handler = serve(pay, now=now)
''',
    "ticket/app.py": HEAD
    + '''
@resource("tickets://{number}")
def ticket(number: int, *, elicit: Elicit) -> str:
    """Read a ticket."""
    elicit("seat", "Why?", Text)
    return "fire"

handler = serve(ticket, now=now)
''',
    "add/app.py": HEAD
    + '''
@tool
def add(a: int, b: int) -> int:
    """Add, and never ask."""
    return a + b

handler = serve(add, now=now)
''',
    "mcp/app.py": "from pathlib import Path\nfrom mcp_functions import serve_catalog\n"
    'handler = serve_catalog(Path(__file__).with_name("catalog.json"))\n',
}


@dataclass
class ObservedKms:
    """A KMS that records its requests and replaces responses as `weather` decides."""

    asked: list[str] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    weather: Callable[[str], HttpResponse | None] = field(default=lambda _action: None)

    def around(self, answer: Callable[[KmsApi, HttpRequest], HttpResponse]) -> Callable[..., HttpResponse]:
        """Put this between the functions and KMS."""

        def observed(kms: KmsApi, request: HttpRequest) -> HttpResponse:
            action = request.header("x-amz-target").removeprefix("TrentService.")
            if action in {"GenerateDataKey", "Decrypt"}:
                self.asked.append(action)
                self.bodies.append(request.body or b"")
                refused = self.weather(action)
                if refused:
                    return refused
            return answer(kms, request)

        return observed


def kms_refuses(code: str, status: int = 400) -> HttpResponse:
    """Write an error of KMS."""
    headers = (("content-type", "application/x-amz-json-1.1"),)
    return HttpResponse(status, headers, json.dumps({"__type": code, "message": code}).encode())


@contextmanager
def observed_kms() -> Iterator[ObservedKms]:
    """Watch every KMS that starts within the block."""
    kms = ObservedKms()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(KmsApi, "answer", kms.around(KmsApi.answer))
        yield kms


@dataclass(frozen=True)
class Answer:
    """A response over HTTP; `bytes_` is all of it that does not vary with time."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def bytes_(self) -> tuple[int, tuple[tuple[str, str], ...], bytes]:
        kept = sorted((name, value) for name, value in self.headers.items() if name not in VARYING)
        return self.status, tuple(kept), self.body

    @property
    def result(self) -> dict[str, Any]:
        result: dict[str, Any] = json.loads(self.body)["result"]
        return result

    @property
    def error(self) -> dict[str, Any]:
        error: dict[str, Any] = json.loads(self.body)["error"]
        return error

    @property
    def state(self) -> str:
        return str(self.result["requestState"])

    @property
    def asked(self) -> list[str]:
        return list(self.result.get("inputRequests", {}))


@dataclass
class Site:
    """The running site, as a client sees it, and what only its owner sees."""

    url: str
    issuer: Issuer | None
    acts: Path
    kms: ObservedKms
    answers: list[Answer] = field(default_factory=list)

    def send(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        *,
        who: str = "alice",
        client: str = CLIENT,
        route: str = "",
        **more: Any,  # noqa: ANN401
    ) -> Answer:
        """Send a request.

        Args:
            name: of a tool; `postcard` is a prompt, and a name with a colon is a resource.
            arguments: of the call; a journey to Lisbon by default.
            who: the person whose access token it carries.
            client: the OAuth client that holds the token.
            route: "/<folder>" reaches the function itself instead of the front door.
            more: params: requestState, inputResponses.

        """
        method = "resources/read" if ":" in name else "prompts/get" if name == "postcard" else "tools/call"
        target = {"uri": name} if ":" in name else {"name": name, "arguments": arguments or {"city": "Lisbon"}}
        message = wire.message(method, {**target, **more})
        headers = {**wire.headers(message), "authorization": f"Bearer {self.token(who, client)}"}
        address = urlsplit(self.url)
        connection = HTTPConnection(address.netloc, timeout=30)
        connection.request("POST", f"{address.path}{route}", json.dumps(message), headers)
        response = connection.getresponse()
        named = {name.lower(): value for name, value in response.getheaders()}
        answer = Answer(response.status, named, response.read())
        connection.close()
        self.answers.append(answer)
        return answer

    def token(self, who: str, client: str = CLIENT) -> str:
        """Return an access token that outlives every change of the clock in these tests."""
        assert self.issuer
        return self.issuer.token(subject=who, client_id=client, exp=int(time.time()) + YEARS)

    def now(self) -> float:
        """Say what the functions' clock says."""
        return time.time() + float(os.environ[AHEAD])

    def later(self, seconds: float) -> None:
        """Let time pass for the functions."""
        os.environ[AHEAD] = str(float(os.environ[AHEAD]) + seconds)

    def acted(self) -> list[str]:
        """Return the actions of the functions."""
        return self.acts.read_text().splitlines() if self.acts.exists() else []


@contextmanager
def site(root: Path, auth: Literal["jwt", "none"] = "jwt") -> Iterator[Site]:
    """Run the site in a new directory. With `auth` none it has no issuer and no known callers."""
    functions = write_functions(root / "functions", APPS)
    own: dict[str, str | None] = {AHEAD: "0", ACTS: str(root / "acts")}
    with ExitStack() as stack:
        kms = stack.enter_context(observed_kms())
        stack.enter_context(environment.applied(own))
        catalog.write(functions, catalog.generate(functions))
        harness = stack.enter_context(Harness(functions, state_dir=root / ".mcp-functions", auth=auth))
        yield Site(harness.url, harness.issuer, root / "acts", kms)
