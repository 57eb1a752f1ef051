"""`block`: what template.yaml needs for a function as its app.py is now, printed, or written into the file as text."""

from __future__ import annotations

import difflib
from dataclasses import replace
from typing import TYPE_CHECKING

from mcp_functions.local import catalog, checks, template
from mcp_functions.local.problems import Problem
from mcp_functions.local.scaffold import block_lines, blocks, samples, spelling
from mcp_functions.local.scaffold.samples import Sample

if TYPE_CHECKING:
    from pathlib import Path

    from mcp_functions.local.checks import Project

UNCHANGED = "template.yaml has what functions/{name} needs"
REMARKS = {
    "": "a function that never asks",
    "seal": "a function that asks",
    "keep": "its rounds run once",
    "task": "a task",
}


def shown(root: Path, name: str, kind: str | None) -> str:
    """Return the block of a function: of one that is not written yet, if `kind` is given.

    Raises:
        Problem: there is no such function, or one does not load.

    """
    if kind:
        return blocks.block(samples.sample(kind, spelling.check(name)))
    return blocks.block(_function(_read(root), name))


def write(root: Path, name: str) -> str:
    """Give a function in template.yaml what it needs, and take away what it no longer needs.

    Args:
        root: the project's folder.
        name: of the function.

    Returns:
        The text for the terminal: the lines that changed.

    Raises:
        Problem: there is no such function, or the template is not written as `init` writes it.

    """
    project, path = _read(root), root / template.FILE
    function, text = _function(project, name), path.read_text(encoding="utf-8")
    if name in project.functions:
        written = _edited(text, function, project)
    else:
        written = blocks.added(text, function, replace(project, folders=project.folders - {name}))
    if written == text:
        return UNCHANGED.format(name=name)
    path.write_text(written, encoding="utf-8", newline="\n")
    return "\n".join(["template.yaml:", *_changes(text, written)])


def _read(root: Path) -> Project:
    """Read a project with a catalog of its functions as they are now."""
    return replace(checks.read(root), catalog=catalog.generate(root / checks.FOLDER))


def _function(project: Project, name: str) -> Sample:
    if name not in project.folders:
        near = difflib.get_close_matches(name, project.folders, n=1)
        meant = f"; did you mean {near[0]}?" if near else ""
        missing = f"there is no functions/{name}/app.py{meant}"
        raise Problem(missing)
    if name not in project.offering:
        other = f"functions/{name} offers no tool, prompt or resource: init and auth write its block"
        raise Problem(other)
    needs = ""
    if name in project.tasks:
        needs = "task"
    elif name in project.keeping:
        needs = "keep"
    elif name in project.asking:
        needs = "seal"
    return Sample(name, checks.pascal(name), REMARKS[needs], needs, {})


def _edited(text: str, function: Sample, project: Project) -> str:
    block = project.functions[function.name]
    lines = text.splitlines(keepends=True)
    lines = block_lines.set_tag(lines, block.logical_id, function.name, needed=bool(function.needs))
    lines = block_lines.set_policies(lines, block.logical_id, blocks.REFS[function.needs])
    worker = project.workers.get(function.name)
    if function.needs == "task" and worker is None:
        lines = block_lines.insert_after(lines, block.logical_id, blocks.worker(function))
        lines = block_lines.copy_property(lines, "Environment", block.logical_id, f"{function.logical_id}Worker")
    elif function.needs != "task" and worker is not None:
        lines = block_lines.remove(lines, worker.logical_id)
    written = "".join(lines)
    missing = _complaint(project, function, block.logical_id, written)
    if missing:
        problem = f"template.yaml is not as init wrote it, so nothing was written; by hand: {missing}"
        raise Problem(problem)
    return written


def _complaint(project: Project, function: Sample, logical_id: str, written: str) -> str | None:
    """Return the first complaint about the function in the new template."""
    try:
        after = replace(project, template=template.parse(written))
    except ValueError:
        return f"{logical_id} needs {blocks.POLICIES.get(function.needs, 'no policy')}"
    mentioned = (f"functions/{function.name} ", f"{logical_id} ", f"{logical_id}Worker ")
    found = [line for check in blocks.DEPLOYED for line in check(after) if line.startswith(mentioned)]
    return found[0] if found else None


def _changes(before: str, after: str) -> list[str]:
    compared = difflib.ndiff(before.splitlines(), after.splitlines())
    return [f"  {line.rstrip()}" for line in compared if line.startswith(("+ ", "- "))]
