"""What the names in a server's files stand for: functions, classes, files, and objects that outlive a call.

    store = Store()              a variable of a file outlives each call
    def make(): cart = []        a variable of a function outlives the calls of the functions inside it
    self.items, Store.items      outlive a call if their object does; what a class itself has, always
    ctx.lifespan_context         what a lifespan yields, outlives it too

The sources are parsed, not run. So an expression that this module does not know stands for nothing.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from mcp_functions_harness.adoption.known_calls import CONTAINERS, READING_MODULES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

Definition: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
MAX_DEPTH = 8  # how many calls inside an expression, and in what these return, are followed
# decorators that keep what a function returns
CACHES = frozenset({"cache", "lru_cache", "cached", "alru_cache"})
# methods of a container that return what is in it
PARTS = frozenset({"get", "setdefault", "values", "items"})
LIBRARIES = ("mcp", "fastmcp")


class Value(NamedTuple):
    """What an expression stands for, as far as it is known."""

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

    node: Definition
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
        calls = [each.func if isinstance(each, ast.Call) else each for each in self.node.decorator_list]
        return any(dotted(each).rpartition(".")[2] in names for each in calls)


class Class:
    """A class in a file."""

    def __init__(self, node: ast.ClassDef, file: File) -> None:
        """Read the names of its body."""
        self.node = node
        self._file = file
        self.methods: dict[str, Function] = {}
        self.variables = {name: value for part in node.body for name, value in _assigned(part)}
        self._open: set[str] = set()  # attributes that are looked up now

    def method(self, name: str) -> Function | None:
        """Find a method in the class, or in a class from which it inherits."""
        if name in self.methods:
            return self.methods[name]
        for base in self.node.bases:
            value = evaluate(base, self._file.lookup)
            found = (
                value.defined.method(name) if isinstance(value.defined, Class) and value.defined is not self else None
            )
            if found:
                return found
        return None

    def attribute(self, name: str, *, outlives: bool) -> Value:
        """Say what an attribute of an instance stands for.

        Args:
            name: the name of the attribute.
            outlives: whether the instance outlives the call.
        """
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
        """Return what the methods assign: the dotted name, the expression, and the names that are known there."""
        for function in self.methods.values():
            for node in ast.walk(function.node):
                if isinstance(node, ast.Assign | ast.AnnAssign) and node.value:
                    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                    yield from ((dotted(target), node.value, Scope(function)) for target in targets)


class File:
    """The names that one file defines.

    Attributes:
        name: the path of the file in the function's folder.
        functions: all functions and methods.
    """

    def __init__(self, name: str, tree: ast.Module, files: Mapping[str, File]) -> None:
        """Read the names of a file.

        Args:
            name: the path of the file in the function's folder.
            tree: the parsed file.
            files: all files of the server, by their dotted module names.
        """
        self.name = name
        self.tree = tree
        self.functions: list[Function] = []
        self._package = name.split("/")[:-1]
        self._files = files
        self._variables = {name: value for part in _parts_of_file(tree) for name, value in _assigned(part)}
        self._imports = dict(_imports(tree))
        self._classes: dict[str, Class] = {}
        self._read(tree, None, None)

    def _read(self, node: ast.AST, owner: Class | None, outer: Function | None) -> None:
        for part in ast.iter_child_nodes(node):
            if isinstance(part, FUNCTIONS):
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
        """Say what a name of the file stands for."""
        for function in self.functions:
            if function.name == name and function.owner is None and function.outer is None:
                return Value(defined=function)
        if name in self._classes:
            return Value(defined=self._classes[name])
        if name in self._variables:
            return self._variable(name)
        if name in self._imports:
            node, original = self._imports.pop(name)  # two files may import from each other
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
        node = self._variables.pop(name)  # a variable may be made of itself
        value = evaluate(node, self.lookup)
        self._variables[name] = node
        return NOTHING if value.made_by.startswith(LIBRARIES) else value._replace(outlives=True)

    def _imported(self, node: ast.Import | ast.ImportFrom, name: str) -> Value:
        if isinstance(node, ast.Import):
            return Value(defined=self._files.get(name))
        start = self._package[: len(self._package) - node.level + 1] if node.level else []
        module = ".".join([*start, *filter(None, [node.module])])
        inside = self._files.get(f"{module}.{name}" if module else name)
        if inside or module not in self._files:
            return Value(defined=inside)
        return self._files[module].lookup(name)


class Scope:
    """The names that are known inside a function, before it runs."""

    def __init__(self, function: Function) -> None:
        """Keep the function."""
        self._function = function

    def lookup(self, name: str) -> Value:
        """Say what a name stands for; a variable of the function itself does not outlive its call."""
        node = self._function.node
        owner = self._function.owner
        if owner and self._function.parameters[:1] and name == self._function.parameters[0].arg:
            is_of_class = self._function.has_decorator("classmethod")
            return Value(defined=owner) if is_of_class else Value(instance_of=owner)
        for parameter in self._function.parameters:
            if parameter.arg == name:
                return annotated(parameter.annotation, self._function.file)
        nested = [each for each in self._function.file.functions if each.outer and each.outer.node is node]
        for function in nested:
            if function.name == name and not function.owner:
                return Value(defined=function)
        if name not in declared_outer(node):
            for part in _parts_of(node):
                for target, value in _assigned(part):
                    if target == name:
                        return evaluate(value, self._function.file.lookup)._replace(outlives=False)
        return self.outside(name)

    def outside(self, name: str) -> Value:
        """Say what a name stands for that the function does not make itself."""
        if self._function.outer is None:
            return self._function.file.lookup(name)
        found = Scope(self._function.outer).lookup(name)
        return found if found.defined else found._replace(outlives=found.outlives or self._is_variable_outside(name))

    def _is_variable_outside(self, name: str) -> bool:
        outer = self._function.outer
        while outer:
            names = {target for part in _parts_of(outer.node) for target, _value in _assigned(part)}
            if name in names or any(parameter.arg == name for parameter in outer.parameters):
                return True
            outer = outer.outer
        return False


def evaluate(node: ast.expr | None, lookup: Callable[[str], Value], depth: int = 0) -> Value:
    """Say what an expression stands for.

    Args:
        node: the expression; None stands for nothing.
        lookup: says what a name stands for.
        depth: how many expressions were entered before this one.
    """
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
    """Say what a call returns."""
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
    """Say what a function of the files returns."""
    scope = Scope(function)
    returns = [node for node in ast.walk(function.node) if isinstance(node, ast.Return | ast.Yield)]
    value = _first(evaluate(node.value, scope.lookup, depth) for node in returns)
    if value == NOTHING:
        value = annotated(function.node.returns, function.file)
    return value._replace(outlives=value.outlives or function.has_decorator(*CACHES))


def annotated(annotation: ast.expr | None, file: File) -> Value:
    """Say what an annotation tells about its variable: an instance of a class of the files."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        return Value(instance_of=None)
    found = evaluate(annotation, file.lookup).defined if isinstance(annotation, ast.Name | ast.Attribute) else None
    return Value(instance_of=found) if isinstance(found, Class) else NOTHING


def declared_outer(node: Definition) -> set[str]:
    """Return the variables that a function declares as global or nonlocal."""
    return {name for part in ast.walk(node) if isinstance(part, ast.Global | ast.Nonlocal) for name in part.names}


def dotted(node: ast.expr) -> str:
    """Return a dotted name as the source has it; "…" stands for any other expression, as in `connect().commit`."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return "…"


def targets_of(node: ast.AST) -> list[ast.expr]:
    """Return what a statement assigns or deletes."""
    if isinstance(node, ast.Assign | ast.Delete):
        return [part for target in node.targets for part in _unpacked(target)]
    if isinstance(node, ast.AugAssign | ast.AnnAssign | ast.For | ast.AsyncFor | ast.NamedExpr):
        return _unpacked(node.target)
    if isinstance(node, ast.withitem) and node.optional_vars:
        return _unpacked(node.optional_vars)
    return []


def source_of(node: ast.AST) -> ast.expr | None:
    """Return the expression from which a statement assigns."""
    if isinstance(node, ast.For | ast.AsyncFor):
        return node.iter
    return node.context_expr if isinstance(node, ast.withitem) else getattr(node, "value", None)


def _unpacked(target: ast.expr) -> list[ast.expr]:
    if isinstance(target, ast.Tuple | ast.List):
        return [part for each in target.elts for part in _unpacked(each)]
    return [target]


def _assigned(node: ast.AST) -> Iterator[tuple[str, ast.expr | None]]:
    """Return the names that a statement assigns, with their expressions."""
    if not isinstance(node, ast.Delete | ast.AugAssign):
        yield from ((target.id, source_of(node)) for target in targets_of(node) if isinstance(target, ast.Name))


def _imports(tree: ast.Module) -> Iterator[tuple[str, tuple[ast.Import | ast.ImportFrom, str]]]:
    """Return the names that a file imports; for each its statement, and the name that it has there."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                # `import a.b` defines the name a
                name = alias.name if alias.asname else alias.name.partition(".")[0]
                yield alias.asname or name, (node, name)
        elif isinstance(node, ast.ImportFrom):
            yield from ((alias.asname or alias.name, (node, alias.name)) for alias in node.names)


def _parts_of(node: Definition) -> Iterator[ast.AST]:
    """Return the statements of a function, without those of functions and classes inside it."""
    waiting: list[ast.AST] = list(node.body)
    for part in waiting:  # the list grows by the parts of each
        yield part
        if not isinstance(part, (*FUNCTIONS, ast.ClassDef, ast.Lambda)):
            waiting += ast.iter_child_nodes(part)


def _parts_of_file(tree: ast.Module) -> Iterator[ast.AST]:
    """Return the statements that make a file's variables, also inside `if`, `try` and `with`."""
    waiting: list[ast.AST] = list(tree.body)
    for part in waiting:  # the list grows by the parts of each
        yield part
        if isinstance(part, ast.If | ast.Try | ast.With | ast.ExceptHandler | ast.For):
            waiting += ast.iter_child_nodes(part)


def _is_container(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Call) and dotted(node.func).rpartition(".")[2] in CONTAINERS
