"""Official clients call a tool that asks, with each combination of the capabilities that decide how it asks."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from mcp import Client
from mcp.client.extension import advertise
from mcp_types import ElicitResult

from mcp_functions.protocol.constants import APP_FORM_URI, APP_MIME_TYPE, EXTENSION_APPS
from mcp_functions_harness import Harness
from tests.clients.people import run, text
from tests.conformance import node

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcp.client.session import ClientRequestContext
    from mcp_types import CallToolResult, ElicitRequestParams

HERE = Path(__file__).parent
APPS: dict[str, Any] = {"mimeTypes": [APP_MIME_TYPE]}
ANSWER: dict[str, Any] = {"stars": {"action": "accept", "content": {"stars": 5}}}
DECLARED = [(True, True), (True, False), (False, True), (False, False)]  # elicitation, apps
COMBINATIONS = [
    pytest.param(elicitation, apps, id=f"{'forms' if elicitation else 'no forms'}, {'apps' if apps else 'no apps'}")
    for elicitation, apps in DECLARED
]
FORM = "mcp-functions/form"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with Harness(HERE / "asking", state_dir=tmp_path_factory.mktemp("state")) as running:
        yield f"{running.url}/rate"


async def five(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:  # noqa: ARG001 - its signature
    return ElicitResult(action="accept", content={"stars": 5})


def client(url: str, mode: str, *, elicitation: bool, apps: bool) -> Client:
    """Make an official client that declares these capabilities."""
    extensions = [advertise(EXTENSION_APPS, APPS)] if apps else None
    callback = five if elicitation else None
    return Client(url, mode=mode, elicitation_callback=callback, extensions=extensions)


def expected(*, elicitation: bool, apps: bool) -> list[str]:
    if elicitation:
        return ["rate", "relayed"]
    return ["rate", "rate-form", "relayed", "relayed-form"] if apps else ["rate", "relayed", "relayed-answer"]


@pytest.mark.parametrize(("elicitation", "apps"), COMBINATIONS)
@pytest.mark.parametrize("mode", ["2026-07-28", "legacy"])
def test_the_python_client_accepts_every_result_of_a_tool_with_a_form(
    url: str, mode: str, *, elicitation: bool, apps: bool
) -> None:
    async def rates(connected: Client) -> tuple[list[str], CallToolResult]:
        names = [tool.name for tool in (await connected.list_tools()).tools]
        result = await connected.call_tool("rate", {})
        form = (result.meta or {}).get(FORM)
        if form:
            assert "a form asks the user: How many stars?" in text(result)
            page = await connected.read_resource(APP_FORM_URI)
            assert page.contents[0].mime_type == APP_MIME_TYPE
            result = await connected.call_tool(form["tool"], {"state": form["state"], "answers": ANSWER})
        return names, result

    names, result = run(client(url, mode, elicitation=elicitation, apps=apps), rates)
    if mode == "legacy":
        elicitation = False  # without a table, no client of 2025 is asked by elicitation, and text serves it
    assert names == expected(elicitation=elicitation, apps=apps)
    if elicitation or apps:
        assert result.structured_content == {"stars": 5}
    else:
        assert result.is_error
        assert "It asks: How many stars?" in text(result)


def test_the_python_client_relays_an_answer_in_words(url: str) -> None:
    async def relays(connected: Client) -> CallToolResult:
        pending = await connected.call_tool("relayed", {})
        return await connected.call_tool("relayed-answer", {"state": text(pending).split('"')[3], "answers": ANSWER})

    result = run(client(url, "2026-07-28", elicitation=False, apps=False), relays)
    assert result.structured_content == {"stars": 5}


@pytest.fixture(scope="module")
def heard(url: str) -> dict[tuple[bool, bool], dict[str, Any]]:
    combinations = [
        {**({"elicitation": {}} if elicitation else {}), **({"extensions": {EXTENSION_APPS: APPS}} if apps else {})}
        for elicitation, apps in DECLARED
    ]
    sent = json.dumps({"url": url, "calls": ["rate", "relayed"], "combinations": combinations})
    program = [node.needed(), HERE / "asking.mjs"]
    done = subprocess.run(program, input=sent, capture_output=True, text=True, timeout=60, check=False)  # noqa: S603 - ours
    assert done.returncode == 0, done.stderr
    return dict(zip(DECLARED, json.loads(done.stdout), strict=True))


@pytest.mark.parametrize(("elicitation", "apps"), COMBINATIONS)
def test_the_typescript_client_accepts_every_result_of_a_tool_with_a_form(
    heard: dict[tuple[bool, bool], dict[str, Any]], *, elicitation: bool, apps: bool
) -> None:
    tools, results = heard[elicitation, apps]["tools"], heard[elicitation, apps]["results"]
    assert tools == expected(elicitation=elicitation, apps=apps)
    if elicitation:
        assert results["rate"]["structuredContent"] == {"stars": 5}
    elif apps:
        assert results["rate"]["isError"] is False
        assert results["rate-form"]["structuredContent"] == {"stars": 5}
    else:
        assert "this client declares no way to ask its user" in results["rate"]["content"][0]["text"]
        assert "call relayed-answer with" in results["relayed"]["content"][0]["text"]


@pytest.mark.parametrize("mode", ["2026-07-28", "legacy"])
def test_a_sample_is_answered_in_the_form_through_the_front_door(harness: Harness, mode: str) -> None:
    async def books(connected: Client) -> CallToolResult:
        asking = next(tool for tool in (await connected.list_tools()).tools if tool.name == "book_trip")
        assert asking.meta == {"ui": {"resourceUri": APP_FORM_URI}}
        assert (await connected.read_resource(APP_FORM_URI)).contents[0].mime_type == APP_MIME_TYPE
        pending = await connected.call_tool("book_trip", {"city": "Lisbon"})
        form = (pending.meta or {})[FORM]
        yes = {"consent": {"action": "accept", "content": {"consent": True}}}
        return await connected.call_tool(form["tool"], {"state": form["state"], "answers": yes})

    result = run(client(harness.url, mode, elicitation=False, apps=True), books)
    assert text(result).startswith("Booked MF 106 to Lisbon: receipt ")
