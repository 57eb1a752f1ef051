"""Functions to begin with: for each an app.py, a test, and the conversation that the test and the events hold."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mcp_functions.local import recording
from mcp_functions.local.agreement import pascal
from mcp_functions.local.scaffold.files import HERE, filled, template

if TYPE_CHECKING:
    from collections.abc import Mapping

# kind -> what its block in template.yaml says about it, and whether it asks
SAMPLES = {
    "book_flight": ("a tool that asks where to sit", True),
    "tool": ("a tool that asks", True),
    "prompt": ("a prompt that asks", True),
    "resource": ("a resource that never asks", False),
}
KINDS = ("tool", "prompt", "resource")


@dataclass(frozen=True)
class Sample:
    """A function that is about to be written.

    Attributes:
        name: of the function, and of its folder.
        logical_id: in template.yaml.
        remark: what its block says about it.
        asks: whether it needs the key.
        files: path in the project -> text.

    """

    name: str
    logical_id: str
    remark: str
    asks: bool
    files: Mapping[str, str]


def sample(kind: str, name: str) -> Sample:
    """Fill in a sample.

    Args:
        kind: one of `SAMPLES`.
        name: a checked name.

    """
    remark, asks = SAMPLES[kind]
    values = {"name": name, "scheme": name.replace("_", "-")}
    texts = {
        f"functions/{name}/app.py": template(f"samples/{kind}/app.py", values),
        f"tests/functions/test_{name}.py": template(f"samples/{kind}/test.py", values),
    }
    return Sample(name, pascal(name), remark, asks, texts | _events(kind, name, values))


def _events(kind: str, name: str, values: Mapping[str, str]) -> dict[str, str]:
    rounds = json.loads(filled((HERE / "samples" / kind / "rounds.json.in").read_text(encoding="utf-8"), values))
    method, first = rounds["method"], rounds["params"]
    return {
        f"events/{name}/{number}-{called}.json": recording.text(
            recording.round_of(name, number, method, {**first, **more})
        )
        for number, (called, more) in enumerate(rounds["rounds"].items(), start=1)
    }
