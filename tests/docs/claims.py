"""The tests that prove the claims of docs/: what tests/docs/claims.toml says, held against a page."""

from __future__ import annotations

import tomllib
from functools import cache
from typing import TYPE_CHECKING

from tests.docs.pages import ROOT, plain

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.docs.pages import Page

    Section = Mapping[str, list[str] | str]  # a few words of a claim: its tests, or why it has none
    Sections = Mapping[str, Section]

FILE = "tests/docs/claims.toml"


@cache
def every_page() -> Mapping[str, Sections]:
    """Read the sections of every page, by the page's path."""
    pages = tomllib.loads((ROOT / FILE).read_text(encoding="utf-8"))
    return {path: {plain(heading): keys for heading, keys in sections.items()} for path, sections in pages.items()}


def proofs(path: str) -> set[str]:
    """Return the names of the tests that prove the claims of a page."""
    values = [value for section in every_page()[path].values() for value in section.values()]
    return {test for value in values if isinstance(value, list) for test in value}


def misplaced_keys(page: Page, sections: Sections) -> Iterator[str]:
    """List the keys that match no claim of their section, or more than one."""
    claims = list(page.claims)
    for heading, keys in sections.items():
        for key in keys:
            count = sum(plain(key) in claim.text for claim in claims if claim.section == heading)
            if count == 0:
                yield f"{_place(page, heading)}: no claim has the words {key!r}; correct or delete that key in {FILE}"
            if count > 1:
                yield f"{_place(page, heading)}: {count} claims have the words {key!r}; lengthen that key in {FILE}"


def unproved_claims(page: Page, sections: Sections, *, complete: bool) -> Iterator[str]:
    """Say which claims have no key, if every claim must have one, or more than one key."""
    for claim in page.claims:
        place = _place(page, claim.section)
        section = sections.get(claim.section, {})
        keys = [key for key, value in section.items() if value and plain(key) in claim.text]
        if len(keys) > 1:
            yield f"{place}: keys {keys} stand in one claim; make them one key in {FILE}"
        if not keys and complete and not claim.is_lead_in:
            start = " ".join(claim.text.split()[:7])
            yield f"{place}: no test is named for the claim that begins {start!r}; add it to {FILE}"


def _place(page: Page, heading: str) -> str:
    return f"{page.path.relative_to(ROOT).as_posix()}, {heading!r}"
