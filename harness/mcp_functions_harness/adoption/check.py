"""`adopt --check`: reads a server's source, and names by line what would happen twice in a tool that asks.

    async def book(ctx):                round 1       round 2, after the user's answer
        charge(card)                    runs          runs again: a finding
        seat = await ctx.elicit(...)    the call ends answered, the tool goes on
        reserve(seat)                                 runs

A Lambda does not wait for a user. So a tool that asks ends, and runs again from its first line in the next round (the
next request of the client). A call before the last question runs once for each round. An author avoids that with a
step: code whose result the toolkit records.

The check reads one file and runs nothing. A call that it does not know is a finding too. So is an HTTP application, and
what reads a request or the claims of a token. They may say who may call, and an adopted server has none of them.
"""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from mcp_functions_harness.adoption import known_calls
from mcp_functions_harness.adoption.events import FUNCTIONS, Event, Function, Reader, Source, dotted
from mcp_functions_harness.problems import first_line, stop

# How servers written with mcp or fastmcp register their handlers:
DECORATORS = frozenset({"tool", "prompt", "resource"})  # @server.tool
METHODS = frozenset({"add_tool", "add_prompt", "from_function"})  # server.add_tool(book)
RETURNED_QUESTION = "InputRequiredResult"
KEYWORDS = frozenset({"on_call_tool", "on_get_prompt", "on_read_resource"})  # Server("name", on_call_tool=call)


class Finding(NamedTuple):
    """One place of the source that its author has to look at."""

    line: int
    handler: str  # the name of the tool, prompt or resource
    name: str  # the name of the call, or of the changed variable
    reason: str

    def __str__(self) -> str:
        """Write it without its file."""
        return f"{self.line}: {self.handler}: {self.name}: {self.reason}"


class Report(NamedTuple):
    """What the check found in one file."""

    asking: tuple[str, ...]  # the names of the handlers that ask their user in the middle of their work
    asking_in_two_ways: tuple[str, ...]  # of those that also return their questions, as servers do since 2026-07-28
    findings: tuple[Finding, ...]


def check_source(path: Path) -> Report:
    """Check the source of a server.

    Raises:
        Problem: the file is missing, or is not Python.
    """
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, SyntaxError) as error:
        stop(f"{path} cannot be read as Python: {first_line(error)}", after=error)
    source = Source.read(tree)
    asking: list[str] = []
    asking_in_two_ways: list[str] = []
    findings = {*_find_http(tree), *_find_catching(source)}  # a set, because an event of a loop is read twice
    for function in _handlers(tree, source):
        events = Reader(source).read(function)
        questions = [index for index, event in enumerate(events) if event.asks]
        last_question = questions[-1] if questions else 0
        if questions:
            returns_questions = any(event.name.rpartition(".")[2] == RETURNED_QUESTION for event in events)
            (asking_in_two_ways if returns_questions else asking).append(function.name)
        for index, event in enumerate(events):
            reason = _reason(event, source, runs_again=index < last_question)
            if reason:
                findings.add(Finding(event.line, function.name, event.name, reason))
    return Report(tuple(asking), tuple(asking_in_two_ways), tuple(sorted(findings)))


def _handlers(tree: ast.Module, source: Source) -> Iterator[Function]:
    """Find the functions that a server calls for its clients, because a call or a decorator registers them."""
    nodes = list(ast.walk(tree))
    registered_names: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Call):
            if dotted(node.func).rpartition(".")[2] in METHODS:
                registered_names |= {dotted(argument) for argument in node.args}
            registered_names |= {dotted(keyword.value) for keyword in node.keywords if keyword.arg in KEYWORDS}
    for node in nodes:
        if isinstance(node, FUNCTIONS):
            is_decorated = any(_registers(decorator) for decorator in node.decorator_list)
            if is_decorated or node.name in registered_names:
                yield source.functions[node.name]


def _registers(decorator: ast.expr) -> bool:
    """Whether a decorator registers its function, as `@server.tool` or `@server.tool(...)`."""
    name = decorator.func if isinstance(decorator, ast.Call) else decorator
    return isinstance(name, ast.Attribute) and name.attr in DECORATORS


def _find_catching(source: Source) -> Iterator[Finding]:
    """Find code around a question that catches every exception, or returns in `finally`."""
    for function in source.functions.values():
        for node in ast.walk(function):
            if not isinstance(node, ast.Try) or not any(_asks(part) for part in _parts(node.body)):
                continue
            for handler in node.handlers:
                kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
                catches_all = any(kind is None or dotted(kind) == "BaseException" for kind in kinds)
                if catches_all and not any(isinstance(each, ast.Raise) for each in ast.walk(handler)):
                    yield Finding(handler.lineno, function.name, "except", known_calls.CATCHES)
            for part in _parts(node.finalbody):
                if isinstance(part, ast.Return):
                    yield Finding(part.lineno, function.name, "return", known_calls.CATCHES)


def _parts(statements: list[ast.stmt]) -> Iterator[ast.AST]:
    for statement in statements:
        yield from ast.walk(statement)


def _asks(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and dotted(node.func).rpartition(".")[2] in known_calls.QUESTIONS


def _find_http(tree: ast.Module) -> Iterator[Finding]:
    """Find what a server has of HTTP: its applications with their options, and what reads a request or a token."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield from _find_http_call(node)
        elif isinstance(node, ast.Attribute):
            name = dotted(node)
            if ".".join(name.split(".")[-2:]) in known_calls.HTTP_ATTRIBUTES:
                yield Finding(node.lineno, "the server", name, known_calls.NO_HTTP_REQUEST)
            elif node.attr == "claims":
                yield Finding(node.lineno, "the server", name, known_calls.CLAIMS)


def _find_http_call(node: ast.Call) -> Iterator[Finding]:
    called = dotted(node.func)
    last = called.rpartition(".")[2]
    if last in known_calls.HTTP_READERS:
        yield Finding(node.lineno, "the server", called, known_calls.NO_HTTP_REQUEST)
    is_app = last in known_calls.HTTP_APPS
    options = [
        f"{called}({keyword.arg or '**'}=…)"
        for keyword in node.keywords
        if (is_app and keyword.arg not in known_calls.NOT_RESTRICTING)
        or (last in known_calls.HTTP_RUNS and keyword.arg in known_calls.RESTRICTING)
    ]
    for option in options:
        yield Finding(node.lineno, "the server", option, known_calls.HTTP_OPTION)
    if last == known_calls.HTTP_MANAGER or (is_app and not options):
        yield Finding(node.lineno, "the server", called, known_calls.HTTP_APP)


def _reason(event: Event, source: Source, *, runs_again: bool) -> str:
    """Say why an event is a finding; "" if it is none."""
    if event.change:
        return event.change
    last = event.name.rpartition(".")[2]
    if last in known_calls.ANYWHERE:
        return known_calls.ANYWHERE[last]
    if runs_again and not event.asks:
        return _reason_if_repeated(event.name, source)
    return ""


def _reason_if_repeated(name: str, source: Source) -> str:
    """Say why a call that runs in every round is a finding; "" if it is none."""
    first = name.partition(".")[0]
    last = name.rpartition(".")[2]
    if name in known_calls.STEPS:
        return ""
    if last in known_calls.GROUPS:
        return known_calls.CONCURRENT
    if first in known_calls.CHANGING or last in known_calls.CHANGING_NAMES:
        return known_calls.CHANGES
    if _only_reads(name, source):
        return ""
    if last in known_calls.WRITING_NAMES:
        return known_calls.WRITES
    return known_calls.UNKNOWN


def _only_reads(name: str, source: Source) -> bool:
    """Whether a call may run twice without harm, by its dotted name."""
    if name in known_calls.READING_BUILTINS or name in source.classes:
        return True
    owner, _dot, last = name.rpartition(".")
    if owner in known_calls.READING_MODULES:
        return True
    return bool(owner) and last in known_calls.READING_METHODS
