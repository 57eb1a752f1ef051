"""The pages of docs/: claims.toml names the tests that prove each claim, and every link leads somewhere."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.docs.claims import FILE, every_page, misplaced_keys, proofs, unproved_claims
from tests.docs.pages import ROOT, Page, every_test, named_tests

if TYPE_CHECKING:
    from tests.docs.claims import Section

PAGES = sorted(every_page())
PARTLY = {"docs/attack.md", "docs/security.md"}  # their tables name tests in the page, or are held as a whole
OWN_TESTS = {  # these tests were written for their page: each proves one of its claims
    "docs/coming-from-await-elicit.md": "test_coming_from_await_elicit.py",
    "docs/recipes.md": "test_recipes*.py",
    "docs/writing-a-conversation.md": "test_writing_a_conversation*.py",
}
SAMPLE = Page(
    ROOT / "docs/sample.md",
    """# Sample

A task **ends**
with `sent`, see [States](#states).

- A task waits.
- Nobody waits for a task.

It leads to:
""",
)


@pytest.mark.parametrize("path", PAGES)
def test_every_claim_names_its_tests(path: str) -> None:
    page, sections = Page.at(path), every_page()[path]
    mistakes = [*misplaced_keys(page, sections), *unproved_claims(page, sections, complete=path not in PARTLY)]
    assert not mistakes, "\n".join(mistakes)


@pytest.mark.parametrize("path", PAGES)
def test_every_test_that_a_claim_names_exists(path: str) -> None:
    missing = sorted(proofs(path) - every_test())
    assert not missing, f"{path}: {FILE} names tests that are not there: {missing}. Write their new names."


def test_every_test_that_the_page_of_security_names_exists() -> None:
    visible = set(re.findall(r"`(test_\w+)`", Page.named("security.md").text))
    assert len(visible) > 40
    assert sorted(visible - every_test()) == []


@pytest.mark.parametrize("path", OWN_TESTS)
def test_every_test_of_a_page_proves_a_claim(path: str) -> None:
    elsewhere = named_tests("test_claims.py") | named_tests("test_2_operations.py", ROOT / "tests/deployed")
    assert proofs(path) - elsewhere == named_tests(OWN_TESTS[path])


@pytest.mark.parametrize("path", sorted(path.name for path in (ROOT / "docs").glob("*.md")))
def test_every_link_leads_somewhere(path: str) -> None:
    assert Page.named(path).dead_links == []


def test_a_key_is_found_through_the_marks_of_markdown() -> None:
    keys: Section = {
        "A task ends with sent, see States": ["test_a"],
        "A task `waits`": ["test_b"],
        "Nobody waits": "not run here",
    }
    assert list(misplaced_keys(SAMPLE, {"Sample": keys})) == []
    assert list(unproved_claims(SAMPLE, {"Sample": keys}, complete=True)) == []


@pytest.mark.parametrize("keys", [{}, {"A task ends": []}], ids=["no key", "no tests"])
def test_a_claim_that_names_no_test_is_shown_by_its_first_words(keys: dict[str, list[str]]) -> None:
    sections = {"Sample": {"A task waits": ["test_a"], "Nobody waits": ["test_a"], **keys}}
    assert list(unproved_claims(SAMPLE, sections, complete=False)) == []
    (mistake,) = unproved_claims(SAMPLE, sections, complete=True)
    what = "no test is named for the claim that begins 'A task ends with sent, see States.'"
    assert mistake == f"docs/sample.md, 'Sample': {what}; add it to tests/docs/claims.toml"


def test_two_keys_of_one_claim_are_shown() -> None:
    sections = {"Sample": {"A task waits": ["test_a"], "task waits": ["test_b"]}}
    (mistake,) = unproved_claims(SAMPLE, sections, complete=False)
    what = "keys ['A task waits', 'task waits'] stand in one claim"
    assert mistake == f"docs/sample.md, 'Sample': {what}; make them one key in tests/docs/claims.toml"


@pytest.mark.parametrize(("section", "key"), [("Sample", "A task dies"), ("Other", "A task waits")])
def test_a_key_that_stands_in_no_claim_of_its_section_is_shown(section: str, key: str) -> None:
    (mistake,) = misplaced_keys(SAMPLE, {section: {key: ["test_a"]}})
    what = f"no claim has the words {key!r}"
    assert mistake == f"docs/sample.md, {section!r}: {what}; correct or delete that key in tests/docs/claims.toml"


def test_a_key_that_stands_in_two_claims_is_shown() -> None:
    (mistake,) = misplaced_keys(SAMPLE, {"Sample": {"wait": ["test_a"]}})
    assert mistake == (
        "docs/sample.md, 'Sample': 2 claims have the words 'wait'; lengthen that key in tests/docs/claims.toml"
    )
