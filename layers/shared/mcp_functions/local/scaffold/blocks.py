"""Puts a function's block into template.yaml as text, after the last block, so that the rest does not change."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from mcp_functions.local import checks, template
from mcp_functions.local.problems import Problem
from mcp_functions.local.scaffold import files

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcp_functions.local.checks import Project
    from mcp_functions.local.scaffold.samples import Sample

RESOURCE = re.compile(r"  ([A-Za-z0-9]+):")
FUNCTION = re.compile(r".*\bType: *AWS::Serverless::Function\b")
DEPLOYED = [check for check in checks.CHECKS if check is not checks.every_folder_is_listed]
PARTS = ("", "Worker")
POLICIES = {"seal": "!Ref MaySeal", "keep": "[!Ref MaySeal, !Ref MayKeep]", "task": "[!Ref MaySeal, !Ref MayKeep]"}
POWERS = """\
      Tags:
        mcp-function: {name}
      Policies: {policies}
"""


def block(sample: Sample) -> str:
    """Return the resources that deploy a function: the function with its route, and a worker for tasks."""
    policies = POLICIES.get(sample.needs)
    powers = POWERS.format(name=sample.name, policies=policies) if policies else ""
    values = {"name": sample.name, "id": sample.logical_id, "remark": sample.remark, "powers": powers}
    worker = files.template("worker.yaml", values) if sample.needs == "task" else ""
    return files.template("block.yaml", values) + worker


def added(text: str, sample: Sample, project: Project) -> str:
    """Add a function's block to a template.

    Args:
        text: of template.yaml.
        sample: the function.
        project: without the function.

    Raises:
        Problem: the template has one of its names already, or is not written as `init` writes it.
    """
    names = {*project.template["Resources"], *project.template.get("Parameters", {})}
    existing = [sample.logical_id + part for part in PARTS if sample.logical_id + part in names]
    if existing:
        problem = f"template.yaml has a {existing[0]} already: choose another name than {sample.name}"
        raise Problem(problem)
    grown = _with_block(text, block(sample))
    missing = _disagreement(project, sample, grown)
    if missing:
        problem = f"template.yaml is not as init wrote it, so nothing was written; by hand: {missing}"
        raise Problem(problem)
    return grown


def _disagreement(project: Project, sample: Sample, grown: str) -> str | None:
    """Return the first complaint about the new template that the old one does not have."""
    try:
        parsed = template.parse(grown)
    except ValueError:
        return f"add {sample.logical_id}, as other functions have it"
    name = frozenset({sample.name})
    after = replace(
        project,
        folders=project.folders | name,
        asking=project.asking | (name if sample.needs else frozenset()),
        keeping=project.keeping | (name if sample.needs in {"keep", "task"} else frozenset()),
        catalog={**project.catalog, "tasks": sorted(project.tasks | (name if sample.needs == "task" else frozenset()))},
        template=parsed,
    )
    before = {line for check in DEPLOYED for line in check(project)}
    return next((line for check in DEPLOYED for line in check(after) if line not in before), None)


def _with_block(text: str, block_: str) -> str:
    lines = text.splitlines(keepends=True)
    ends = [last for first, last in _resources(lines) if any(map(FUNCTION.match, lines[first:last]))]
    if ends:
        lines.insert(ends[-1], f"\n{block_}")
    return "".join(lines)


def _resources(lines: list[str]) -> Iterator[tuple[int, int]]:
    """Return the first line of each resource, and the line after its last that is no comment."""
    inside, first, last = False, None, 0
    for number, line in enumerate(lines):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if RESOURCE.match(line) or not line.startswith(" "):
            if first is not None:
                yield first, last
            inside = line.startswith("Resources:") or (inside and line.startswith(" "))
            first = number if inside and line.startswith(" ") else None
        last = number + 1
    if first is not None:
        yield first, last
