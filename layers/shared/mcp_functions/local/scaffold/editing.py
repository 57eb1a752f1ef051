"""`block`: what template.yaml needs for a function as its app.py is now, printed, or written into the file as text."""

from __future__ import annotations

import difflib
from dataclasses import replace
from typing import TYPE_CHECKING

from mcp_functions.local import catalog, checks, template
from mcp_functions.local.checks import imports
from mcp_functions.local.lambdas.loading import COMMON
from mcp_functions.local.problems import Problem
from mcp_functions.local.scaffold import block_lines, blocks, samples, spelling
from mcp_functions.local.scaffold.samples import Sample

if TYPE_CHECKING:
    from pathlib import Path

    from mcp_functions.local.checks import Project
    from mcp_functions.local.scaffold.block_lines import Lines

LAYER_ID, BESIDE = "CommonLayer", "DependenciesLayer"
LAYER = f"""\

  {LAYER_ID}:
    Type: {imports.LAYER}
    Properties:
      Description: Code that functions share
      ContentUri: {COMMON.parent}/
      CompatibleRuntimes:
        - !Ref Runtime
"""
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
    function, text = _function(project, name), template.text(path)
    lines = text.splitlines(keepends=True)
    edit = _edited if name in project.functions else blocks.inserted
    lines = edit(lines, function, project)
    if imports.uses_shared_code(project, name):
        lines = _with_layer(lines, blocks.read(lines, project), name)
    blocks.check(function, project, blocks.read(lines, project))
    written = "".join(lines)
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


def _edited(lines: Lines, function: Sample, project: Project) -> Lines:
    logical_id = project.functions[function.name].logical_id
    lines = block_lines.set_tag(lines, logical_id, function.name, needed=bool(function.needs))
    lines = block_lines.set_policies(lines, logical_id, blocks.POLICIES[function.needs])
    worker = project.workers.get(function.name)
    if function.needs == "task" and worker is None:
        lines = block_lines.insert_after(lines, logical_id, blocks.worker(function))
        return block_lines.copy_property(lines, "Environment", logical_id, f"{function.logical_id}Worker")
    if function.needs != "task" and worker is not None:
        return block_lines.remove(lines, worker.logical_id)
    return lines


def _with_layer(lines: Lines, project: Project, name: str) -> Lines:
    """Add the layer of the code that functions share, and give it to the blocks of a function."""
    layer = imports.common_layer(project)
    if not layer:
        layer, lines = LAYER_ID, block_lines.insert_after(lines, BESIDE, LAYER)
    for block in project.blocks_of(name):
        if not imports.has_layer(project, block, layer):
            lines = block_lines.add_layer(lines, block.logical_id, layer)
    return lines


def _changes(before: str, after: str) -> list[str]:
    compared = difflib.ndiff(before.splitlines(), after.splitlines())
    return [f"  {line.rstrip()}" for line in compared if line.startswith(("+ ", "- "))]
