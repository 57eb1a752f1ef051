"""A function's block goes into template.yaml as text, behind the last one, so that what people wrote there stays."""

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
ROUTE = re.compile(r".*\bType: *AWS::ApiGatewayV2::Route\b")
CALLERS = re.compile(rf"  {checks.API_ROLE}:")
INVOKED = re.compile(r"( *- )!Sub \$\{\w+\.Arn\}\$\{Qualifier\}\s*$")
DEPLOYED = [check for check in checks.CHECKS if check is not checks.every_folder_is_listed]
PARTS = ("", "Integration", "Route", "Worker", "WorkerInvocations", "WorkerFailures")


def block(sample: Sample) -> str:
    """Write what deploys a function: itself, its integration and its route, and its worker if it has tasks."""
    values = {"name": sample.name, "id": sample.logical_id, "remark": sample.remark}
    if sample.needs == "task":
        return files.template("task.yaml", values)
    seal = files.template(f"{sample.needs}.yaml", values) if sample.needs else ""
    return files.template("block.yaml", {**values, "seal": seal})


def added(text: str, sample: Sample, project: Project) -> str:
    """Put a function's block and its place in the front door's policy into a template.

    Args:
        text: of template.yaml.
        sample: the function.
        project: as it was before.

    Raises:
        Problem: the template has one of its names already, or is written so that nobody but its author can do this.

    """
    taken = {*project.template["Resources"], *project.template.get("Parameters", {})}
    if there := next((name for part in PARTS if (name := sample.logical_id + part) in taken), None):
        problem = f"template.yaml has a {there} already: choose another name than {sample.name}"
        raise Problem(problem)
    grown = _with_block(_with_policy(text, sample.logical_id), block(sample))
    if disagrees := _disagreement(project, sample, grown):
        problem = f"template.yaml is not as init wrote it, so nothing was written; by hand: {disagrees}"
        raise Problem(problem)
    return grown


def _disagreement(project: Project, sample: Sample, grown: str) -> str | None:
    """Say what the new template would lack, that the old one did not."""
    try:
        parsed = template.parse(grown)
    except ValueError:
        return f"add {sample.logical_id}, its Integration and its Route, as other functions have them"
    name = frozenset({sample.name})
    after = replace(
        project,
        folders=project.folders | name,
        asking=project.asking | (name if sample.needs else frozenset()),
        keeping=project.keeping | (name if sample.needs in {"keep", "task"} else frozenset()),
        catalog={**project.catalog, "tasks": sorted(project.tasks | (name if sample.needs == "task" else frozenset()))},
        template=parsed,
    )
    before = {line for claim in DEPLOYED for line in claim(project)}
    return next((line for claim in DEPLOYED for line in claim(after) if line not in before), None)


def _with_policy(text: str, logical_id: str) -> str:
    lines = text.splitlines(keepends=True)
    for first, last in _resources(lines):
        if CALLERS.match(lines[first]):
            listed = [number for number in range(first, last) if INVOKED.match(lines[number])]
            if listed and (found := INVOKED.match(lines[listed[-1]])):
                lines.insert(listed[-1] + 1, f"{found[1]}!Sub ${{{logical_id}.Arn}}${{Qualifier}}\n")
            break
    return "".join(lines)


def _with_block(text: str, block_: str) -> str:
    lines = text.splitlines(keepends=True)
    ends = [last for first, last in _resources(lines) if any(map(ROUTE.match, lines[first:last]))]
    if ends:
        lines.insert(ends[-1], block_)
    return "".join(lines)


def _resources(lines: list[str]) -> Iterator[tuple[int, int]]:
    """Find where each resource begins, and where it ends: behind its last line that is no remark."""
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
