"""Puts a function's block into template.yaml as text, after the last block, so that the rest does not change."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from mcp_functions.local import checks, template
from mcp_functions.local.checks.imports import a_function_finds_on_lambda_what_it_imports
from mcp_functions.local.checks.statements import KEEP, SEAL
from mcp_functions.local.problems import Problem
from mcp_functions.local.scaffold import files
from mcp_functions.local.scaffold.block_lines import resources

if TYPE_CHECKING:
    from mcp_functions.local.checks import Project
    from mcp_functions.local.scaffold.samples import Sample

FUNCTION = re.compile(r".*\bType: *AWS::Serverless::Function\b")
NOT_BLOCKS = (checks.routes.every_folder_is_listed, a_function_finds_on_lambda_what_it_imports)
DEPLOYED = [check for check in checks.CHECKS if check not in NOT_BLOCKS]
PARTS = ("", "Worker")
REFS = {"": [], "seal": [SEAL], "keep": [SEAL, KEEP], "task": [SEAL, KEEP]}
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
    return files.template("block.yaml", values) + (worker(sample) if sample.needs == "task" else "")


def worker(sample: Sample) -> str:
    """Return the resource that continues a function's tasks."""
    return files.template("worker.yaml", {"name": sample.name, "id": sample.logical_id})


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
    ends = [last for first, last in resources(lines) if any(map(FUNCTION.match, lines[first:last]))]
    if ends:
        lines.insert(ends[-1], f"\n{block_}")
    return "".join(lines)
