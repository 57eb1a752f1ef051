"""The page "Tasks": its code runs, and each of its claims names a test that there is."""

from __future__ import annotations

from tests.docs.pages import Page, every_test

PAGE = Page.named("tasks.md")


def test_every_claim_is_proved() -> None:
    assert PAGE.unproven == []


def test_every_proof_is_a_test() -> None:
    assert len(PAGE.proofs) > 40
    assert sorted(PAGE.proofs - every_test()) == []


def test_every_link_leads_somewhere() -> None:
    assert PAGE.dead_links == []


def test_the_test_of_the_page_passes_with_the_tool_of_the_page() -> None:
    PAGE.run()["test_a_book_is_printed"]()
