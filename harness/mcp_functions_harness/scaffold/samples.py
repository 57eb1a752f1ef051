"""The functions that `new` copies: samples/<kind>/ has an app.py, a test, and the conversation of its events."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcp_functions_harness import recording
from mcp_functions_harness.checks import pascal
from mcp_functions_harness.checks.iam import KEEP, SEAL
from mcp_functions_harness.scaffold.files import template

# Kind -> the comment on its resource in template.yaml, and its policies: SEAL to ask, KEEP to write to the table.
SAMPLES: dict[str, tuple[str, tuple[str, ...]]] = {
    "book_flight": ("a tool that asks where to sit", (SEAL,)),
    "tool": ("a tool that never asks", ()),
    "asking": ("a tool that asks", (SEAL,)),
    "prompt": ("a prompt that asks", (SEAL,)),
    "resource": ("a resource that never asks", ()),
    "task": ("a tool whose calls may become tasks", (SEAL, KEEP)),
    "single_use": ("a tool whose rounds run once", (SEAL, KEEP)),
}
KINDS = ("tool", "asking", "prompt", "resource", "task", "single_use")  # that `new` offers


@dataclass(frozen=True)
class Draft:
    """A function as the commands write it into a project."""

    name: str  # the name of the function and of its folder
    comment: str  # the comment on its resource in template.yaml
    policies: tuple[str, ...]  # SEAL, KEEP or neither
    has_worker: bool = False  # whether its calls may become MCP tasks, which a worker continues
    files: Mapping[str, str] = field(default_factory=dict)  # path in the project -> text
    copies: Mapping[str, Path] = field(default_factory=dict)  # path there -> a file

    @property
    def logical_id(self) -> str:
        """The name of that resource."""
        return pascal(self.name)


def copied(kind: str, name: str) -> Draft:
    """Copy a sample, one of `SAMPLES`, under a name that `spelling.check` accepts."""
    comment, policies = SAMPLES[kind]
    values = {"name": name, "scheme": name.replace("_", "-")}
    texts = {
        f"functions/{name}/app.py": template(f"samples/{kind}/app.py", values),
        f"tests/functions/test_{name}.py": template(f"samples/{kind}/test.py", values),
    }
    # A call that asks its user takes several rounds. Each is one request, and so one event for Lambda.
    conversation = json.loads(template(f"samples/{kind}/rounds.json", values))
    for number, (label, params_of_round) in enumerate(conversation["rounds"].items(), start=1):
        params: Any = {**conversation["params"], **params_of_round}
        event = recording.round_of(name, number, conversation["method"], params)
        texts[f"events/{name}/{number}-{label}.json"] = recording.file_text(event)
    return Draft(name, comment, policies, has_worker=kind == "task", files=texts)
