"""A function may know who calls: the same caller in every round, and never a token.

No `from __future__ import annotations` here: the functions below are read as an author writes them.
"""

import json

import pytest
from pydantic import BaseModel

from mcp_functions import Caller, Elicit, prompt, resource, serve, tool
from mcp_functions.protocol.messages import Principal
from mcp_functions.testing import Conversation, deployed
from tests.support import gateways, wire


class Sure(BaseModel):
    sure: bool


@tool
def whoami(*, caller: Caller) -> dict[str, object]:
    """Return the caller."""
    who = {"known": caller.known, "issuer": caller.issuer, "subject": caller.subject, "client": caller.client}
    return {**who, "scopes": sorted(caller.scopes)}


@tool
def pay(*, elicit: Elicit, caller: Caller) -> str:
    """Pay for something, after a question."""
    before = caller.subject
    assert elicit("sure", f"{before}, are you sure?", Sure).sure
    return f"{before} and {caller.subject} paid"


@prompt
def greeting(*, caller: Caller) -> str:
    """Greet the caller."""
    return f"Hello, {caller.subject}"


@resource("mail://inbox")
def inbox(*, caller: Caller) -> str:
    """Read the caller's inbox."""
    return f"of {caller.subject}"


def test_a_token_names_its_caller() -> None:
    ann = Principal("https://id.example", "ann", "app")
    talk = Conversation(serve(whoami), principal=ann, scopes=["b", "a"]).call()
    assert talk.result["structuredContent"] == {
        "known": True,
        "issuer": "https://id.example",
        "subject": "ann",
        "client": "app",
        "scopes": ["a", "b"],
    }


def test_a_signature_names_its_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCP_AUTH_MODE", "iam")
    event = gateways.by_iam(
        gateways.http_api(gateways.http_request(wire.message("tools/call", {"name": "whoami"}))), "ann"
    )
    said = wire.read(serve(whoami)(event, wire.Context()), "tools/call")["result"]["structuredContent"]
    assert (said["issuer"], said["subject"]) == ("aws:iam", "123456789012/AROAEXAMPLE:ann")
    assert (said["known"], said["client"], said["scopes"]) == (True, "", [])


def test_a_request_without_a_principal_has_no_caller() -> None:
    with deployed():
        said = Conversation(serve(whoami)).call().result["structuredContent"]
    assert said == {"known": False, "issuer": "", "subject": "", "client": "", "scopes": []}


def test_the_caller_is_the_same_in_every_round() -> None:
    talk = Conversation(serve(pay), principal="ann").call()
    assert talk.messages == {"sure": "ann, are you sure?"}
    assert talk.accept(sure={"sure": True}).text == "ann and ann paid"
    other = Conversation(serve(pay), principal="ann").call().as_("ben").accept(sure={"sure": True})
    assert other.error["message"] == "Invalid or expired requestState"


def test_prompts_and_resources_may_know_too() -> None:
    assert Conversation(serve(greeting), principal="ann").get().text == "Hello, ann"
    assert Conversation(serve(inbox), principal="ann").read("mail://inbox").text == "of ann"


def test_the_caller_parameter_is_no_question_and_no_argument() -> None:
    assert not whoami.needs_state
    assert whoami.describe()["inputSchema"]["properties"] == {}


def test_no_token_reaches_the_function() -> None:
    held: list[object] = []

    @tool
    def look(*, caller: Caller) -> str:
        held.extend(getattr(caller, name) for name in dir(caller) if not name.startswith("_"))
        return "seen"

    handler, secret = serve(look), "eyJhbGciOiJSUzI1NiJ9.hunter2"
    event = gateways.http_api(gateways.http_request(wire.message("tools/call", {"name": "look"})))
    event["headers"]["authorization"] = f"Bearer {secret}"
    with pytest.MonkeyPatch.context() as patch:
        for name, value in gateways.JWT_SETTINGS.items():
            patch.setenv(name, value)
        handler(gateways.by_jwt(event, iss="https://id.example", sub="ann", client_id="app"), wire.Context())
    assert len(held) > 4
    assert "hunter2" not in json.dumps(held, default=str)
