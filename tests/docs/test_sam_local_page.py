"""The page on the SAM CLI: the files it names are there; `make sam-local` runs its commands."""

from __future__ import annotations

import re

from tests.docs.pages import ROOT, Page

PAGE = Page.named("sam-local.md")


def test_the_events_and_functions_on_the_sam_local_page_exist() -> None:
    by_hand = PAGE.code("sh hand")
    assert {name for name in re.findall(r"\S*events/\S+", by_hand) if not (ROOT / name).exists()} == set()
    template = (ROOT / "template.yaml").read_text(encoding="utf-8")
    assert {name for name in re.findall(r"local invoke (\w+)", by_hand) if f"  {name}:" not in template} == set()
