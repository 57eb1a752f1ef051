"""`new` adds a function to a project, and `block` writes what template.yaml needs for one, as its app.py is now.

Both check everything before they write anything, and change template.yaml as text, so that its comments stay.
"""

from __future__ import annotations

import difflib
from dataclasses import replace
from typing import TYPE_CHECKING

from mcp_functions.local import catalog, checks, template
from mcp_functions.local.checks import imports
from mcp_functions.local.lambdas.functions import FRONT_DOOR
from mcp_functions.local.problems import stop
from mcp_functions.local.scaffold import block_lines, blocks, files, samples, spelling
from mcp_functions.local.scaffold.samples import Sample

if TYPE_CHECKING:
    from pathlib import Path

    from mcp_functions.local.checks import Project
    from mcp_functions.local.scaffold.block_lines import Lines

LAYER_ID = "CommonLayer"  # the layer of the code that functions share
LAYER_BEFORE = "DependenciesLayer"  # the layer after which it is written
WRITTEN = """\
{files}
  template.yaml: {logical_id}, with its route /mcp/{name}
  functions/mcp/catalog.json"""
NEXT = "\n\nWrite what it does in functions/{name}/app.py; then: make catalog test"
UNCHANGED = "template.yaml has what functions/{name} needs"
REMARKS = {  # by `Sample.needs`: the comment on the block
    "": "a function that never asks",
    "seal": "a function that asks",
    "keep": "its rounds run once",
    "task": "a task",
}


def new(root: Path, kind: str, name: str) -> str:
    """Add a function to a project.

    Args:
        root: the project's folder.
        kind: one of `samples.KINDS`.
        name: the function's name.

    Returns:
        The text for the terminal.

    Raises:
        Problem: the name is not allowed, a file exists already, or the project has no endpoint.
    """
    return add(root, samples.sample(kind, spelling.check(name))) + NEXT.format(name=name)


def add(root: Path, sample: Sample) -> str:
    """Write a function's files into a project, its block and the catalog; return what was written.

    Raises:
        Problem: a file exists already, or the project has no endpoint.
    """
    before = checks.read(root)
    if FRONT_DOOR not in before.folders:
        stop(f"there is no functions/{FRONT_DOOR}/app.py: new adds functions behind an endpoint, as init writes it")
    path = root / template.FILE
    grown = blocks.added(path.read_text(encoding="utf-8"), sample, before)
    files.write(root, sample.files)
    path.write_text(grown, encoding="utf-8", newline="\n")
    catalog.write(root / checks.FOLDER, catalog.generate(root / checks.FOLDER))
    listed = "\n".join(f"  {file}" for file in sample.files)
    return WRITTEN.format(files=listed, logical_id=sample.logical_id, name=sample.name)


def shown(root: Path, name: str, kind: str | None) -> str:
    """Return the block of a function; with `kind`, of one that is not written yet.

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
        name: the function's name.

    Returns:
        The text for the terminal: the lines that changed.

    Raises:
        Problem: there is no such function, or the template is not written as `init` writes it.

    """
    project = _read(root)
    function = _function(project, name)
    path = root / template.FILE
    text = template.text(path)
    lines = text.splitlines(keepends=True)
    if name in project.functions:
        lines = _edited(lines, function, project)
    else:
        lines = blocks.inserted(lines, function, project)
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
    """Describe a function of the project, to write its block."""
    if name not in project.folders:
        near = difflib.get_close_matches(name, project.folders, n=1)
        meant = f"; did you mean {near[0]}?" if near else ""
        stop(f"there is no functions/{name}/app.py{meant}")
    if name not in project.offering:
        stop(f"functions/{name} offers no tool, prompt or resource: init and auth write its block")
    needs = ""
    if name in project.tasks:
        needs = "task"
    elif name in project.keeping:
        needs = "keep"
    elif name in project.asking:
        needs = "seal"
    return Sample(name, checks.pascal(name), REMARKS[needs], needs, {})


def _edited(lines: Lines, function: Sample, project: Project) -> Lines:
    """Set the tag and the policies of a function that has a block, and add or remove its worker."""
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
        layer = LAYER_ID
        lines = block_lines.insert_after(lines, LAYER_BEFORE, files.template("common_layer.yaml", {}))
    for block in project.blocks_of(name):
        if not imports.has_layer(project, block, layer):
            lines = block_lines.add_layer(lines, block.logical_id, layer)
    return lines


def _changes(before: str, after: str) -> list[str]:
    """List the lines that were added (+) or removed (-)."""
    compared = difflib.ndiff(before.splitlines(), after.splitlines())
    return [f"  {line.rstrip()}" for line in compared if line.startswith(("+ ", "- "))]
