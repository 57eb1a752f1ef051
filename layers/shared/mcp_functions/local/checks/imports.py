"""Checks that a function finds on Lambda whatever it imports: in its folder, in layers/common, or in a package."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcp_functions.local import template
from mcp_functions.local.checks.packages import distribution_of, shipped
from mcp_functions.local.checks.project import FOLDER, Project
from mcp_functions.local.checks.statements import as_list
from mcp_functions.local.lambdas.loading import COMMON, IN_THE_RUNTIME, elsewhere, holds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcp_functions.local.checks.project import Block

LAYER = "AWS::Serverless::LayerVersion"
RELATIVE = "."


def a_function_finds_on_lambda_what_it_imports(project: Project) -> Iterator[str]:
    """Check each import of a function's files, and of the shared code that they use."""
    for folder, block in sorted(project.functions.items()):
        own, common = project.root / "functions" / folder, project.root / COMMON
        for name, file in sorted(_reached(own, common).items()):
            shown = f"{file.relative_to(project.root)} imports {name}"
            if name == RELATIVE:
                yield f"{shown} (relative): Lambda loads it without a package; write `from prices import PRICES`"
            elif name in IN_THE_RUNTIME or holds(own, name):
                continue
            elif holds(common, name):
                blocks = [block, *filter(None, [project.workers.get(folder)])]
                yield from (
                    f"{shown} of {COMMON}: {_missing(project, one)}" for one in blocks if _missing(project, one)
                )
            elif place := elsewhere(name, project.root):
                yield f"{shown}, which Lambda does not get: move {place} to {COMMON}/"
            elif not _has_other_layers(project, block):
                yield from _unshipped(project, folder, name, shown)


def missing_on_lambda(directory: Path) -> list[str]:
    """List what the functions of a directory import that Lambda does not find; nothing, if there is no template.

    Raises:
        Problem: the template cannot be read.
        SyntaxError: a file is no Python.
    """
    root = directory.resolve().parent
    if directory.name != FOLDER or not (root / template.FILE).is_file():
        return []
    nothing, read = frozenset[str](), template.read(root / template.FILE)
    project = Project(
        root=root, folders=nothing, offering=nothing, asking=nothing, keeping=nothing, catalog={}, template=read
    )
    return list(a_function_finds_on_lambda_what_it_imports(project))


def _reached(own: Path, common: Path) -> dict[str, Path]:
    """Map each name that a function imports, itself or by shared code, to a file that imports it."""
    found: dict[str, Path] = {}
    files = sorted(own.rglob("*.py"))
    for file in files:  # it grows by the shared code that is imported
        for name in _imports(file):
            if name == RELATIVE and file.parent not in (own, common):
                continue  # inside a package
            if name not in found and not holds(own, name):
                files += sorted([*common.glob(f"{name}.py"), *common.glob(f"{name}/**/*.py")])
            found.setdefault(name, file)
    return found


def _imports(file: Path) -> set[str]:
    """Return the first part of each name that a file imports; RELATIVE for a relative import."""
    found: set[str] = set()
    nodes: list[ast.AST] = [ast.parse(file.read_text(encoding="utf-8"))]
    for node in nodes:
        match node:
            case ast.Import():
                found |= {alias.name.partition(".")[0] for alias in node.names}
            case ast.ImportFrom():
                found.add(RELATIVE if node.level else str(node.module).partition(".")[0])
        nodes += _needed(node)
    return found


def _needed(node: ast.AST) -> list[Any]:
    """List the parts of a node without imports for type checkers, and without those that may fail."""
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
        return list(node.orelse)
    if isinstance(node, ast.Try) and any("Import" in ast.unparse(one.type) for one in node.handlers if one.type):
        return [*node.orelse, *node.finalbody]
    return list(ast.iter_child_nodes(node))


def _missing(project: Project, block: Block) -> str:
    """Return what a function lacks to get the shared code; nothing, if it has the layer."""
    ids = [name for name, one in project.of_type(LAYER).items() if Path(str(one.get("ContentUri"))) == COMMON.parent]
    if not ids:
        return f"template.yaml needs CommonLayer, of type {LAYER}, with ContentUri {COMMON.parent}/"
    if {"Ref": ids[0]} in _layers(project, block):
        return ""
    return f"add !Ref {ids[0]} to Layers of {block.logical_id}, or of Globals"


def _layers(project: Project, block: Block) -> list[Any]:
    return [one for each in (project.globals, block.properties) for one in as_list(each.get("Layers", []))]


def _has_other_layers(project: Project, block: Block) -> bool:
    """Whether a function has a layer from elsewhere, which may ship any package."""
    own = [{"Ref": name} for name in project.of_type(LAYER)]
    return any(layer not in own for layer in _layers(project, block))


def _unshipped(project: Project, folder: str, name: str, shown: str) -> Iterator[str]:
    distribution, ships = distribution_of(name), shipped(project.root, folder)
    if ships is not None and ships.isdisjoint(distribution):
        file = f"functions/{folder}/requirements.txt"
        yield f"{shown}, which Lambda does not get: add {min(distribution)} to {file}"
