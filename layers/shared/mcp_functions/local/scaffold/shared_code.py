"""Gives a function in template.yaml the layer of the code that functions share, if it imports some."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mcp_functions.local import template
from mcp_functions.local.checks import imports
from mcp_functions.local.lambdas.loading import COMMON
from mcp_functions.local.problems import Problem
from mcp_functions.local.scaffold import block_lines

if TYPE_CHECKING:
    from mcp_functions.local.checks import Project

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


def with_layer(text: str, project: Project, name: str) -> str:
    """Add the layer to a template, and to the blocks of a function that need it.

    Args:
        text: of template.yaml, with the function's block.
        project: of the function.
        name: of the function.

    Raises:
        Problem: the template is not written as `init` writes it.
    """
    if not imports.uses_shared_code(project, name):
        return text
    after = replace(project, template=template.parse(text))
    lines = text.splitlines(keepends=True)
    layer = imports.common_layer(after)
    if not layer:
        layer, lines = LAYER_ID, block_lines.insert_after(lines, BESIDE, LAYER)
    for block in (after.functions.get(name), after.workers.get(name)):
        if block and not imports.has_layer(after, block, layer):
            lines = block_lines.add_layer(lines, block.logical_id, layer)
    written = "".join(lines)
    missing = _complaint(project, name, written)
    if missing:
        problem = f"template.yaml is not as init wrote it, so nothing was written; by hand: {missing}"
        raise Problem(problem)
    return written


def _complaint(project: Project, name: str, written: str) -> str | None:
    try:
        after = replace(project, template=template.parse(written))
    except ValueError as error:
        return str(error)
    mentioned = f"functions/{name}/app.py imports "
    found = [line for line in imports.a_function_finds_on_lambda_what_it_imports(after) if line.startswith(mentioned)]
    return next((line for line in found if str(COMMON) in line), None)
