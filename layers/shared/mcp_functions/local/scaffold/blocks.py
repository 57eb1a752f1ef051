"""Puts a function's block into template.yaml as text, after the last block, so that the rest does not change.

A block is the resources that deploy one function. Before a file is written, the project's own checks read the new
template. If they complain about more than before, nothing is written.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from mcp_functions.local import checks, template
from mcp_functions.local.checks.iam import KEEP, SEAL
from mcp_functions.local.checks.imports import a_function_finds_on_lambda_what_it_imports
from mcp_functions.local.lambdas.loading import COMMON
from mcp_functions.local.problems import stop
from mcp_functions.local.scaffold import block_lines, files

if TYPE_CHECKING:
    from mcp_functions.local.checks import Project
    from mcp_functions.local.scaffold.block_lines import Lines
    from mcp_functions.local.scaffold.samples import Sample

FUNCTION = re.compile(r".*\bType: *AWS::Serverless::Function\b")
CHECKS_OF_OTHER_FILES = (checks.routes.every_folder_is_listed, a_function_finds_on_lambda_what_it_imports)
CHECKS_OF_BLOCKS = [check for check in checks.CHECKS if check not in CHECKS_OF_OTHER_FILES]
BY_HAND = "template.yaml is not as init wrote it, so nothing was written; by hand: {}"
POLICIES = {"": [], "seal": [SEAL], "keep": [SEAL, KEEP], "task": [SEAL, KEEP]}  # by `Sample.needs`


def block(sample: Sample) -> str:
    """Return the resources that deploy a function: the function with its route, and a worker for tasks."""
    powers = ""
    if sample.needs:
        powers = block_lines.tags(sample.name) + block_lines.policies(POLICIES[sample.needs])
    values = {"name": sample.name, "id": sample.logical_id, "remark": sample.remark, "powers": powers}
    text = files.template("block.yaml", values)
    if sample.needs == "task":
        text += worker(sample)
    return text


def worker(sample: Sample) -> str:
    """Return the resource that continues a function's tasks."""
    return files.template("worker.yaml", {"name": sample.name, "id": sample.logical_id})


def added(text: str, sample: Sample, project: Project) -> str:
    """Add the block of a new function to a template.

    Args:
        text: the text of template.yaml.
        sample: the function.
        project: the project without the function.

    Raises:
        Problem: the template has one of its names already, or is not written as `init` writes it.
    """
    lines = inserted(text.splitlines(keepends=True), sample, project)
    check(sample, project, read(lines, _with_function(project, sample)))
    return "".join(lines)


def _with_function(project: Project, sample: Sample) -> Project:
    """Return the project as the checks see it once the function is written."""
    name = frozenset({sample.name})
    grown = replace(project, folders=project.folders | name)
    if SEAL in POLICIES[sample.needs]:
        grown = replace(grown, asking=grown.asking | name)
    if KEEP in POLICIES[sample.needs]:
        grown = replace(grown, keeping=grown.keeping | name)
    if sample.needs == "task":
        grown = replace(grown, catalog={**grown.catalog, "tasks": sorted(grown.tasks | name)})
    return grown


def inserted(lines: Lines, sample: Sample, project: Project) -> Lines:
    """Insert the block of a function after the last one.

    Raises:
        Problem: the template has one of its names already.
    """
    taken = project.template["Resources"].keys() | project.template.get("Parameters", {}).keys()
    for logical_id in (sample.logical_id, f"{sample.logical_id}Worker"):
        if logical_id in taken:
            stop(f"template.yaml has a {logical_id} already: choose another name than {sample.name}")
    ends = [last for first, last in block_lines.resources(lines) if any(map(FUNCTION.match, lines[first:last]))]
    if not ends:
        return lines
    return lines[: ends[-1]] + f"\n{block(sample)}".splitlines(keepends=True) + lines[ends[-1] :]


def read(lines: Lines, project: Project) -> Project:
    """Return a project with these lines as its template.

    Raises:
        Problem: they are no template.
    """
    try:
        return replace(project, template=template.parse("".join(lines)))
    except ValueError as error:
        stop(BY_HAND.format(str(error)), after=error)


def check(sample: Sample, before: Project, after: Project) -> None:
    """Refuse a new template where the checks complain about the function, or about more than before.

    Raises:
        Problem: the template is not written as `init` writes it, so a change by hand is needed.
    """
    # The beginnings of complaints about this function; a W begins "Worker".
    own = (f"functions/{sample.name} ", f"functions/{sample.name}/", f"{sample.logical_id} ", f"{sample.logical_id}W")
    earlier = _complaints(before)
    for line in _complaints(after):
        if line not in earlier or line.startswith(own):
            stop(BY_HAND.format(line))


def _complaints(project: Project) -> list[str]:
    """List what the checks of blocks say, and which function lacks the layer of shared code."""
    imports = a_function_finds_on_lambda_what_it_imports(project)
    shared = [line for line in imports if f" of {COMMON}: " in line]
    return [line for check_block in CHECKS_OF_BLOCKS for line in check_block(project)] + shared
