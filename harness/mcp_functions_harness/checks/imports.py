"""Checks that a function finds on Lambda whatever it imports.

A module may be in the function's folder, in layers/common (the code that functions share), in the runtime, or in a
package of its requirements.txt. The files are parsed, not run.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mcp_functions_harness import template
from mcp_functions_harness.checks import iam
from mcp_functions_harness.checks.packages import available_packages, distributions_of
from mcp_functions_harness.checks.project import FOLDER, Block, Project
from mcp_functions_harness.lambdas.functions import SIGN_IN, find
from mcp_functions_harness.lambdas.modules import COMMON, IN_THE_RUNTIME, elsewhere, has_module

LAYER = "AWS::Serverless::LayerVersion"
COMMON_LAYER = "CommonLayer"  # of the code that functions share, as `block --write` names it
RELATIVE = "."  # in the result of `imported`: stands for every relative import
NOT_DEPLOYED = "has no block in template.yaml, so it is not deployed"


def a_function_finds_on_lambda_what_it_imports(project: Project) -> Iterator[str]:
    """Check each import of a function's files, and of the shared code that these import."""
    for folder, block in sorted(project.functions.items()):
        function_folder = project.root / FOLDER / folder
        common = project.root / COMMON
        yield from _complaints_about_names(function_folder)
        for name, file in sorted(_imports(function_folder, common).items()):
            statement = f"{file.relative_to(project.root)} imports {name}"
            if name == RELATIVE:
                yield f"{statement} (relative): Lambda loads it without a package; write `from prices import PRICES`"
            elif name in IN_THE_RUNTIME or has_module(function_folder, name):
                continue
            elif has_module(common, name):
                for addition in _additions_for_common(project, folder):
                    yield f"{statement} of {COMMON}: {addition}"
            elif elsewhere(name, project.root):
                yield f"{statement}, which Lambda does not get: move {elsewhere(name, project.root)} to {COMMON}/"
            elif not _has_foreign_layer(project, block):
                packages = distributions_of(name)
                available = available_packages(project.root, folder)
                if available is not None and available.isdisjoint(packages):
                    requirements = f"{FOLDER}/{folder}/requirements.txt"
                    yield f"{statement}, which Lambda does not get: add {min(packages)} to {requirements}"


def missing_on_lambda(directory: Path) -> list[str]:
    """List the functions of a folder that are not deployed, and the imports that fail on Lambda; [] without a template.

    Raises:
        Problem: the template cannot be read, or there is no function.
        SyntaxError: a file is no Python.
    """
    root = directory.resolve().parent
    if directory.name != FOLDER or not (root / template.FILE).is_file():
        return []
    project = Project(root, template.read(root / template.FILE))
    unknown = sorted({app.parent.name for app in find(directory)} - project.functions.keys() - {SIGN_IN})
    not_deployed = [f"{FOLDER}/{name} {NOT_DEPLOYED}: mcp-functions block --write {name}" for name in unknown]
    return [*not_deployed, *a_function_finds_on_lambda_what_it_imports(project)]


def uses_shared_code(project: Project, folder: str) -> bool:
    """Whether a function imports a module of layers/common."""
    function_folder = project.root / FOLDER / folder
    common = project.root / COMMON
    names = _imports(function_folder, common)
    return any(has_module(common, name) and not has_module(function_folder, name) for name in names)


def _complaints_about_names(function_folder: Path) -> Iterator[str]:
    """Complain about a module with the name of one of Python's: the function's folder is first on Lambda's path."""
    for path in sorted(function_folder.glob("*")):
        if path.stem in sys.stdlib_module_names and has_module(function_folder, path.stem):
            relative_path = path.relative_to(function_folder.parent.parent)
            yield f"{relative_path} hides Python's own module {path.stem} from every package: give it another name"


def _imports(function_folder: Path, common: Path) -> dict[str, Path]:
    """Return what a function imports, itself or in shared code: the name of each module -> a file that imports it."""
    imports: dict[str, Path] = {}
    files = sorted(function_folder.rglob("*.py"))
    for file in files:  # the list grows by the files of shared code that are imported
        for name in imported(file):
            if name == RELATIVE and file.parent not in (function_folder, common):
                continue  # a relative import inside a package works on Lambda too
            if name in imports:
                continue
            imports[name] = file
            if not has_module(function_folder, name):
                files += sorted([*common.glob(f"{name}.py"), *common.glob(f"{name}/**/*.py")])
    return imports


def imported(file: Path) -> set[str]:
    """Return the first part of each name that a file imports; RELATIVE for a relative import."""
    names: set[str] = set()
    nodes: list[ast.AST] = [ast.parse(file.read_text(encoding="utf-8"))]
    for node in nodes:  # the list grows by the parts of each node
        match node:
            case ast.Import():
                names |= {alias.name.partition(".")[0] for alias in node.names}
            case ast.ImportFrom():
                names.add(RELATIVE if node.level else str(node.module).partition(".")[0])
        nodes += parts_that_run(node)
    return names


def parts_that_run(node: ast.AST) -> list[Any]:
    """List the parts of a node whose imports must succeed."""
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
        return list(node.orelse)
    if isinstance(node, ast.Try):
        caught = [ast.unparse(handler.type) for handler in node.handlers if handler.type]
        if any("Import" in name for name in caught):
            return [*node.orelse, *node.finalbody]  # the handlers are the alternative to the body
    return list(ast.iter_child_nodes(node))


def _additions_for_common(project: Project, folder: str) -> Iterator[str]:
    """Say what to add to the template so that each block of a function has the layer of shared code.

    The text is the same whether the layer exists or not: another function's complaint stays as it is when `block
    --write` adds the layer for the first one.
    """
    layer = common_layer(project)
    for block in project.blocks:
        if block.folder == folder and not (layer and has_layer(project, block, layer)):
            name = layer or COMMON_LAYER
            addition = f"add !Ref {name}, whose ContentUri is {COMMON.parent}/, to Layers of {block.logical_id}"
            yield f"{addition}: mcp-functions block --write {folder}"


def common_layer(project: Project) -> str:
    """Return the logical id of the layer of shared code; "" if the template has none."""
    for logical_id, properties in project.of_type(LAYER).items():
        if Path(str(properties.get("ContentUri"))) == COMMON.parent:
            return logical_id
    return ""


def has_layer(project: Project, block: Block, layer: str) -> bool:
    """Whether a function has a layer, in its block or in Globals."""
    return {"Ref": layer} in _layers(project, block)


def _layers(project: Project, block: Block) -> list[Any]:
    of_all_functions = iam.as_list(project.globals.get("Layers", []))
    return [*of_all_functions, *iam.as_list(block.properties.get("Layers", []))]


def _has_foreign_layer(project: Project, block: Block) -> bool:
    """Whether a function has a layer that this template does not make: it may contain any package."""
    layers_of_template = [{"Ref": name} for name in project.of_type(LAYER)]
    return any(layer not in layers_of_template for layer in _layers(project, block))
