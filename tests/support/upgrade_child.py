"""What a version of the toolkit makes of the corpus, and of the records of another version (test_upgrade.py).

python -m tests.support.upgrade_child < records       prints the forms and records of the version on the path, and
what its steps return from the other records, as JSON
"""

from __future__ import annotations

import json
import sys
from typing import Any

from mcp_functions.protocol.errors import DeveloperError
from mcp_functions.rounds.round import History, Round
from mcp_functions.rounds.steps import Step
from mcp_functions.schemas import forms
from tests.support.corpus import CASES, Case, first_values


def run_step(case: Case, record: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return what a step of this type returns, or why it does not, and the record; it runs if it has none yet."""
    [value] = first_values(case, 1)  # the same in each process

    def give(*_args: object) -> object:
        return value

    give.__annotations__["return"] = case.annotation
    round_ = Round(history=History("f", record=record))
    try:
        returned = repr(Step(round_)("it", give, value))
    except DeveloperError as error:
        return f"! {error}", {}
    return returned, {"steps": round_.next_record()["steps"]}


def form_of(case: Case) -> Any:  # noqa: ANN401 - JSON
    try:
        return forms.read_form(case.annotation, "seat", camel_case=False).schema()
    except DeveloperError:
        return None


def write_all() -> dict[str, Any]:
    """Return the form, the record and what the step returned, by the name of each case."""
    written = {}
    for name, case in CASES.items():
        returned, record = run_step(case, {})
        written[name] = {"form": form_of(case), "record": record, "returned": returned}
    return written


def read_all(written: dict[str, Any]) -> dict[str, str]:
    """Return what a step returns from each record of another version."""
    records = {name: each["record"] for name, each in written.items() if each["record"]}
    return {name: run_step(CASES[name], record)[0] for name, record in records.items()}


if __name__ == "__main__":
    json.dump({"written": write_all(), "read": read_all(json.load(sys.stdin))}, sys.stdout)
