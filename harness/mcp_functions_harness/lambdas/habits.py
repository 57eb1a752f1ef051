"""Refuses what authors of FastMCP and `MCPServer` write by habit, and names the line that works here.

    async def book(city: str, ctx: Context) -> str:       book(city: str, *, elicit: Elicit) -> str
        seat = await ctx.elicit("Which seat?", Seat)          elicit("seat", "Which seat?", Seat)

Without this, `ctx` would be an argument that the model must send, and `await` would fail after the user's answer. The
file is read, and not run. Only a module that imports names of `mcp_functions` is checked: a server that `adopt` carries
is written as its library wants.
"""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Self, TypeAlias

Def: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef

TOOLKIT = "mcp_functions"
LIBRARIES = ("mcp", "fastmcp")  # packages that have a class Context
SERVERS = ("FastMCP", "MCPServer")
CONTEXT_NAMES = ("ctx", "context")
DECORATORS = ("tool", "prompt", "resource")
CAPABILITIES = ("Elicit", "Step", "Sample", "ListRoots", "Progress", "Log")
AWAITED = "wait"  # the method of a capability that is awaited: `await step.wait(…)`
FORM_KEYWORDS = ("response_type", "schema", "requested_schema")  # of FastMCP and the official SDK
OF_CONTEXT = {  # the method of a Context -> its capability, and the call that works here
    "elicit": ("elicit: Elicit", 'elicit("key", "Which seat?", Form)'),
    "elicit_url": ("elicit: Elicit", 'elicit.url("key", "Please sign in.", url)'),
    "sample": ("sample: Sample", 'sample("key", "Sum up …", max_tokens=100)'),
    "create_message": ("sample: Sample", 'sample("key", "Sum up …", max_tokens=100)'),
    "list_roots": ("list_roots: ListRoots", "list_roots()"),
    "report_progress": ("progress: Progress", "progress(1, total=2)"),
    **{level: ("log: Log", f'log.{level}("…")') for level in ("debug", "info", "warning", "error")},
    "log": ("log: Log", 'log("info", "…")'),
    "get_state": ("step: Step", 'step("key", function): no memory lasts from one round to the next'),
    "set_state": ("step: Step", 'step("key", function): no memory lasts from one round to the next'),
}
INJECTED = {  # what injects a value elsewhere -> the parameter that does it here
    "Depends": "{name}: Annotated[{type}, Shared({argument})]",
    "Resolve": '{name}: Annotated[{type}, Ask("Which {name}?")]',
    "CurrentContext": "elicit: Elicit, progress: Progress, log: Log",
    **dict.fromkeys(("CurrentAccessToken", "CurrentHeaders", "CurrentRequest", "TokenClaim"), "caller: Caller"),
}


class Habit(TypeError):
    """A line that another library would want; the text has its file, its line, and what works here."""


def check(source: bytes, path: str) -> None:
    """Refuse a module of a function that was written for another library.

    Raises:
        Habit: a line of it cannot work here.
    """
    if TOOLKIT.encode() not in source:
        return
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):  # Python says so when it compiles the module
        return
    module = _Module.of(tree)
    if not module.uses_toolkit:
        return
    for line, text in sorted(_find(tree, module)):
        raise Habit(f"{path}:{line}: {text}")


@dataclass
class _Module:
    """The names that a module defines."""

    uses_toolkit: bool = False
    contexts: set[str] = field(default_factory=set)  # names of another library's Context
    servers: set[str] = field(default_factory=set)  # names of another library, or of its server
    defined: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, tree: ast.Module) -> Self:
        """Read the imports and the assignments of a module."""
        module = cls()
        for node in ast.walk(tree):
            match node:
                case ast.Import(names=names):
                    imported = [alias.asname or alias.name.partition(".")[0] for alias in names]
                    module.defined.update(imported)
                    module.servers.update(name for name in imported if name in LIBRARIES)
                case ast.ImportFrom(module=str(package), names=names):
                    module._take_import(package, names)
                case ast.Assign(targets=targets, value=value):
                    assigned = {target.id for target in targets if isinstance(target, ast.Name)}
                    module.defined |= assigned
                    if isinstance(value, ast.Call) and _last_name(value.func) in SERVERS:
                        module.servers |= assigned
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                    module.defined.add(name)
        return module

    def _take_import(self, package: str, names: list[ast.alias]) -> None:
        imported = {alias.asname or alias.name: alias.name for alias in names}
        self.defined.update(imported)
        self.uses_toolkit |= package == TOOLKIT
        if package.partition(".")[0] in LIBRARIES:
            self.contexts.update(name for name, original in imported.items() if original == "Context")


def _find(node: ast.AST, module: _Module, scope: Mapping[str, str] | None = None) -> Iterator[tuple[int, str]]:
    """Yield the line of each habit, and what to write. `scope` has the capabilities of the functions around `node`."""
    inner = dict(scope or {})
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            yield from _of_definition(node, module)
            inner |= {argument.arg: name for argument in _arguments(node) if (name := _capability(argument))}
        case ast.Await(value=ast.Call(func=called) as call) if _root(called) in inner and _last_name(called) != AWAITED:
            without = f"without await: {ast.unparse(call)}"
            yield node.lineno, f"{without} returns the value itself, in this round or a later one"
        case ast.Call(func=ast.Attribute(attr=method) as called) if method in OF_CONTEXT:
            root = _root(called)
            if root not in inner and (root in CONTEXT_NAMES or root == "get_context"):
                capability, example = OF_CONTEXT[method]
                works = f"add `*, {capability}` to the parameters, and write {example}"
                yield node.lineno, f"there is no Context here: {works}"
        case ast.Call(func=ast.Name(id=name)) if inner.get(name) == "Elicit":
            yield from _of_question(node)
    for child in ast.iter_child_nodes(node):
        yield from _find(child, module, inner)


def _of_definition(node: Def, module: _Module) -> Iterator[tuple[int, str]]:
    for decorator in node.decorator_list:
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        if isinstance(called, ast.Attribute) and called.attr in DECORATORS:
            server = _root(called)
            if server in module.servers or (server == "mcp" and server not in module.defined):
                works = '@resource("uri")' if called.attr == "resource" else f"@{called.attr}"
                adopts = "a whole server runs unchanged with `mcp_functions.adopt`"
                yield decorator.lineno, f"write {works} of mcp_functions, and handler = serve({node.name}); {adopts}"
    for argument, default in _with_defaults(node):
        annotation = argument.annotation
        names = {each.id for each in ast.walk(annotation) if isinstance(each, ast.Name)} if annotation else set()
        if names & module.contexts:
            works = "*, elicit: Elicit, step: Step, progress: Progress, log: Log, caller: Caller"
            yield argument.lineno, f"{argument.arg}: there is no Context here; write what it may do after *: {works}"
        for part in (default, annotation):
            yield from _of_injection(argument, part)


def _of_injection(argument: ast.arg, part: ast.expr | None) -> Iterator[tuple[int, str]]:
    """Find `Depends(…)` and its like, as a default or in `Annotated`."""
    for call in ast.walk(part) if part else ():
        if not isinstance(call, ast.Call) or _last_name(call.func) not in INJECTED:
            continue
        annotation = argument.annotation
        # Annotated[type, …]
        if isinstance(annotation, ast.Subscript) and isinstance(annotation.slice, ast.Tuple):
            annotation = annotation.slice.elts[0]
        works = INJECTED[_last_name(call.func)].format(
            name=argument.arg,
            type=ast.unparse(annotation) if annotation else "Type",
            argument=ast.unparse(call.args[0]) if call.args else "make",
        )
        yield argument.lineno, f"{argument.arg}: {_last_name(call.func)} injects nothing here; after * write {works}"


def _of_question(node: ast.Call) -> Iterator[tuple[int, str]]:
    """Find a question without a key, as `elicit("Which seat?", Seat)`."""
    keywords = {keyword.arg for keyword in node.keywords}
    if None in keywords or any(isinstance(argument, ast.Starred) for argument in node.args):
        return
    lacks_one = len(node.args) + len(keywords) < len(("key", "message", "form"))
    if lacks_one or keywords.intersection(FORM_KEYWORDS):
        yield node.lineno, 'a question needs a key, a message and a form: elicit("seat", "Which seat?", Form)'


def _arguments(node: Def) -> list[ast.arg]:
    return [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]


def _with_defaults(node: Def) -> list[tuple[ast.arg, ast.expr | None]]:
    """Return the parameters, each with its default."""
    positional = [*node.args.posonlyargs, *node.args.args]
    missing: list[ast.expr | None] = [None] * (len(positional) - len(node.args.defaults))
    return [
        *zip(positional, [*missing, *node.args.defaults], strict=True),
        *zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True),
    ]


def _capability(argument: ast.arg) -> str:
    """Return the capability that a parameter is; "" if it is none."""
    name = _last_name(argument.annotation)
    return name if name in CAPABILITIES else ""


def _last_name(node: ast.expr | None) -> str:
    """Return the last name of `mcp_functions.Elicit`; "" for another expression."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Constant(value=str(name)):  # an annotation in quotes
            return name.rpartition(".")[2]
    return ""


def _root(node: ast.expr) -> str:
    """Return the first name of `ctx.session.create_message`, or of `get_context().info`."""
    while isinstance(node, ast.Attribute | ast.Call):
        node = node.value if isinstance(node, ast.Attribute) else node.func
    return node.id if isinstance(node, ast.Name) else ""
