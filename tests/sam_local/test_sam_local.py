"""A developer's machine: built zips and layers, in containers, under the real SAM CLI. tests/deployed has the rest.

`sam local invoke` makes a container for every event and removes it after, so nothing that a conversation knows can be
in a process; the servers keep theirs, for the sake of time. They reach the harness's KMS over the engine's bridge, for
SAM has no way to the machine's own network: even with `--docker-network host` it leaves containers on the bridge.
"""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import closing, suppress
from dataclasses import replace
from http.client import OK, HTTPConnection
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from tests.clients.people import Person, accept, text
from tests.docs.pages import Page
from tests.sam_local.engine import ROOT
from tests.support import gateways, wire

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.sam_local.sam import Sam

HERE = Path(__file__).parent
EVENTS = ROOT / "events"
RESOLVE = {"workItemId": 4522, "fields": {"System.State": "Resolved"}}
RESOLVED = "Bug #4522 resolved as Duplicate of Bug #4301. State set to Resolved and duplicate link created."
KEPT = ("--warm-containers", "LAZY")
ENDPOINTS = ("/mcp/update_work_item", "/mcp")
COMMAND = [sys.executable, "-m", "mcp_functions_harness"]


@pytest.fixture(scope="module")
def lambdas(sam: Sam, exported: dict[str, str]) -> Iterator[str]:
    """Lambda's Invoke API, where this machine and its containers reach it."""
    host = urlsplit(exported["AWS_ENDPOINT_URL_KMS"]).hostname or ""
    bound = "127.0.0.1" if host.endswith(".internal") else host
    with sam.serving("start-lambda", *KEPT, host=bound) as url:
        yield url


@pytest.fixture(scope="module")
def api(sam: Sam, lambdas: str, exported: dict[str, str]) -> Iterator[str]:
    inside = f"http://{urlsplit(exported['AWS_ENDPOINT_URL_KMS']).hostname}:{urlsplit(lambdas).port}"
    exports = {**exported, "AWS_ENDPOINT_URL_LAMBDA": inside}
    with replace(sam, exported=exports).serving("start-api", *KEPT) as url:
        for path in ENDPOINTS:
            _awake(url, path)
        yield url


def _awake(url: str, path: str) -> None:
    """Have a container started: a client that gets an error for a first answer takes the server for one of 2025."""
    message = wire.message("server/discover")
    for _ in range(3):
        connection = HTTPConnection(urlsplit(url).netloc, timeout=90)
        with suppress(OSError), closing(connection):
            connection.request("POST", path, json.dumps(message), wire.headers(message))
            if connection.getresponse().status == OK:
                return


@pytest.mark.parametrize("path", ENDPOINTS, ids=["at its own endpoint", "by the front door"])
def test_the_official_client_completes_a_conversation(path: str, api: str) -> None:
    person = Person(accept(resolution="Duplicate"), accept(duplicateOfId=4301))
    assert text(person.call_tool(api + path, "update_work_item", RESOLVE)) == RESOLVED
    assert [message.partition(" ")[0] for message, _ in person.asked] == ["Resolving", "Since"]


def test_the_recorded_events_run_the_same_conversation(sam: Sam, tmp_path: Path) -> None:
    event = EVENTS / "update_work_item" / "1-resolve.json"
    for following in ("2-resolution.json", "3-duplicate_of.json"):
        response = tmp_path / f"answer-before-{following}"
        response.write_text(sam.local("invoke", "UpdateWorkItem", "--event", event), encoding="utf-8")
        event = tmp_path / following
        event.write_text(_next(response, EVENTS / "update_work_item" / following), encoding="utf-8")
    assert _text(json.loads(sam.local("invoke", "UpdateWorkItem", "--event", event))) == RESOLVED


def test_a_conversation_with_the_commands_of_the_page_has_the_shown_results(sam: Sam, tmp_path: Path) -> None:
    by_hand = Page.named("sam-local.md").code("sh hand").replace("-e ", "--skip-pull-image -e ")
    commands = [line for line in by_hand.splitlines() if line and not line.startswith("sam build")]
    for name in (".venv", "events", "template.yaml", "samconfig.toml", ".aws-sam"):  # it writes beside these
        (tmp_path / name).symlink_to(ROOT / name)
    sam.shell("\n".join(commands), tmp_path)
    assert _text(json.loads((tmp_path / "3.json").read_text(encoding="utf-8"))) == RESOLVED


def _next(response: Path, event: Path) -> str:
    return subprocess.run([*COMMAND, "next", response, event], capture_output=True, text=True, check=True).stdout  # noqa: S603


# ---- Where `sam local` differs from API Gateway


@pytest.fixture(scope="module")
def echo(sam: Sam) -> Iterator[str]:
    with sam.serving("start-api", "--template", HERE / "echo" / "template.yaml") as url:
        yield url


def _exchange(url: str, sent: gateways.HttpRequest, path: str = "/mcp") -> tuple[int, Any]:
    connection = HTTPConnection(urlsplit(url).netloc, timeout=60)
    connection.putrequest(sent.method, path, skip_host=True, skip_accept_encoding=True)
    for name, value in sent.headers:
        connection.putheader(name, value)
    connection.endheaders(sent.body)
    response = connection.getresponse()
    answered = response.status, json.loads(response.read())
    connection.close()
    return answered


def test_an_event_of_sam_local_equals_the_event_of_the_tests(echo: str) -> None:
    message = wire.message("tools/call", {"name": "add", "arguments": {"a": 2, "b": 3}})
    sent = gateways.http_request(message).with_headers(("Content-Length", str(len(json.dumps(message)))))
    status, seen = _exchange(echo, sent)
    sample = gateways.sam_http_api(sent)
    assert status == 200
    assert _steady(seen["event"]) == _steady(sample)
    assert seen["function_name"] == "Echo", "the logical id, where Lambda has the physical name"


def _steady(event: dict[str, Any]) -> dict[str, Any]:
    """Leave out what is another in every run: ids, times, ports."""
    context = {name: value for name, value in event["requestContext"].items() if name not in {"requestId", "time"}}
    assert 10**9 < context.pop("timeEpoch") < 10**10, "seconds, where API Gateway has milliseconds"
    headers = {name: value for name, value in event["headers"].items() if name != "X-Forwarded-Port"}
    return {**event, "requestContext": context, "headers": headers}


def test_sam_local_returns_403_for_an_unknown_path(api: str) -> None:
    sent = gateways.http_request(wire.message("tools/list", {}))
    status, said = _exchange(api, sent, path="/elsewhere")
    assert (status, said) == (403, {"message": "Missing Authentication Token"})


def _result(response: dict[str, Any]) -> dict[str, Any]:
    assert response["statusCode"] == 200, response
    (message,) = [said for said in wire.messages(response) if "id" in said]
    result: dict[str, Any] = message["result"]
    return result


def _text(response: dict[str, Any]) -> str:
    (content,) = _result(response)["content"]
    return str(content["text"])
