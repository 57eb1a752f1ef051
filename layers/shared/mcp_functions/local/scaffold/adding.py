"""`new KIND NAME`: adds a function to a project. It checks everything before it writes anything."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_functions.local import catalog, checks, template
from mcp_functions.local.lambdas.functions import FRONT_DOOR
from mcp_functions.local.problems import stop
from mcp_functions.local.scaffold import blocks, files, samples, spelling

if TYPE_CHECKING:
    from pathlib import Path

    from mcp_functions.local.scaffold.samples import Sample

WRITTEN = """\
{files}
  template.yaml: {logical_id}, with its route /mcp/{name}
  functions/mcp/catalog.json"""
NEXT = "\n\nWrite what it does in functions/{name}/app.py; then: make catalog test"


def new(root: Path, kind: str, name: str) -> str:
    """Add a function to a project.

    Args:
        root: the project's folder.
        kind: one of `samples.KINDS`.
        name: of the function.

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
