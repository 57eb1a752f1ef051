"""The page "Asking anywhere": its code runs, and its table of hosts is the toolkit's."""

from __future__ import annotations

import re
from datetime import date
from typing import TYPE_CHECKING

from mcp_functions.apps import form
from mcp_functions.apps.hosts import STOPPING_HOSTS
from mcp_functions.testing import WITH_APPS, Conversation
from tests.docs.pages import Page

if TYPE_CHECKING:
    import pytest

PAGE = Page.named("asking-anywhere.md")


def test_the_conversation_of_the_page_has_the_shown_result() -> None:
    PAGE.run()


def test_the_audit_of_the_page_prints_who_answered(capsys: pytest.CaptureFixture[str]) -> None:
    handler = PAGE.run()["handler"]
    Conversation(handler, capabilities=WITH_APPS).call(city="Lisbon").accept(seat="window")
    assert capsys.readouterr().out == "book: ['seat'] by app\n"


def test_the_table_of_hosts_equals_the_table_in_the_code() -> None:
    rows = [line.strip("| ").split(" | ") for line in PAGE.text.splitlines() if "`Anthropic/" in line]
    known = [[f"`{name}` (claude.ai)", last_version] for name, last_version in STOPPING_HOSTS.items()]
    assert [row[:2] for row in rows] == known


def test_each_host_in_the_table_has_a_date_and_a_test_or_an_issue() -> None:
    rows = [
        line.strip("| ").split(" | ") for line in PAGE.text.splitlines() if " | run | " in line or " | read | " in line
    ]
    assert len(rows) > 10
    for _host, _way, known, day, source in rows:
        assert date.fromisoformat(day) <= date(2026, 11, 29)
        assert re.fullmatch(r"by hand|`tests/\S+`" if known == "run" else r"\S+/\S+#\d+(, #\d+)*", source)


def test_the_page_states_the_size_of_the_form_rounded_up() -> None:
    assert f"{-(-form.FILE.stat().st_size // 1000)} KB" in PAGE.text
