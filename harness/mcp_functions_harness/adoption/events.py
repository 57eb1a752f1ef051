"""Lists the events of a server's function in the order of its source: calls, questions, and lasting changes.

A change lasts if the changed object outlives the call of the function.

The source is parsed, not run. A function of the server's files is read where it is called.

The body of a loop is read twice. In `for …: ask(); charge()`, the call of charge follows a question, but it also comes
before the question of the next turn.
"""

from __future__ import annotations

import ast
from typing import NamedTuple

from mcp_functions_harness.adoption.known_calls import CHANGING_METHODS, MODULE_STATE, QUESTIONS, STEPS
from mcp_functions_harness.adoption.names import NOTHING, Class, File, Function, Scope, Value, annotated, evaluate
from mcp_functions_harness.adoption.syntax import (
    DEFINITIONS,
    defaults_of,
    dotted,
    last_name,
    outer_names,
    source_of,
    targets_of,
)

MAX_CALLS = 40  # how deep functions that call each other are followed
LOOPS = (ast.For, ast.AsyncFor, ast.While)


class Event(NamedTuple):
    """A call in a handler, or a change of an object that outlives the handler's call."""

    file: str  # the path in the function's folder
    line: int
    name: str  # the dotted name of a call, or the name of a changed variable
    asks: bool = False  # whether the call asks the user
    change: str = ""  # for a change: why it is a finding
    unseen: str = ""  # for a call of an unknown object that outlives this one: its maker


class Reader(ast.NodeVisitor):
    """Reads the events of a function and of those that it calls."""

    def __init__(self, function: Function, *, caller: Reader | None = None) -> None:
        """Prepare to read a function; `caller` reads the function that calls it."""
        self.function = function
        self.caller = caller
        self.depth: int = caller.depth + 1 if caller else 0
        # The events of functions that were read: by the function and its arguments.
        self.read_before: dict[tuple[ast.AST, frozenset[tuple[str, Value]]], list[Event]] = (
            caller.read_before if caller else {}
        )
        self._events: list[Event] = []
        self._outer = outer_names(function.node)
        self._variables: dict[str, Value] = {}

    def read(self, given: dict[str, Value] | None = None) -> list[Event]:
        """Read the events of the function. Its dependencies are called first; `given` are the values of parameters."""
        for parameter in self.function.parameters:
            self._variables[parameter.arg] = annotated(parameter.annotation, self.function.file)
        # A handler that is a method belongs to a registered object.
        registered = Value(outlives=True, instance_of=self.function.owner)
        self._variables |= self.function.receiver(registered)
        self._variables |= given or {}
        self._read_dependencies()
        for statement in self.function.node.body:
            self.visit(statement)
        return self._events

    def _read_dependencies(self) -> None:
        """Read the functions that the library calls for parameters, as in `db=Depends(connect)`."""
        for parameter, default in defaults_of(self.function.node):
            if isinstance(default, ast.Call) and dotted(default.func).endswith("Depends"):
                for dependency in default.args:
                    call = ast.Call(dependency, [], [])
                    self._variables[parameter.arg] = evaluate(call, self.lookup)
                    self._call(ast.copy_location(call, default))

    def lookup(self, name: str) -> Value:
        """Return the value of a name at this point of the function."""
        if name in self._variables and name not in self._outer:
            return self._variables[name]
        caller = self.caller
        while caller:
            # A function inside a function that runs: the variables of that one are those of this call.
            if self.function.outer and caller.function.node is self.function.outer.node:
                return caller.lookup(name)
            caller = caller.caller
        scope = Scope(self.function)
        return scope.outside(name) if name in self._outer else scope.lookup(name)

    def visit(self, node: ast.AST) -> None:
        """Read a node: its parts come first, because arguments are computed before their call."""
        if isinstance(node, DEFINITIONS):
            return  # a function is read where it is called
        if isinstance(node, ast.For | ast.AsyncFor):
            self._assign(node)  # before its body
        self.generic_visit(node)
        if isinstance(node, LOOPS):
            self.generic_visit(node)  # the second turn
        self._assign(node)
        if isinstance(node, ast.Call):
            self._call(node)

    def _assign(self, node: ast.AST) -> None:
        """Note the changes that a statement makes, and the new values of its local variables."""
        targets = targets_of(node)
        parts = [target for target in targets if isinstance(target, ast.Attribute | ast.Subscript)]
        for part in parts:
            base = evaluate(part.value, self.lookup)
            if base.outlives or isinstance(base.defined, Class | File):
                self._add(part, dotted(part.value if isinstance(part, ast.Subscript) else part), change=MODULE_STATE)
        # As in `cart = carts[name] = []`.
        is_kept = any(evaluate(part.value, self.lookup).outlives for part in parts)
        value = evaluate(source_of(node), self.lookup)
        for target in targets:
            if not isinstance(target, ast.Name):
                continue
            if target.id in self._outer:
                self._add(target, target.id, change=MODULE_STATE)
            elif not isinstance(node, ast.AugAssign):
                before = self._variables.get(target.id, NOTHING)  # perhaps set by another branch
                outlives = value.outlives or is_kept or before.outlives
                self._variables[target.id] = value._replace(outlives=outlives)

    def _add(self, node: ast.expr, name: str, *, asks: bool = False, change: str = "", unseen: str = "") -> None:
        self._events.append(Event(self.function.file.name, node.lineno, name, asks, change, unseen))

    def _call(self, node: ast.Call) -> None:
        """Note a call; in place of a call of a function of the files, note the events of that function."""
        name, last = dotted(node.func), last_name(node.func)
        called = evaluate(node.func, self.lookup)
        if name in STEPS:
            self._add(node, name)
        elif isinstance(called.defined, Function):
            self._enter(called.defined, node, called)
        elif isinstance(called.defined, Class):
            constructor = called.defined.method("__init__")
            if constructor:
                self._enter(constructor, node, Value(instance_of=called.defined))
        else:
            for argument in node.args:  # asyncio.to_thread(save, text) calls save
                function = evaluate(argument, self.lookup)
                if isinstance(function.defined, Function):
                    self._enter(function.defined, ast.copy_location(ast.Call(argument, [], []), node), function)
            owner = evaluate(node.func.value, self.lookup) if isinstance(node.func, ast.Attribute) else NOTHING
            if owner.is_unseen and last not in QUESTIONS:
                self._add(node, name, unseen=owner.made_by)
            elif owner.outlives and last in CHANGING_METHODS:
                self._add(node, name, change=MODULE_STATE)
            else:
                self._add(node, name, asks=last in QUESTIONS)

    def _enter(self, function: Function, call: ast.Call, called: Value) -> None:
        """Read a function of the files where it is called."""
        readers: list[Reader] = [self]
        while readers[-1].caller:
            readers.append(readers[-1].caller)
        if self.depth >= MAX_CALLS or any(each.function.node is function.node for each in readers):
            return
        given = function.receiver(called._replace(defined=None))
        parameters = [parameter.arg for parameter in function.parameters if parameter.arg not in given]
        values = [evaluate(argument, self.lookup) for argument in call.args]
        given |= dict(zip(parameters, values, strict=False))
        given |= {each.arg: evaluate(each.value, self.lookup) for each in call.keywords if each.arg in parameters}
        known = {name: value for name, value in given.items() if value != NOTHING}
        key = (function.node, frozenset(known.items()))
        # A function inside another one also has that one's variables.
        if function.outer or key not in self.read_before:
            self.read_before[key] = _shortened(Reader(function, caller=self).read(known))
        self._events += self.read_before[key]


def _shortened(events: list[Event]) -> list[Event]:
    """Leave out what is repeated: of each event the first place counts, and of a question the last place too."""
    kept: list[Event] = []
    last = {event: index for index, event in enumerate(events) if event.asks}
    seen: set[Event] = set()
    for index, event in enumerate(events):
        if event not in seen or last.get(event) == index:
            kept.append(event)
        seen.add(event)
    return kept
