"""The page "Tasks": its code runs."""

from __future__ import annotations

from tests.docs.pages import Page

PAGE = Page.named("tasks.md")


def test_the_test_of_the_page_passes_with_the_tool_of_the_page() -> None:
    PAGE.run()["test_a_book_is_printed"]()
