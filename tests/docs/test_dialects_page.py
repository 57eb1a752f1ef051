"""The page "Dialects": its transcripts and its limit are what goes over the wire."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from functions.update_work_item.app import update_work_item
from mcp_functions import serve
from mcp_functions.dialects import sep_1858
from mcp_functions_harness.testing import deployed
from tests.dialects import transcripts
from tests.dialects.wires import Events
from tests.docs.pages import Page

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = Page.named("dialects.md")


@pytest.fixture
def wire_to() -> Iterator[Events]:
    with deployed(MCP_DIALECTS="sep-1858,sep-1685"):
        yield Events(serve(update_work_item))


def test_the_transcripts_of_the_page_equal_the_messages_on_the_wire(wire_to: Events) -> None:
    for transcript in (transcripts.multi_turn(wire_to), transcripts.state(wire_to)):
        assert f"```text\n{transcript}\n```" in PAGE.text


def test_the_dialects_page_states_the_limit_of_an_event_id() -> None:
    assert f"may have {sep_1858.MAX_EVENT_ID} characters" in " ".join(PAGE.text.split())
