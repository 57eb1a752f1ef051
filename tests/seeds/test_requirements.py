"""requirements.toml lists every requirement of the seeds, and every test that it names exists.

The documents are not part of this repository. This file freezes how often each says MUST, SHOULD and MAY, and how much
JSON it shows. A sentence that is dropped, added or shortened changes a count.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent.parent
REQUIREMENTS: dict[str, Any] = tomllib.loads(Path(__file__).with_name("requirements.toml").read_text(encoding="utf-8"))
ENTRIES = [(document, entry) for document, entries in REQUIREMENTS["requirements"].items() for entry in entries]

KEYWORD = re.compile(r"\b(MUST NOT|MUST|SHOULD NOT|SHOULD|MAY|must|should)\b")
KEYWORD_COUNTS = {
    "sep-2322": {"MUST": 9, "MUST NOT": 4, "SHOULD": 7, "MAY": 9, "must": 11, "should": 9},
    "draft-page": {"MUST": 13, "MUST NOT": 8, "SHOULD": 6, "MAY": 11, "must": 2},
    "sep-1685": {"MUST": 7, "MUST NOT": 2, "SHOULD": 2, "SHOULD NOT": 1, "MAY": 3, "must": 9, "should": 1},
    "sep-1858": {"must": 2, "should": 4},
    "python-sdk": {"must": 7},
}
# with the sentences that require something in other words
SENTENCE_COUNTS = {"sep-2322": 63, "draft-page": 43, "sep-1685": 33, "sep-1858": 11, "python-sdk": 41}
EXAMPLE_COUNTS = {"sep-2322": 28, "draft-page": 3, "sep-1685": 11, "sep-1858": 1, "python-sdk": 1}

OUTCOMES = {"tests", "owed", "differs", "client", "prose"}
TOPICS = {
    "seal": "The seal: KMS-enveloped requestState, to the letter of its specification",
    "rounds": "Rounds: the best way anyone has to write a conversation",
    "public": "Fit for the public: identity, observability, faults",
}


@pytest.mark.parametrize("document", KEYWORD_COUNTS)
def test_every_must_should_and_may_of_a_document_is_in_the_table(document: str) -> None:
    sentences = [entry["sentence"] for entry in REQUIREMENTS["requirements"][document]]
    assert Counter(word for sentence in sentences for word in KEYWORD.findall(sentence)) == KEYWORD_COUNTS[document]
    assert len({_join_lines(sentence) for sentence in sentences}) == len(sentences) == SENTENCE_COUNTS[document]


def test_every_json_example_of_a_document_is_in_the_table() -> None:
    shown: Counter[str] = Counter()
    for example in REQUIREMENTS["examples"]:
        assert example.keys() - OUTCOMES == {"document", "section", "shows", "count"}
        assert example.keys() & {"tests", "owed"}
        shown[example["document"]] += example["count"]
    assert shown == EXAMPLE_COUNTS


def test_every_sentence_has_an_outcome() -> None:
    assert REQUIREMENTS["requirements"].keys() == KEYWORD_COUNTS.keys()
    for _document, entry in ENTRIES:
        assert entry.keys() - OUTCOMES == {"section", "sentence"}
        assert entry.keys() & OUTCOMES, entry
        assert all(entry.values()), entry


def test_every_owed_requirement_names_a_known_topic() -> None:
    owing = {
        entry["owed"]
        for entry in [*REQUIREMENTS["examples"], *(entry for _document, entry in ENTRIES)]
        if "owed" in entry
    }
    assert owing == TOPICS.keys()


@pytest.mark.parametrize("document", KEYWORD_COUNTS)
def test_every_test_that_is_named_exists(document: str) -> None:
    examples = [example for example in REQUIREMENTS["examples"] if example["document"] == document]
    for entry in REQUIREMENTS["requirements"][document] + examples:
        for name in entry.get("tests", []):
            path, _separator, function = name.partition("::")
            assert function in _tests(ROOT / path), f"{name} is not there (any more): what proves this now?"


def test_a_difference_from_a_proposal_quotes_the_released_specification() -> None:
    for document, entry in ENTRIES:
        if "differs" in entry and document != "python-sdk":
            assert re.search(r'"[^"]{20,}" \((basic/|changelog|extension )|"[^"]{60,}"', entry["differs"]), entry


def test_a_requirement_for_clients_mentions_clients() -> None:
    for _document, entry in ENTRIES:
        if "client" in entry and "tests" not in entry:
            assert re.search(r"client|resultType", entry["sentence"], re.IGNORECASE), entry


def test_every_test_of_the_seeds_proves_something_that_they_say() -> None:
    named = {name for _document, entry in ENTRIES for name in entry.get("tests", [])}
    for path in (Path(__file__).parent).glob("test_*.py"):
        if path.name != Path(__file__).name:
            assert {f"tests/seeds/{path.name}::{test}" for test in _tests(path)} <= named


@cache
def _tests(path: Path) -> frozenset[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = (node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return frozenset(function.name for function in functions if function.name.startswith("test_"))


def _join_lines(sentence: str) -> str:
    return " ".join(sentence.split())
