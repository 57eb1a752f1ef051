"""Writes what a version of the toolkit makes of the corpus, and reads what another version wrote (test_upgrade.py).

python -m tests.support.upgrade_child write                the forms, digests and records of this version, as JSON
python -m tests.support.upgrade_child read < written       what this version reads from the records
"""

from __future__ import annotations

import json
import sys
from typing import Any

from hypothesis import find, settings

from mcp_functions.protocol.errors import DeveloperError
from mcp_functions.rounds.round import History, Round
from mcp_functions.rounds.steps import Step
from mcp_functions.schemas import forms
from tests.support.corpus import CASES, Case


def step_of(case: Case, record: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Run a step whose function returns the first value of a case, or read it from a record."""
    value = find(case.values, lambda _value: True, settings=settings(database=None, derandomize=True))

    def give(*_args: object) -> object:
        return value

    give.__annotations__["return"] = case.annotation
    round_ = Round(history=History("f", record=record))
    return Step(round_)("it", give, value), round_.next_record()


def form_of(case: Case) -> Any:  # noqa: ANN401 - JSON
    try:
        return forms.read_form(case.annotation, "seat", camel_case=False).schema()
    except DeveloperError:
        return None


def write() -> dict[str, Any]:
    written: dict[str, Any] = {}
    for name, case in CASES.items():
        try:
            _value, record = step_of(case, {})
        except DeveloperError:
            record = {}
        written[name] = {"form": form_of(case), "record": record}
    return written


def read(written: dict[str, Any]) -> dict[str, Any]:
    """Return what the steps of each record return; None if it has none."""
    found: dict[str, Any] = {}
    for name, case in CASES.items():
        record = written[name]["record"]
        try:
            found[name] = repr(step_of(case, record)[0]) if record else None
        except DeveloperError as error:
            found[name] = f"! {error}"
    return found


if __name__ == "__main__":
    json.dump(write() if sys.argv[1] == "write" else read(json.load(sys.stdin)), sys.stdout)
