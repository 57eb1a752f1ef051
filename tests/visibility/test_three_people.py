"""One client as three people: what is hidden from a person has the bytes of what does not exist, whatever is asked."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from mcp_functions.protocol.constants import LIST_METHODS
from mcp_functions_harness import Harness
from mcp_functions_harness import catalog as catalog_file
from tests.support import wire

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

OPEN = '''
from mcp_functions import prompt, serve, tool

@tool
def add(a: int, b: int) -> int:
    """Add."""
    return a + b

@tool(scopes=["bank:read"])
def balance() -> int:
    """Tell the balance."""
    return 5

@prompt
def greeting(name: str) -> str:
    """Greet."""
    return f"Hello {name}"

@greeting.complete("name")
def names(text: str, arguments: dict[str, str]) -> list[str]:
    return ["Bo"]

handler = serve(add, balance, greeting)
'''
BANK = '''
from mcp_functions import Elicit, prompt, resource, serve, tool

HIDDEN = {"scopes": ["bank:write"], "hide_without_scopes": True}

@tool(**HIDDEN)
def transfer(euros: int, *, elicit: Elicit) -> str:
    """Move money."""
    return "moved" if elicit("sure", "Sure?", bool) else "kept"

@prompt(**HIDDEN)
def letter(to: str) -> str:
    """Write."""
    return f"To {to}"

@resource("bank://rates", cache_scope="public", ttl_ms=1000, **HIDDEN)
def rates() -> str:
    """Rates."""
    return "1"

@resource("branch://{number}", **HIDDEN)
def branch(number: int) -> str:
    """A branch."""
    return f"branch {number}"

handler = serve(transfer, letter, rates, branch, instructions="Use transfer with care.")
'''
MCP = """
from pathlib import Path
from mcp_functions import serve_catalog

handler = serve_catalog(Path(__file__).with_name("catalog.json"))
"""
SKILL = """---
name: {name}
description: About {name}.
{metadata}---
Read.
"""
FOR_WRITERS = "metadata:\n  mcp-functions/scopes: bank:write\n  mcp-functions/hide-without-scopes: 'true'\n"
PEOPLE = {"nobody": "", "reader": "bank:read", "writer": "bank:read bank:write"}


class Person:
    """One client with the token of one person."""

    def __init__(self, harness: Harness, scope: str) -> None:
        assert harness.issuer
        self._url = harness.url
        self._authorization = {"authorization": f"Bearer {harness.issuer.token(scope=scope)}"}

    def ask(self, method: str, params: dict[str, Any] | None = None, **options: Any) -> httpx2.Response:  # noqa: ANN401
        message = wire.message(method, params or {}, **options)
        return httpx2.post(self._url, json=message, headers={**wire.headers(message), **self._authorization})

    def ask_as_client_of_2025(self, method: str, params: dict[str, Any] | None = None) -> httpx2.Response:
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}}
        headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-11-25"}
        return httpx2.post(self._url, json=message, headers={**headers, **self._authorization})


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Person]]:
    root = tmp_path_factory.mktemp("project")
    functions = root / "functions"
    for name, text in (("open", OPEN), ("bank", BANK), ("mcp", MCP)):
        (functions / name).mkdir(parents=True)
        (functions / name / "app.py").write_text(text, encoding="utf-8")
    for name, metadata in (("use-it", ""), ("bank-it", FOR_WRITERS)):
        write_skill(root, name, metadata)
    catalog_file.write(functions, catalog_file.generate(functions))
    with Harness(functions, state_dir=root / "state", auth="jwt") as harness:
        yield {name: Person(harness, scope) for name, scope in PEOPLE.items()}


def write_skill(root: Path, name: str, metadata: str) -> None:
    folder = root / "skills" / name
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(SKILL.format(name=name, metadata=metadata), encoding="utf-8")


def reference(kind: str, name: str, value: str) -> dict[str, Any]:
    member = "name" if kind == "ref/prompt" else "uri"
    return {"ref": {"type": kind, member: value}, "argument": {"name": name, "value": "B"}}


# A request about a hidden name, and the same about a name of equal length that does not exist.
CASES: tuple[tuple[str, Callable[[str], dict[str, Any]], str, str], ...] = (
    ("tools/call", lambda name: {"name": name, "arguments": {"euros": 1}}, "transfer", "transfix"),
    ("tools/call", lambda name: {"name": name, "arguments": {"a": {}}}, "transfer-answer", "transfix-answer"),
    ("tools/call", lambda name: {"name": name, "arguments": {}}, "transfer-form", "transfix-form"),
    ("prompts/get", lambda name: {"name": name, "arguments": {"to": "Bo"}}, "letter", "lettre"),
    ("resources/read", lambda uri: {"uri": uri}, "bank://rates", "bank://ratex"),
    ("resources/read", lambda uri: {"uri": uri}, "branch://4", "brunch://4"),
    ("resources/read", lambda uri: {"uri": uri}, "skill://bank-it/SKILL.md", "skill://bunk-it/SKILL.md"),
    ("skills/get", lambda uri: {"uri": uri}, "skill://bank-it/SKILL.md", "skill://bunk-it/SKILL.md"),
    ("resources/directory/read", lambda uri: {"uri": uri}, "skill://bank-it", "skill://bunk-it"),
    ("completion/complete", lambda name: reference("ref/prompt", "to", name), "letter", "lettre"),
    (
        "completion/complete",
        lambda uri: reference("ref/resource", "number", uri),
        "branch://{number}",
        "brunch://{number}",
    ),
)
PAIRS = [(method, make(hidden), make(unknown)) for method, make, hidden, unknown in CASES]


@pytest.mark.parametrize("of_2025", [False, True], ids=["2026", "2025"])
@pytest.mark.parametrize("who", ["nobody", "reader"])
def test_a_hidden_name_gets_the_bytes_of_an_unknown_one(people: dict[str, Person], who: str, *, of_2025: bool) -> None:
    ask = people[who].ask_as_client_of_2025 if of_2025 else people[who].ask
    for method, hidden, unknown in PAIRS:
        first, second = ask(method, hidden), ask(method, unknown)
        assert first.status_code == second.status_code, (method, hidden)
        assert "error" in first.json(), (method, hidden)
        # An error may quote the URI that was asked for, and nothing else.
        assert first.text.replace(uri_in(hidden), "…") == second.text.replace(uri_in(unknown), "…"), (method, hidden)
        assert compared_headers(first) == compared_headers(second), (method, hidden)


def uri_in(params: dict[str, Any]) -> str:
    return str(params.get("uri") or params.get("ref", {}).get("uri") or "no URI")


def compared_headers(response: httpx2.Response) -> dict[str, str]:
    each_has_its_own = {"date", "apigw-requestid", "mcp-session-id"}
    return {name: value for name, value in response.headers.items() if name not in each_has_its_own}


LISTS = {
    "tools/list": ("tools", "name"),
    "prompts/list": ("prompts", "name"),
    "resources/list": ("resources", "uri"),
    "resources/templates/list": ("resourceTemplates", "uriTemplate"),
    "skills/list": ("skills", "uri"),
}
BY_ALL = {"add", "balance", "greeting", "skill://use-it/SKILL.md"}
BY_WRITERS = {"transfer", "letter", "bank://rates", "branch://{number}", "skill://bank-it/SKILL.md"}


@pytest.mark.parametrize("of_2025", [False, True], ids=["2026", "2025"])
@pytest.mark.parametrize("who", PEOPLE)
def test_each_person_gets_own_lists_which_no_cache_shares(
    people: dict[str, Person], who: str, *, of_2025: bool
) -> None:
    ask = people[who].ask_as_client_of_2025 if of_2025 else people[who].ask
    listed: set[str] = set()
    for method, (member, key) in LISTS.items():
        if of_2025 and method not in LIST_METHODS:  # the extension needs 2026-07-28; there, skills are resources
            continue
        answer = ask(method).json()["result"]
        listed |= {entry[key] for entry in answer[member]}
        assert of_2025 or answer["cacheScope"] == "private"
    # A client without forms also gets the answer tools of what it sees.
    seen = {name for name in listed if not name.startswith("transfer-")}
    assert seen == BY_ALL | (BY_WRITERS if who == "writer" else set())
    discovered = people[who].ask("server/discover")
    assert ("transfer with care" in discovered.text) is (who == "writer")
    assert discovered.json()["result"]["cacheScope"] == "private"


def test_the_form_of_hidden_tools_is_hidden(people: dict[str, Person]) -> None:
    form, unknown = {"uri": "ui://mcp-functions/form"}, {"uri": "ui://mcp-functions/farm"}
    first, second = people["reader"].ask("resources/read", form), people["reader"].ask("resources/read", unknown)
    assert first.text.replace(form["uri"], "…") == second.text.replace(unknown["uri"], "…")
    assert "contents" in people["writer"].ask("resources/read", form).json()["result"]


def test_who_holds_the_scopes_calls_reads_and_completes(people: dict[str, Person]) -> None:
    writer = people["writer"]
    assert writer.ask("tools/call", {"name": "transfer", "arguments": {"euros": 1}}).json()["result"]["inputRequests"]
    rates = writer.ask("resources/read", {"uri": "bank://rates"}).json()["result"]
    assert (rates["contents"][0]["text"], rates["cacheScope"]) == ("1", "private")  # its author wrote "public"
    skill = writer.ask("resources/read", {"uri": "skill://bank-it/SKILL.md"}).json()["result"]
    assert (skill["contents"][0]["mimeType"], skill["cacheScope"]) == ("text/markdown", "private")


def test_a_tool_that_is_not_hidden_tells_which_scope_it_needs(people: dict[str, Person]) -> None:
    refused = people["nobody"].ask("tools/call", {"name": "balance", "arguments": {}})
    assert refused.status_code == 403
    assert json.loads(refused.text)["error"]["data"]["scope"] == "bank:read"
