"""matrix.toml lists every requirement of the protocol, and every test that it names exists.

The rows are the specification's requirements as this project reads them. This file freezes their number in each area.
"""

from __future__ import annotations

import ast
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
MATRIX: dict[str, dict[str, Any]] = tomllib.loads(Path(__file__).with_name("matrix.toml").read_text(encoding="utf-8"))

ROW_COUNTS = {"A": 12, "B": 11, "C": 8, "D": 17, "E": 8, "F": 9, "G": 17, "H": 7, "I": 3}
ROW_COUNTS |= {"J": 13, "K": 8, "L": 4, "M": 10, "N": 13, "O": 5}
ROWS = [f"{area}{number}" for area, count in ROW_COUNTS.items() for number in range(1, count + 1)] + ["P", "Q", "R"]
LEVELS = {"MUST", "SHOULD", "derived", ""}
OUTCOMES = {"tests", "owed", "reason"}
TOPICS = {
    "public": "Fit for the public: identity, observability, faults",
}


def test_the_matrix_has_the_frozen_number_of_rows_in_each_area() -> None:
    assert list(MATRIX) == ROWS


@pytest.mark.parametrize("row", ROWS)
def test_every_row_states_its_requirement_and_its_status(row: str) -> None:
    entry = MATRIX[row]
    assert entry.keys() - OUTCOMES - {"level"} == {"says"}
    assert entry.get("level", "") in LEVELS
    assert entry.keys() & OUTCOMES, "neither a test, nor a topic that owes one, nor a reason"
    assert all(entry.values())


@pytest.mark.parametrize("row", ROWS)
def test_every_test_that_a_row_names_exists(row: str) -> None:
    for name in MATRIX[row].get("tests", []):
        path, _separator, function = name.partition("::")
        assert function in _tests(ROOT / path), f"{name} is not there (any more): what proves {row} now?"


def test_a_must_without_a_test_is_owed_or_does_not_apply() -> None:
    bare = [row for row, entry in MATRIX.items() if entry.get("level") == "MUST" and "tests" not in entry]
    assert [row for row in bare if "owed" not in MATRIX[row]] == []


def test_every_owed_requirement_names_a_known_topic() -> None:
    owed = [entry["owed"] for entry in MATRIX.values() if "owed" in entry]
    assert all(entry.keys() == {"by", "what"} for entry in owed)
    assert {entry["by"] for entry in owed} == TOPICS.keys()


def test_every_test_of_the_requirements_proves_one_of_them() -> None:
    named = {test for entry in MATRIX.values() for test in entry.get("tests", [])}
    path = ROOT / "tests/end_to_end/test_requirements.py"
    assert {f"tests/end_to_end/{path.name}::{test}" for test in _tests(path)} <= named


@cache
def _tests(path: Path) -> frozenset[str]:
    if not path.is_file():
        return frozenset()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = (node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    assigned = (node.targets[0] for node in tree.body if isinstance(node, ast.Assign))
    machines = {node.id for node in assigned if isinstance(node, ast.Name) and node.id.startswith("Test")}
    return frozenset({function.name for function in functions if function.name.startswith("test_")} | machines)
