"""Sample functions: each has an app.py, a test, and the conversation of the test and of the events."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mcp_functions.local import recording
from mcp_functions.local.checks import pascal
from mcp_functions.local.scaffold.files import template

if TYPE_CHECKING:
    from collections.abc import Mapping

# kind -> the comment on its block in template.yaml, and `Sample.needs`
SAMPLES = {
    "book_flight": ("a tool that asks where to sit", "seal"),
    "tool": ("a tool that never asks", ""),
    "asking": ("a tool that asks", "seal"),
    "prompt": ("a prompt that asks", "seal"),
    "resource": ("a resource that never asks", ""),
    "task": ("a tool whose calls may become tasks", "task"),
    "single_use": ("a tool whose rounds run once", "keep"),
}
KINDS = ("tool", "asking", "prompt", "resource", "task", "single_use")


@dataclass(frozen=True)
class Sample:
    """A function that is not written yet."""

    name: str  # the name of the function and of its folder
    logical_id: str  # the name of its resource in template.yaml
    remark: str  # the comment on its block
    # "": nothing; "seal": the KMS key, because it asks; "keep": also the table; "task": also a worker for MCP tasks
    needs: str
    files: Mapping[str, str]  # path in the project -> text


def sample(kind: str, name: str) -> Sample:
    """Fill in a sample.

    Args:
        kind: one of `SAMPLES`.
        name: a checked name.
    """
    remark, needs = SAMPLES[kind]
    values = {"name": name, "scheme": name.replace("_", "-")}
    texts = {
        f"functions/{name}/app.py": template(f"samples/{kind}/app.py", values),
        f"tests/functions/test_{name}.py": template(f"samples/{kind}/test.py", values),
    }
    return Sample(name, pascal(name), remark, needs, texts | _events(kind, name, values))


def _events(kind: str, name: str, values: Mapping[str, str]) -> dict[str, str]:
    """Return the event of each round of the sample's conversation. A round is one request: a call, or its answers."""
    conversation = json.loads(template(f"samples/{kind}/rounds.json", values))
    events: dict[str, str] = {}
    for number, (label, params_of_round) in enumerate(conversation["rounds"].items(), start=1):
        params = {**conversation["params"], **params_of_round}
        event = recording.round_of(name, number, conversation["method"], params)
        events[f"events/{name}/{number}-{label}.json"] = recording.text(event)
    return events
