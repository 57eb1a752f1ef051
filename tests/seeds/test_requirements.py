"""requirements.toml names tests that exist, and quotes the specification where a proposal says otherwise."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path
from typing import TypedDict

import pytest

ROOT = Path(__file__).parent.parent.parent


class Difference(TypedDict):
    """What a document says, what this server does, and the tests of it."""

    says: str
    here: str
    tests: list[str]


DIFFERENCES: list[Difference] = tomllib.loads(
    Path(__file__).with_name("requirements.toml").read_text(encoding="utf-8")
)["differs"]


@pytest.mark.parametrize("name", [name for row in DIFFERENCES for name in row["tests"]])
def test_every_test_that_is_named_exists(name: str) -> None:
    path, _separator, function = name.partition("::")
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    assert function in functions, f"{name} is not there (any more): what proves this now?"


@pytest.mark.parametrize("row", DIFFERENCES)
def test_a_difference_from_a_proposal_quotes_the_released_specification(row: Difference) -> None:
    assert row.keys() == Difference.__annotations__.keys()
    assert row["says"].startswith("python-sdk") or re.search(r'"[^"]{20,}"', row["here"]), row
