"""Reads parts of a parsed file: names, imports, and what a statement assigns. Names here are those of the source."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

FunctionNode: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
DEFINITIONS = (*FUNCTIONS, ast.ClassDef, ast.Lambda)  # their bodies do not run where they stand


def dotted(node: ast.AST | None) -> str:
    """Return a dotted name as the source has it; any other expression is "…", as in `connect().commit`."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return "…"


def last_name(node: ast.AST) -> str:
    """Return the last part of a dotted name: "tool" for `server.tool`."""
    return dotted(node).rpartition(".")[2]


def decorators_of(function: FunctionNode) -> list[ast.expr]:
    """Return the decorators of a function without their arguments: `server.tool` for `@server.tool(...)`."""
    return [each.func if isinstance(each, ast.Call) else each for each in function.decorator_list]


def defaults_of(function: FunctionNode) -> Iterator[tuple[ast.arg, ast.expr]]:
    """Return the parameters that have a default, with the default."""
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    # Defaults belong to the last positional parameters.
    yield from zip(positional[len(positional) - len(arguments.defaults) :], arguments.defaults, strict=True)
    for parameter, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        if default:
            yield parameter, default


def module_of(node: ast.ImportFrom, package: Sequence[str]) -> str:
    """Return the dotted name of the module from which a file imports; "" for the top of its own files."""
    start = package[: len(package) - node.level + 1] if node.level else ()
    return ".".join([*start, *filter(None, [node.module])])


def imported_names(tree: ast.Module) -> Iterator[tuple[str, tuple[ast.Import | ast.ImportFrom, str]]]:
    """Return the names that a file imports; for each its statement, and the name that it has there."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                # `import a.b` defines the name a
                name = alias.name if alias.asname else alias.name.partition(".")[0]
                yield alias.asname or name, (node, name)
        elif isinstance(node, ast.ImportFrom):
            yield from ((alias.asname or alias.name, (node, alias.name)) for alias in node.names)


def outer_names(function: FunctionNode) -> set[str]:
    """Return the variables that a function declares as global or nonlocal."""
    return {name for part in ast.walk(function) if isinstance(part, ast.Global | ast.Nonlocal) for name in part.names}


def targets_of(node: ast.AST) -> list[ast.expr]:
    """Return what a statement assigns or deletes."""
    match node:
        case ast.Assign(targets=targets) | ast.Delete(targets=targets):
            return [part for target in targets for part in _unpacked(target)]
        case ast.AugAssign() | ast.AnnAssign() | ast.For() | ast.AsyncFor() | ast.NamedExpr():
            return _unpacked(node.target)
        case ast.withitem(optional_vars=ast.expr() as target):
            return _unpacked(target)
    return []


def _unpacked(target: ast.expr) -> list[ast.expr]:
    if isinstance(target, ast.Tuple | ast.List):
        return [part for each in target.elts for part in _unpacked(each)]
    return [target]


def source_of(node: ast.AST) -> ast.expr | None:
    """Return the expression from which a statement assigns."""
    match node:
        case ast.For() | ast.AsyncFor():
            return node.iter
        case ast.withitem():
            return node.context_expr
    value: ast.expr | None = getattr(node, "value", None)
    return value


def variables_of(body: Iterable[ast.AST]) -> Iterator[tuple[str, ast.expr | None]]:
    """Return the names that statements assign, with their expressions; not those of functions and classes inside."""
    waiting = list(body)
    for node in waiting:  # the list grows by the parts of each node
        if not isinstance(node, ast.Delete | ast.AugAssign):
            yield from ((target.id, source_of(node)) for target in targets_of(node) if isinstance(target, ast.Name))
        if not isinstance(node, DEFINITIONS):
            waiting += ast.iter_child_nodes(node)
