"""The page "Coming from a session store": its four phases run, and a conversation goes on through all of them."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from mcp_functions import serve
from mcp_functions_harness.testing import Conversation, deployed
from tests.docs.pages import Page

if TYPE_CHECKING:
    from mcp_functions.rounds.audit import AuditRecord

PAGE = Page.named("coming-from-a-session-store.md")
PHASES = ["both", "state_first", "state_alone"]
DUPLICATE = {"resolution": "Duplicate"}


@pytest.fixture
def page() -> dict[str, Any]:
    return PAGE.run()


@pytest.mark.parametrize("phase", PHASES)
def test_every_phase_gives_the_same_answers(page: dict[str, Any], phase: str) -> None:
    talk = Conversation(serve(page[phase]), principal="ann").call(item=7)
    assert talk.messages == {"resolution": "How was bug 7 resolved?"}
    assert talk.accept(resolution=DUPLICATE).text == "Bug 7: Duplicate"


def test_phase_1_also_writes_each_answer_once_to_the_store(page: dict[str, Any]) -> None:
    talk = Conversation(serve(page["both"]), principal="ann").call(item=7)
    assert page["sessions"].calls == 0
    talk.accept(resolution=DUPLICATE)
    assert page["sessions"].records == {"ann/7": DUPLICATE}


def test_the_audit_shows_the_rounds_of_phase_1(page: dict[str, Any]) -> None:
    heard: list[AuditRecord] = []
    talk = Conversation(serve(page["state_alone"], audit=heard.append), principal="ann").call(item=7)
    talk.accept(resolution=DUPLICATE)
    assert [(one.round, list(one.asked), one.answered) for one in heard] == [
        (1, ["resolution"], {}),
        (2, [], {"resolution": "accept"}),
    ]
    assert heard[0].flow == heard[1].flow
    assert "Duplicate" not in str(heard)


def test_phase_2_asks_only_for_answers_missing_in_the_store_and_writes_nothing(page: dict[str, Any]) -> None:
    page["sessions"].records["ann/7"] = {"resolution": "Fixed"}
    function = serve(page["state_first"])
    assert Conversation(function, principal="ann").call(item=7).text == "Bug 7: Fixed"
    # a record of another user answers no question
    talk = Conversation(function, principal="bob").call(item=7)
    assert talk.asked == ["resolution"]
    before = page["sessions"].calls
    assert talk.accept(resolution=DUPLICATE).text == "Bug 7: Duplicate"
    assert (page["sessions"].calls, page["sessions"].records) == (before, {"ann/7": {"resolution": "Fixed"}})


def test_phase_3_needs_no_store(page: dict[str, Any]) -> None:
    with deployed(MCP_TABLE=None):
        talk = Conversation(serve(page["state_alone"]), principal="ann").call(item=7)
        assert talk.accept(resolution=DUPLICATE).text == "Bug 7: Duplicate"
    assert page["sessions"].calls == 0


def test_an_open_conversation_continues_through_every_phase(page: dict[str, Any]) -> None:
    for before, after in pairwise(PHASES):
        talk = Conversation(serve(page[before]), principal="ann").call(item=7)
        talk.upgrade(serve(page[after]))
        assert talk.accept(resolution=DUPLICATE).text == "Bug 7: Duplicate"
