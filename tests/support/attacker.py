"""A site to attack: the harness with AuthMode jwt, four functions, a KMS that is observed, and a clock.

    with site(tmp_path) as running:
        first = running.send("book", who="alice")                                   asks for the seat
        running.send("book", who="mallory", requestState=first.state, …)            must be refused
        running.later(seconds=3600)                                                 the state expires
        assert running.acted() == []                                                nothing was booked

Each person has an access token of the harness's issuer, as in a deployment. Every request goes over HTTP.
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

from mcp_functions_harness import Harness, catalog, environment
from mcp_functions_harness.doubles.kms import KmsApi
from mcp_functions_harness.loopback import HttpResponse
from tests.harness.conftest import write_functions
from tests.support import wire
from tests.support.strict_kms import START

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from mcp_functions_harness.issuer import Issuer
    from mcp_functions_harness.loopback import HttpRequest

# environment variables of the functions below; the toolkit does not read them
CLOCK_VARIABLE = "ATTACKER_CLOCK"  # the time of the functions, in unix seconds; only `Site.later` advances it
ACTS_FILE_VARIABLE = "ATTACKER_ACTS"  # the file into which the functions write what they did
CLIENT = "client"  # the id of the OAuth client
TOKEN_SECONDS = 10 * 366 * 86_400  # longer than any change of the clock in the tests
VARYING_HEADERS = {"date", "apigw-requestid", "x-amzn-requestid"}  # they differ from response to response

APP_IMPORTS = f"""
import os
from pathlib import Path
from typing import Literal
from pydantic import BaseModel
from mcp_functions import Elicit, prompt, resource, serve, tool

def now():
    return float(os.environ["{CLOCK_VARIABLE}"])

def act(what):
    with Path(os.environ["{ACTS_FILE_VARIABLE}"]).open("a") as acts:
        acts.write(what + "\\n")

class Text(BaseModel):
    text: str
"""
APPS = {
    "travel/app.py": APP_IMPORTS
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
    "bank/app.py": APP_IMPORTS
    + '''
@tool
def pay(city: str, *, elicit: Elicit) -> str:
    """Pay."""
    elicit("seat", f"Which seat to {city}?", Text)
    act(f"paid {city}")
    return "Paid."

handler = serve(pay, now=now)
''',
    "ticket/app.py": APP_IMPORTS
    + '''
@resource("tickets://{number}")
def ticket(number: int, *, elicit: Elicit) -> str:
    """Read a ticket."""
    elicit("seat", "Why?", Text)
    return "fire"

handler = serve(ticket, now=now)
''',
    "add/app.py": APP_IMPORTS
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
    """Records the requests to a KMS, and may refuse them.

    Attributes:
        asked: the operations of the requests, "GenerateDataKey" or "Decrypt".
        bodies: the bodies of the requests.
        refuse: called with the operation of each request; returns an error instead of KMS's response, or None.
    """

    asked: list[str] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    refuse: Callable[[str], HttpResponse | None] = field(default=lambda _operation: None)

    def around(self, answer: Callable[[KmsApi, HttpRequest], HttpResponse]) -> Callable[..., HttpResponse]:
        """Return a method that replaces `KmsApi.answer`."""

        def observed(kms: KmsApi, request: HttpRequest) -> HttpResponse:
            operation = request.header("x-amz-target").removeprefix("TrentService.")
            if operation in {"GenerateDataKey", "Decrypt"}:
                self.asked.append(operation)
                self.bodies.append(request.body or b"")
                refusal = self.refuse(operation)
                if refusal:
                    return refusal
            return answer(kms, request)

        return observed


def kms_refuses(code: str, status: int = 400) -> HttpResponse:
    """Return an error as KMS writes it."""
    headers = (("content-type", "application/x-amz-json-1.1"),)
    return HttpResponse(status, headers, json.dumps({"__type": code, "message": code}).encode())


@contextmanager
def observed_kms() -> Iterator[ObservedKms]:
    """Observe every KMS that answers within the block."""
    kms = ObservedKms()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(KmsApi, "answer", kms.around(KmsApi.answer))
        yield kms


@dataclass(frozen=True)
class Answer:
    """An HTTP response."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def comparable(self) -> tuple[int, tuple[tuple[str, str], ...], bytes]:
        """Everything that may not differ between two refusals: status, headers and body."""
        kept = sorted((name, value) for name, value in self.headers.items() if name not in VARYING_HEADERS)
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
    """The running site.

    Attributes:
        url: the URL of the endpoint.
        issuer: gives access tokens; None without authentication.
        acts: the file with what the functions did.
        kms: the requests to KMS.
        answers: every response so far.
    """

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
        """Send a request, and return the response.

        Args:
            name: the name of a tool or of the prompt `postcard`, or the URI of a resource.
            arguments: the arguments of the call; a journey to Lisbon by default.
            who: the person whose access token the request has.
            client: the OAuth client that holds the token.
            route: "/<folder>" for the function itself; "" for the front door.
            more: more params: requestState, inputResponses.
        """
        method = "prompts/get" if name == "postcard" else "tools/call"
        params: dict[str, Any] = {"name": name, "arguments": arguments or {"city": "Lisbon"}}
        if ":" in name:
            method = "resources/read"
            params = {"uri": name}
        message = wire.message(method, {**params, **more})
        headers = {**wire.headers(message), "authorization": f"Bearer {self.token(who, client)}"}
        address = urlsplit(self.url)
        connection = HTTPConnection(address.netloc, timeout=60)
        connection.request("POST", f"{address.path}{route}", json.dumps(message), headers)
        response = connection.getresponse()
        response_headers = {name.lower(): value for name, value in response.getheaders()}
        answer = Answer(response.status, response_headers, response.read())
        connection.close()
        self.answers.append(answer)
        return answer

    def token(self, who: str, client: str = CLIENT) -> str:
        """Return an access token of a person."""
        assert self.issuer
        return self.issuer.token(subject=who, client_id=client, exp=int(time.time()) + TOKEN_SECONDS)

    def now(self) -> float:
        """Return the time of the functions' clock, in unix seconds."""
        return float(os.environ[CLOCK_VARIABLE])

    def later(self, seconds: float) -> None:
        """Advance the functions' clock."""
        os.environ[CLOCK_VARIABLE] = str(self.now() + seconds)

    def acted(self) -> list[str]:
        """Return what the functions did, one text for each action, as in "booked Lisbon"."""
        return self.acts.read_text().splitlines() if self.acts.exists() else []


@contextmanager
def site(root: Path, auth: Literal["jwt", "none"] = "jwt") -> Iterator[Site]:
    """Run the site in a new directory. With `auth` "none", it has no issuer, and does not know its callers."""
    functions = write_functions(root / "functions", APPS)
    own: dict[str, str | None] = {CLOCK_VARIABLE: str(START), ACTS_FILE_VARIABLE: str(root / "acts")}
    with ExitStack() as stack:
        kms = stack.enter_context(observed_kms())
        stack.enter_context(environment.applied(own))
        catalog.write(functions, catalog.generate(functions))
        harness = stack.enter_context(Harness(functions, state_dir=root / ".mcp-functions", auth=auth))
        yield Site(harness.url, harness.issuer, root / "acts", kms)
