"""A function may ask who calls it. It gets the same caller in every round, and never a token.

`Conversation(…, principal="ann")` calls with a verified token. A deployment has tokens, IAM signatures, or neither.

Without `from __future__ import annotations`, because most authors' modules have none.
"""

import json
from typing import Any

import pytest
from pydantic import BaseModel

from mcp_functions import Caller, Elicit, prompt, resource, serve, tool
from mcp_functions.protocol.messages import Principal
from mcp_functions_harness.testing import EVERYTHING, WITH_APPS, Conversation, deployed
from tests.support import gateways, wire


class Sure(BaseModel):
    sure: bool


@tool
def whoami(*, caller: Caller) -> dict[str, object]:
    """Return the caller."""
    return {
        "known": caller.known,
        "issuer": caller.issuer,
        "subject": caller.subject,
        "client": caller.client,
        "scopes": sorted(caller.scopes),
    }


@tool
def pay(*, elicit: Elicit, caller: Caller) -> str:
    """Pay for something, after a question."""
    before = caller.subject
    assert elicit("sure", f"{before}, are you sure?", Sure).sure
    return f"{before} and {caller.subject} paid"


@tool(scopes=["pay"])
def spend(*, elicit: Elicit, caller: Caller) -> str:
    """Ask, and return the scopes."""
    elicit("sure", "Sure?", Sure)
    return " ".join(sorted(caller.scopes))


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
    request = gateways.http_request(wire.message("tools/call", {"name": "whoami"}))
    event = gateways.by_iam(gateways.http_api(request), "ann")
    reply = wire.Reply.of(serve(whoami)(event, wire.Context()), "tools/call")
    assert reply.result["structuredContent"] == {
        "known": True,
        "issuer": "aws:iam",
        "subject": "123456789012/AROAEXAMPLE:ann",
        "client": "",
        "scopes": [],
    }


def test_a_request_without_a_principal_has_no_caller() -> None:
    with deployed():
        caller = Conversation(serve(whoami)).call().result["structuredContent"]
    assert caller == {"known": False, "issuer": "", "subject": "", "client": "", "scopes": []}


def test_the_caller_is_the_same_in_every_round() -> None:
    talk = Conversation(serve(pay), principal="ann").call()
    assert talk.messages == {"sure": "ann, are you sure?"}
    assert talk.accept(sure={"sure": True}).text == "ann and ann paid"


@pytest.mark.parametrize("capabilities", [EVERYTHING, WITH_APPS], ids=["client", "form"])
def test_the_scopes_of_a_round_are_those_of_its_own_token(capabilities: dict[str, Any]) -> None:
    with deployed():
        talk = Conversation(serve(spend), principal="ann", scopes=["pay", "x"], capabilities=capabilities).call()
        answers = {"sure": {"action": "accept", "content": {"sure": True}}}
        refused = talk.as_("ann", scopes=["x"]).answer(**answers)
        assert (refused.status, refused.error["data"]["scope"]) == (403, "pay")
        assert talk.as_("ann", scopes=["pay"]).answer(**answers).text == "pay"


def test_another_caller_cannot_continue_a_conversation() -> None:
    talk = Conversation(serve(pay), principal="ann").call().as_("ben")
    talk.accept(sure={"sure": True})
    assert talk.error["message"] == "Invalid or expired requestState"


def test_prompts_and_resources_get_the_caller_too() -> None:
    assert Conversation(serve(greeting), principal="ann").get().text == "Hello, ann"
    assert Conversation(serve(inbox), principal="ann").read("mail://inbox").text == "of ann"


def test_the_caller_parameter_is_no_question_and_no_argument() -> None:
    assert not whoami.needs_state
    assert whoami.describe()["inputSchema"]["properties"] == {}


def test_no_token_reaches_the_function(monkeypatch: pytest.MonkeyPatch) -> None:
    values: dict[str, object] = {}

    @tool
    def read_all(*, caller: Caller) -> str:
        for name in dir(caller):
            if not name.startswith("_"):
                values[name] = getattr(caller, name)
        return "done"

    for name, value in gateways.JWT_SETTINGS.items():
        monkeypatch.setenv(name, value)
    event = gateways.http_api(gateways.http_request(wire.message("tools/call", {"name": "read_all"})))
    event["headers"]["authorization"] = "Bearer eyJhbGciOiJSUzI1NiJ9.hunter2"
    serve(read_all)(gateways.by_jwt(event, iss="https://id.example", sub="ann", client_id="app"), wire.Context())
    assert values["subject"] == "ann"
    assert "hunter2" not in json.dumps(values, default=str)
