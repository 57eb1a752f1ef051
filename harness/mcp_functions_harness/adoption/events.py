"""Lists the events of a server's function, in the order of its source: calls, questions, changes of module variables.

The source is parsed, not run. A function of the same file is read where it is called.

The body of a loop is read twice. In `for …: ask(); charge()`, the call of charge follows a question, but it also comes
before the question of the next turn.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from mcp_functions_harness.adoption.known_calls import CHANGING_METHODS, MODULE_STATE, QUESTIONS, STEPS

if TYPE_CHECKING:
    from collections.abc import Mapping

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
LOOPS = (ast.For, ast.AsyncFor, ast.While)
NOT_RUN_HERE = (*FUNCTIONS, ast.ClassDef, ast.Lambda)  # a function is read where it is called
MAX_DEPTH = 8  # how deep functions that call each other are followed


class Event(NamedTuple):
    """One thing that a handler does."""

    line: int
    name: str  # the dotted name of a call, as the source has it, or the name of a changed variable
    asks: bool = False  # whether the call asks the user
    change: str = ""  # for a changed variable: why the change is a finding


class Source(NamedTuple):
    """The names that one file defines."""

    functions: Mapping[str, Function]
    classes: frozenset[str]
    variables: frozenset[str]  # variables of the module, which a handler could change

    @classmethod
    def read(cls, tree: ast.Module) -> Source:
        """Read the names of a file."""
        functions = {node.name: node for node in ast.walk(tree) if isinstance(node, FUNCTIONS)}
        classes = frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
        targets = [target for node in tree.body for target in _targets(node)]
        return cls(functions, classes, frozenset(target.id for target in targets if isinstance(target, ast.Name)))


class Reader(ast.NodeVisitor):
    """Reads the events of a function and of those that it calls."""

    def __init__(self, source: Source, *, depth: int = 0) -> None:
        """Prepare to read one function.

        Args:
            source: the names of the file.
            depth: how many functions were entered before this one.
        """
        self._source = source
        self._depth = depth
        self._events: list[Event] = []
        self._outer: set[str] = set()  # variables that the function declares as global or nonlocal

    def read(self, function: Function) -> list[Event]:
        """Read the events of one function. Its dependencies, as in `db=Depends(connect)`, are called first."""
        for default in [*function.args.defaults, *function.args.kw_defaults]:
            if isinstance(default, ast.Call) and dotted(default.func).endswith("Depends"):
                for dependency in default.args:
                    self._enter(dotted(dependency))
        for node in ast.walk(function):
            if isinstance(node, ast.Global | ast.Nonlocal):
                self._outer |= set(node.names)
        for statement in function.body:
            self.visit(statement)
        return self._events

    def visit(self, node: ast.AST) -> None:
        """Read a node: its parts come first, because arguments are computed before their call."""
        if isinstance(node, NOT_RUN_HERE):
            return
        self.generic_visit(node)
        if isinstance(node, LOOPS):
            self.generic_visit(node)  # the second turn
        for target in _targets(node):
            self._change(target)
        if isinstance(node, ast.Call):
            self._call(node)

    def _change(self, target: ast.expr) -> None:
        """Note the change of a variable, unless it is a local one."""
        root = target
        while isinstance(root, ast.Attribute | ast.Subscript):
            root = root.value
        if not isinstance(root, ast.Name):
            return
        # `name.x = …` and `name[x] = …` change a variable of the module. `name = …` makes a local variable, unless a
        # global or nonlocal statement declares it.
        changes_part = root is not target and root.id in self._source.variables
        if changes_part or root.id in self._outer:
            self._events.append(Event(target.lineno, root.id, change=MODULE_STATE))

    def _call(self, node: ast.Call) -> None:
        """Note a call; of a function of the file, note what it does instead."""
        name = dotted(node.func)
        owner, _dot, last = name.rpartition(".")
        if name in self._source.functions and name not in STEPS:
            self._enter(name)
        elif owner in self._source.variables and last in CHANGING_METHODS:
            self._events.append(Event(node.lineno, name, change=MODULE_STATE))
        else:
            self._events.append(Event(node.lineno, name, asks=last in QUESTIONS))

    def _enter(self, name: str) -> None:
        """Read a function of the file where it is called."""
        if name in self._source.functions and self._depth < MAX_DEPTH:
            self._events += Reader(self._source, depth=self._depth + 1).read(self._source.functions[name])


def dotted(node: ast.expr) -> str:
    """Return a dotted name as the source has it; "…" stands for any other expression, as in `connect().commit`."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return "…"


def _targets(node: ast.AST) -> list[ast.expr]:
    """Return what a statement assigns or deletes."""
    if isinstance(node, ast.Assign | ast.Delete):
        return list(node.targets)
    if isinstance(node, ast.AugAssign | ast.AnnAssign):
        return [node.target]
    return []
