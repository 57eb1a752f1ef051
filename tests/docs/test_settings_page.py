"""The page of settings is the table of settings, and each page that it names speaks of the subject."""

from __future__ import annotations

from mcp_functions.settings import Settings, rows
from tests.support import settings_page


def test_the_page_of_settings_is_the_table() -> None:
    assert settings_page.PAGE.read_text(encoding="utf-8") == settings_page.written()


def test_each_row_names_a_page_that_exists() -> None:
    assert all((settings_page.PAGE.parent / f"{row.page}.md").exists() for row in rows(Settings).values())
