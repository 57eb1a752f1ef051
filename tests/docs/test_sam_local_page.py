"""The page on the SAM CLI: each claim names a test, or says why none could; `make sam-local` runs its commands."""

from __future__ import annotations

import re

from tests.docs.pages import NOT_RUN, ROOT, Page, every_test

PAGE = Page.named("sam-local.md")


def test_every_claim_of_this_page_is_proved_or_said_to_be_unproven() -> None:
    assert [claim for claim in PAGE.unproven if NOT_RUN not in claim] == []
    assert PAGE.dead_links == []
    assert sorted(PAGE.proofs - every_test()) == []


def test_the_page_names_events_and_functions_that_are_there() -> None:
    by_hand = PAGE.code("sh hand")
    assert {name for name in re.findall(r"\S*events/\S+", by_hand) if not (ROOT / name).exists()} == set()
    template = (ROOT / "template.yaml").read_text(encoding="utf-8")
    assert {name for name in re.findall(r"local invoke (\w+)", by_hand) if f"  {name}:" not in template} == set()
