"""The page on compatibility lists the public names, and states of version 0.1.0 continue their conversations."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import mcp_functions
from mcp_functions import Elicit, Step, adopt, annotated, content, hooks, low_level, serve, tool
from mcp_functions_harness import template, testing
from mcp_functions_harness.command import run as main
from mcp_functions_harness.testing import Conversation
from tests.docs.pages import ROOT, Page

if TYPE_CHECKING:
    import pytest

PAGE = Page.named("compatibility.md")
NOW = 1_785_000_000.0
# The record of version 0.1.0 after the first of two questions. test_a_state_of_version_0_1_0_continues_its_conversation
# says more.
STATE_FILE_OF_0_1_0 = ROOT / "tests/seal/vectors/states/0.1.0.json"


class PlainJsonCodec:
    """A codec that hides nothing, so that a state can be recorded, read and changed."""

    def seal(self, payload: bytes) -> str:
        return payload.decode()

    def unseal(self, token: str) -> bytes:
        return token.encode()


@dataclass
class Offer:
    number: str
    euros: int


LOOKUP_CALLS: list[str] = []


def look_up(item: str) -> Offer:
    LOOKUP_CALLS.append(item)
    return Offer(number="A-1", euros=70)


@tool
def buy(item: str, *, elicit: Elicit, step: Step) -> str:
    """Buy something."""
    began, offer = step.now(), step("look-up", look_up, item)
    count = elicit("count", f"How many of {item} ({offer.number})?", int)
    sure = elicit("sure", f"{count * offer.euros} EUR?", Annotated[bool, "Whether to buy"])
    return f"{began:%H:%M}: {count} for {count * offer.euros} EUR, {sure}"


def start_conversation(now: float = NOW) -> Conversation:
    return Conversation(serve(buy, codec=PlainJsonCodec(), now=lambda: now)).call(item="lamp")


def test_a_state_of_version_0_1_0_continues_its_conversation() -> None:
    """Its answers, steps and beginning are read from the state: nothing is asked or run again."""
    talk = start_conversation(NOW + 300)
    LOOKUP_CALLS.clear()
    talk.tamper(lambda _now: STATE_FILE_OF_0_1_0.read_text(encoding="utf-8"))
    assert talk.messages == {"sure": "140 EUR?"}
    assert talk.accept(sure=True).text == "17:20: 2 for 140 EUR, True"
    assert LOOKUP_CALLS == []


def test_this_version_writes_the_same_record_as_version_0_1_0() -> None:
    """An older version can therefore continue it, until the version of the claims (`v`) changes."""
    old, new = (
        json.loads(STATE_FILE_OF_0_1_0.read_text(encoding="utf-8")),
        json.loads(start_conversation().accept(count=2).state),
    )
    drawn = {"f": "the name of the conversation"}
    for state in (old, new):
        state["s"]["steps"]["look-up"][2] = "milliseconds"
    assert {**old, **drawn} == {**new, **drawn}


def test_a_state_with_another_version_of_the_claims_is_refused() -> None:
    later = json.dumps({**json.loads(STATE_FILE_OF_0_1_0.read_text(encoding="utf-8")), "v": 2})
    talk = start_conversation().tamper(lambda _now: later)
    assert (talk.status, talk.error["code"]) == (400, -32602)
    assert talk.error["message"] in PAGE.text


def names(heading: str) -> set[str]:
    """Return the names in code of the table's row about a module."""
    (row,) = re.findall(rf"^\| {re.escape(heading)} \| (.*) \|$", PAGE.text, re.MULTILINE)
    return set(re.findall(r"`([\w-]+)`", row))


def test_the_page_names_every_public_name_and_no_other() -> None:
    for module in (mcp_functions, annotated, content, hooks, low_level, adopt, testing):
        assert names(f"`from {module.__name__} import …`") == set(module.__all__)


def test_the_page_names_every_command_and_no_other(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    offered = re.findall(r"^  (\w+) {2,}\S", capsys.readouterr().out, re.MULTILINE)
    assert names("`mcp-functions …`") == set(offered)


def test_the_values_that_the_page_names_are_those_of_the_template() -> None:
    written = template.read(ROOT / "template.yaml")
    named = {"Generation", "MCP_SERVER_VERSION", "Stage"}
    assert named <= {*written["Parameters"], *written["Globals"]["Function"]["Environment"]["Variables"]}
    assert [name for name in sorted(named) if f"`{name}" not in PAGE.text] == []
