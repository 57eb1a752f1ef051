"""What a function of a server does, in order, as its source says: calls, questions, and changes of module variables.

A function of the same file is read where it is called. The body of a loop is read twice: what follows a question in it
happens before the question of the next turn.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from mcp_functions.local.adoption.known_calls import CHANGING_METHODS, MODULE_STATE, QUESTIONS, STEPS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
LOOPS = (ast.For, ast.AsyncFor, ast.While)
MAX_DEPTH = 8  # of functions that call each other


class Event(NamedTuple):
    """One thing that a handler does."""

    line: int
    name: str  # dotted, as the source has it; of a changed variable, its name
    asks: bool = False
    change: str = ""  # why it is a finding wherever it stands


class Source(NamedTuple):
    """What one file defines."""

    functions: Mapping[str, Function]
    classes: frozenset[str]
    variables: frozenset[str]  # of the module, that a handler could change

    @classmethod
    def read(cls, tree: ast.Module) -> Source:
        """Read the names of a file."""
        functions = {node.name: node for node in ast.walk(tree) if isinstance(node, FUNCTIONS)}
        classes = frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
        targets = [target for node in tree.body for target in _targets(node)]
        return cls(functions, classes, frozenset(target.id for target in targets if isinstance(target, ast.Name)))


class Reader:
    """Reads the events of a function and of those that it calls."""

    def __init__(self, source: Source) -> None:
        """Take what the file defines."""
        self._source = source

    def read(self, function: Function, *, depth: int = 0) -> Iterator[Event]:
        """Read the events of one function, its dependencies first."""
        if depth > MAX_DEPTH:
            return
        for default in [*function.args.defaults, *function.args.kw_defaults]:
            if isinstance(default, ast.Call) and dotted(default.func).endswith("Depends"):
                for dependency in map(dotted, default.args):
                    yield from self._called(dependency, depth)
        changed = {
            name for node in ast.walk(function) if isinstance(node, ast.Global | ast.Nonlocal) for name in node.names
        }
        yield from self._statements(function.body, changed, depth)

    def _statements(self, statements: Iterable[ast.stmt], changed: set[str], depth: int) -> Iterator[Event]:
        for statement in statements:
            if isinstance(statement, (*FUNCTIONS, ast.ClassDef)):
                continue  # read where it is called
            if isinstance(statement, LOOPS):
                yield from self._node(statement, changed, depth)
            yield from self._node(statement, changed, depth)

    def _node(self, node: ast.AST, changed: set[str], depth: int) -> Iterator[Event]:
        """Read a node: first what is inside it, because arguments are computed before their call."""
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.stmt):
                yield from self._statements([child], changed, depth)
            elif not isinstance(child, ast.Lambda):
                yield from self._node(child, changed, depth)
        for target in _targets(node):
            yield from self._changes(target, changed)
        if isinstance(node, ast.Call):
            yield from self._call(node, depth)

    def _changes(self, target: ast.expr, changed: set[str]) -> Iterator[Event]:
        root = target
        while isinstance(root, ast.Attribute | ast.Subscript):
            root = root.value
        if not isinstance(root, ast.Name):
            return
        is_module_s = root.id in self._source.variables and root is not target
        if is_module_s or root.id in changed:
            yield Event(target.lineno, root.id, change=MODULE_STATE)

    def _call(self, node: ast.Call, depth: int) -> Iterator[Event]:
        name = dotted(node.func)
        owner, _dot, last = name.rpartition(".")
        if name in self._source.functions and name not in STEPS:
            yield from self._called(name, depth)
        elif owner in self._source.variables and last in CHANGING_METHODS:
            yield Event(node.lineno, name, change=MODULE_STATE)
        else:
            yield Event(node.lineno, name, asks=last in QUESTIONS)

    def _called(self, name: str, depth: int) -> Iterator[Event]:
        function = self._source.functions.get(name)
        if function:
            yield from self.read(function, depth=depth + 1)


def dotted(node: ast.expr) -> str:
    """Write a name as the source has it; what is not a name becomes "…"."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return "…"


def _targets(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.Assign | ast.Delete):
        return list(node.targets)
    if isinstance(node, ast.AugAssign | ast.AnnAssign):
        return [node.target]
    return []
