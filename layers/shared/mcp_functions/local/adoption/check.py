"""`adopt --check`: reads a server's source, and names by line what would happen twice in a tool that asks.

    async def book(ctx):                round 1       round 2, after the user's answer
        charge(card)                    runs          runs again: a finding
        seat = await ctx.elicit(...)    the call ends answered, the tool goes on
        reserve(seat)                                 runs

A Lambda does not wait for a user. So a tool that asks ends, and runs again from its first line in every round, which is
one request of the client. Whatever stands before its last question happens once for each round, unless it is a step:
code whose result the toolkit records. The check reads one file and runs nothing. A call that it does not know is a
finding too.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from mcp_functions.local.adoption import known_calls
from mcp_functions.local.adoption.events import FUNCTIONS, Event, Reader, Source, dotted
from mcp_functions.local.problems import first_line, stop

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mcp_functions.local.adoption.events import Function

# How servers written with mcp or fastmcp register their handlers: by decorators, by methods, or by keyword arguments.
DECORATORS = frozenset({"tool", "prompt", "resource"})
ADDERS = frozenset({"add_tool", "add_prompt", "from_function"})
LOW_LEVEL = frozenset({"on_call_tool", "on_get_prompt", "on_read_resource"})


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

    asking: tuple[str, ...]  # the handlers that ask in the middle of their work
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
    findings = set(_routes(tree))
    for function in _handlers(tree, source):
        events = Reader(source).read(function)
        questions = [place for place, event in enumerate(events) if event.asks]
        last_question = questions[-1] if questions else -1
        if questions:
            asking.append(function.name)
        for place, event in enumerate(events):
            reason = _reason(event, source, is_replayed=place < last_question)
            if reason:
                findings.add(Finding(event.line, function.name, event.name, reason))
    return Report(tuple(asking), tuple(sorted(findings)))


def _handlers(tree: ast.Module, source: Source) -> Iterator[Function]:
    """Find the functions that a server calls for its clients."""
    handler_names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            if dotted(node.func).rpartition(".")[2] in ADDERS:
                handler_names |= {dotted(argument) for argument in node.args}
            handler_names |= {dotted(keyword.value) for keyword in node.keywords if keyword.arg in LOW_LEVEL}
    for node in ast.walk(tree):
        if isinstance(node, FUNCTIONS) and (node.name in handler_names or any(map(_registers, node.decorator_list))):
            yield source.functions[node.name]


def _registers(decorator: ast.expr) -> bool:
    """Whether a decorator registers its function, as `@server.tool` or `@server.tool(...)`."""
    name = decorator.func if isinstance(decorator, ast.Call) else decorator
    return isinstance(name, ast.Attribute) and name.attr in DECORATORS


def _routes(tree: ast.Module) -> Iterator[Finding]:
    """Find routes of HTTP, which are not carried over."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and dotted(node.func).endswith(".custom_route"):
            yield Finding(node.lineno, "the server", dotted(node.func), known_calls.ROUTE)


def _reason(event: Event, source: Source, *, is_replayed: bool) -> str:
    """Say why an event is a finding; "" if it is none."""
    last = event.name.rpartition(".")[2]
    if event.change or last in known_calls.ANYWHERE:
        return event.change or known_calls.ANYWHERE[last]
    if event.asks or not is_replayed or event.name in known_calls.STEPS:
        return ""
    if last in known_calls.GROUPS:
        return known_calls.CONCURRENT
    if event.name.partition(".")[0] in known_calls.CHANGING or last in known_calls.CHANGING_NAMES:
        return known_calls.CHANGES
    return _reason_of_call(event.name, last, source)


def _reason_of_call(name: str, last: str, source: Source) -> str:
    """Say why a call before a question is a finding; one that only reads is none."""
    module, _dot, _last = name.rpartition(".")
    if name in known_calls.READING_BUILTINS or name in source.classes or module in known_calls.READING_MODULES:
        return ""
    if module and last in known_calls.READING_METHODS:
        return ""
    if last in known_calls.WRITING_NAMES:
        return known_calls.WRITES
    return known_calls.UNKNOWN
