"""Finds the value of a name in a server's files: a function, a class, a file, or an object that outlives a call.

    store = Store()              a variable of a file outlives each call
    def make(): cart = []        a variable of a function outlives the calls of the functions inside it
    self.items, Store.items      outlive a call if their object does; the attributes of a class always do
    ctx.lifespan_context         the object that a lifespan yields outlives a call

The sources are parsed, not run. An expression that this module does not know has the value NOTHING.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from mcp_functions_harness.adoption import syntax
from mcp_functions_harness.adoption.known_calls import CONTAINERS, READING_MODULES
from mcp_functions_harness.adoption.syntax import dotted, variables_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


MAX_DEPTH = 8  # how many calls, each inside the one before, are followed
CACHES = frozenset({"cache", "lru_cache", "cached", "alru_cache"})  # keep a function's result
PARTS = frozenset({"get", "setdefault", "values", "items"})  # return an object in a container
LIBRARIES = ("mcp", "fastmcp")


class Value(NamedTuple):
    """The value of an expression, as far as it is known."""

    outlives: bool = False  # whether it is an object that the next call finds again
    instance_of: Class | None = None
    defined: Function | Class | File | None = None  # the function, class or module itself
    made_by: str = ""  # the call that made the object, if its class is not in the files

    @property
    def is_unseen(self) -> bool:
        """Whether it is an object of others that may keep something for the next call."""
        module = self.made_by.partition(".")[0]
        is_harmless = module in READING_MODULES or self.made_by in CONTAINERS
        return self.outlives and bool(self.made_by) and not is_harmless


NOTHING = Value()


class Function(NamedTuple):
    """A function or method in a file."""

    node: syntax.FunctionNode
    file: File
    owner: Class | None  # the class of a method
    outer: Function | None  # the function around it

    @property
    def name(self) -> str:
        """Its name in the source."""
        return self.node.name

    @property
    def line(self) -> int:
        """Its first line, which may be that of a decorator."""
        return min([self.node.lineno, *(decorator.lineno for decorator in self.node.decorator_list)])

    @property
    def parameters(self) -> list[ast.arg]:
        """Its parameters, in their order."""
        arguments = self.node.args
        return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]

    def has_decorator(self, *names: str) -> bool:
        """Whether one of its decorators has one of the names, whatever stands before it."""
        return any(syntax.last_name(each) in names for each in syntax.decorators_of(self.node))

    def receiver(self, instance: Value) -> dict[str, Value]:
        """Return the value of `self` or `cls` by its name, if it is called on an instance; {} without either."""
        if not self.owner or not self.parameters or self.has_decorator("staticmethod"):
            return {}
        is_of_class = self.has_decorator("classmethod")
        return {self.parameters[0].arg: Value(defined=self.owner) if is_of_class else instance}


class Class:
    """A class in a file."""

    def __init__(self, node: ast.ClassDef, file: File) -> None:
        """Read the names of its body."""
        self.node = node
        self._file = file
        self.methods: dict[str, Function] = {}
        self.variables = dict(variables_of(node.body))
        self._open: set[str] = set()  # attributes that are looked up now

    def method(self, name: str) -> Function | None:
        """Find a method in the class, or in a class from which it inherits."""
        if name in self.methods:
            return self.methods[name]
        bases = (evaluate(base, self._file.lookup).defined for base in self.node.bases)
        inherited = (base.method(name) for base in bases if isinstance(base, Class) and base is not self)
        return next(filter(None, inherited), None)

    def attribute(self, name: str, *, outlives: bool) -> Value:
        """Return the value of an attribute of an instance, which may outlive the call."""
        method = self.method(name)
        if method and not method.has_decorator("property", "cached_property"):
            return Value(outlives=outlives, instance_of=self, defined=method)
        of_class = (f"cls.{name}", f"{self.node.name}.{name}")
        for target, value, scope in self._assigned_attributes():
            if target in (f"self.{name}", *of_class) and target not in self._open:
                self._open.add(target)  # an attribute may be made of itself
                found = evaluate(value, scope.lookup)
                self._open.remove(target)
                return found._replace(outlives=outlives or target in of_class)
        variable = self.variables.get(name)
        is_of_class = isinstance(variable, ast.List | ast.Dict | ast.Set) or _is_container(variable)
        return Value(outlives=outlives or is_of_class)

    def _assigned_attributes(self) -> Iterator[tuple[str, ast.expr, Scope]]:
        """Return the assignments in the methods: the dotted name, the expression, and the scope of each."""
        for function in self.methods.values():
            for node in ast.walk(function.node):
                if isinstance(node, ast.Assign | ast.AnnAssign) and node.value:
                    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                    yield from ((dotted(target), node.value, Scope(function)) for target in targets)


class File:
    """The names that one file defines."""

    def __init__(self, name: str, tree: ast.Module, files: Mapping[str, File]) -> None:
        """Read the names of a file. `files` are all files of the server, by their dotted module names."""
        self.name = name  # the path in the function's folder
        self.tree = tree
        self.functions: list[Function] = []  # all functions and methods
        self._package = name.split("/")[:-1]
        self._files = files
        self._variables = dict(variables_of(tree.body))
        self._imports = dict(syntax.imported_names(tree))
        self._classes: dict[str, Class] = {}
        self._read(tree, None, None)

    def _read(self, node: ast.AST, owner: Class | None, outer: Function | None) -> None:
        for part in ast.iter_child_nodes(node):
            if isinstance(part, syntax.FUNCTIONS):
                function = Function(part, self, owner, outer)
                self.functions.append(function)
                if owner:
                    owner.methods[part.name] = function
                self._read(part, None, function)
            elif isinstance(part, ast.ClassDef):
                self._classes[part.name] = Class(part, self)
                self._read(part, self._classes[part.name], outer)
            else:
                self._read(part, owner, outer)

    def lookup(self, name: str) -> Value:
        """Return the value of a name of the file."""
        for function in self.functions:
            if function.name == name and function.owner is None and function.outer is None:
                return Value(defined=function)
        if name in self._classes:
            return Value(defined=self._classes[name])
        if name in self._variables:
            return self._variable(name)
        if name in self._imports:
            node, original = self._imports.pop(name)  # meanwhile: files may import each other
            value = self._imported(node, original)
            self._imports[name] = (node, original)
            return value
        # `import weather.state`
        return Value(defined=self._files.get(".".join([*self._package, name])))

    def package_of(self, name: str) -> str:
        """Return the package from which a file imports a name; "" if it does not."""
        if name not in self._imports:
            return ""
        node, original = self._imports[name]
        module = original if isinstance(node, ast.Import) else str(node.module)
        return module.partition(".")[0]

    def _variable(self, name: str) -> Value:
        node = self._variables.pop(name)  # meanwhile: a variable may be made of itself
        value = evaluate(node, self.lookup)
        self._variables[name] = node
        return NOTHING if value.made_by.startswith(LIBRARIES) else value._replace(outlives=True)

    def _imported(self, node: ast.Import | ast.ImportFrom, name: str) -> Value:
        if isinstance(node, ast.Import):
            return Value(defined=self._files.get(name))
        module = syntax.module_of(node, self._package)
        inside = self._files.get(f"{module}.{name}" if module else name)
        if inside or module not in self._files:
            return Value(defined=inside)
        return self._files[module].lookup(name)


class Scope(NamedTuple):
    """The names that are known inside a function, before it runs."""

    function: Function

    def lookup(self, name: str) -> Value:
        """Return the value of a name; a variable of the function itself does not outlive its call."""
        function = self.function
        receiver = function.receiver(Value(instance_of=function.owner))
        if name in receiver:
            return receiver[name]
        for parameter in function.parameters:
            if parameter.arg == name:
                return annotated(parameter.annotation, function.file)
        for nested in function.file.functions:
            if nested.outer and nested.outer.node is function.node and nested.name == name and not nested.owner:
                return Value(defined=nested)
        if name not in syntax.outer_names(function.node):
            for variable, value in variables_of(function.node.body):
                if variable == name:
                    return evaluate(value, function.file.lookup)._replace(outlives=False)
        return self.outside(name)

    def outside(self, name: str) -> Value:
        """Return the value of a name that the function does not make itself."""
        outer = self.function.outer
        if outer is None:
            return self.function.file.lookup(name)
        found = Scope(outer).lookup(name)
        return found if found.defined else found._replace(outlives=found.outlives or _has_variable(outer, name))


def _has_variable(function: Function, name: str) -> bool:
    """Whether a name is a variable of a function, or of one around it."""
    names = {*dict(variables_of(function.node.body)), *(parameter.arg for parameter in function.parameters)}
    return name in names or (function.outer is not None and _has_variable(function.outer, name))


def evaluate(node: ast.expr | None, lookup: Callable[[str], Value], depth: int = 0) -> Value:
    """Return the value of an expression inside `depth` calls; `lookup` returns the value of a name."""
    if depth > MAX_DEPTH:
        return NOTHING
    parts: list[ast.expr] = []  # the value of the expression is that of one of these
    match node:
        case ast.Name():
            return lookup(node.id)
        case ast.Subscript():
            return Value(outlives=evaluate(node.value, lookup, depth).outlives)
        case ast.Attribute():
            return _attribute(evaluate(node.value, lookup, depth), node.attr)
        case ast.Call():
            return _result(node, lookup, depth + 1)
        case ast.Await() | ast.NamedExpr() | ast.Starred():
            parts = [node.value]
        case ast.BoolOp():
            parts = node.values
        case ast.IfExp():
            parts = [node.body, node.orelse]
    return _first(evaluate(part, lookup, depth) for part in parts)


def _first(values: Iterator[Value]) -> Value:
    """Return the first value that outlives a call, or else the first one of which something is known."""
    known = sorted((value for value in values if value != NOTHING), key=lambda value: not value.outlives)
    return known[0] if known else NOTHING


def _attribute(base: Value, name: str) -> Value:
    if isinstance(base.defined, File):
        return base.defined.lookup(name)
    if isinstance(base.defined, Class):
        method = base.defined.method(name)
        return Value(defined=method) if method else base.defined.attribute(name, outlives=True)
    if base.instance_of:
        return base.instance_of.attribute(name, outlives=base.outlives)
    return Value(outlives=base.outlives or name == "lifespan_context", made_by=base.made_by)


def _result(call: ast.Call, lookup: Callable[[str], Value], depth: int) -> Value:
    called = evaluate(call.func, lookup, depth)
    if isinstance(called.defined, Class):
        return Value(instance_of=called.defined)
    if isinstance(called.defined, Function):
        return _returned(called.defined, depth)
    if isinstance(call.func, ast.Attribute) and call.func.attr in PARTS:
        container = evaluate(call.func.value, lookup, depth)
        return Value(outlives=container.outlives and not container.is_unseen)
    return Value(made_by=dotted(call.func))


def _returned(function: Function, depth: int) -> Value:
    """Return the value of a call of a function of the files."""
    scope = Scope(function)
    returns = [node for node in ast.walk(function.node) if isinstance(node, ast.Return | ast.Yield)]
    value = _first(evaluate(node.value, scope.lookup, depth) for node in returns)
    if value == NOTHING:
        value = annotated(function.node.returns, function.file)
    return value._replace(outlives=value.outlives or function.has_decorator(*CACHES))


def annotated(annotation: ast.expr | None, file: File) -> Value:
    """Return an instance of the class of the files that an annotation names; NOTHING for any other annotation."""
    found = evaluate(annotation, file.lookup).defined if isinstance(annotation, ast.Name | ast.Attribute) else None
    return Value(instance_of=found) if isinstance(found, Class) else NOTHING


def _is_container(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Call) and syntax.last_name(node.func) in CONTAINERS
