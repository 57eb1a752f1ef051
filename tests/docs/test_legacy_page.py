"""The page "Clients of 2025": each of its claims names a test that there is."""

from __future__ import annotations

from tests.docs.pages import Page, every_test

PAGE = Page.named("legacy.md")


def test_every_claim_is_proved() -> None:
    assert [claim for claim in PAGE.unproven if not claim.endswith((":", "us-east-1.)"))] == []


def test_every_proof_is_a_test() -> None:
    assert len(PAGE.proofs) > 40
    assert sorted(PAGE.proofs - every_test()) == []


def test_every_link_leads_somewhere() -> None:
    assert PAGE.dead_links == []
