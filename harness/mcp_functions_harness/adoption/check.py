"""`adopt --check`: reads a server's source, and names by line what would happen twice in a tool that asks.

    async def book(ctx):                round 1       round 2, after the user's answer
        charge(card)                    runs          runs again: a finding
        seat = await ctx.elicit(...)    the call ends answered, the tool goes on
        reserve(seat)                                 runs

A Lambda does not wait for a user. So a tool that asks ends, and runs again from its first line in the next round (the
next request of the client). A call before the last question runs once for each round. An author avoids that with a
step: code whose result the toolkit records.

The check reads every file of the server, and runs nothing. A call that it does not know is a finding too. So is an HTTP
application, and what reads a request or the claims of a token. They may say who may call, and an adopted server has
none of them.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from mcp_functions_harness.adoption import known_calls
from mcp_functions_harness.adoption.events import Event, Reader
from mcp_functions_harness.adoption.names import File, Function
from mcp_functions_harness.adoption.syntax import decorators_of, dotted, last_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mcp_functions_harness.adoption.sources import Sources

# How servers written with mcp or fastmcp register their handlers:
DECORATORS = frozenset({"tool", "prompt", "resource"})  # @server.tool
METHODS = frozenset({"add_tool", "add_prompt", "from_function", *DECORATORS})  # server.add_tool(…)
KEYWORDS = frozenset({"on_call_tool", "on_get_prompt", "on_read_resource"})  # Server(on_…=call)
RETURNED_QUESTION = "InputRequiredResult"


class Finding(NamedTuple):
    """One place of the source that its author has to look at."""

    file: str  # the path in the function's folder
    line: int
    handler: str  # the name of the tool, prompt or resource
    name: str  # the name of the call, or of the changed variable
    reason: str

    def __str__(self) -> str:
        """Write it without its file."""
        return f"{self.line}: {self.handler}: {self.name}: {self.reason}"


class Report(NamedTuple):
    """The findings in the files of a server."""

    asking: tuple[str, ...]  # the names of handlers that ask in the middle of their work
    asking_in_two_ways: tuple[str, ...]  # those that also return questions, as since 2026-07-28
    findings: tuple[Finding, ...]
    unseen: tuple[str, ...]  # calls that may keep something, "db.execute (sqlite3.connect)"


def check_sources(sources: Sources, places: Iterable[tuple[str, int]] = ()) -> Report:
    """Check the files of a server. `places` are paths and lines where handlers begin, which a source may not show."""
    files = _read_files(sources)
    asking: list[str] = []
    asking_in_two_ways: list[str] = []
    unseen: dict[str, None] = {}
    findings: set[Finding] = set()  # a set, because an event of a loop is read twice
    for file in dict.fromkeys(files.values()):
        findings |= {*_find_http(file), *_find_catching(file)}
    for function in _handlers(files, set(places)):
        events = Reader(function).read()
        questions = [index for index, event in enumerate(events) if event.asks]
        last_question = questions[-1] if questions else 0
        if questions:
            returns_questions = any(event.name.rpartition(".")[2] == RETURNED_QUESTION for event in events)
            (asking_in_two_ways if returns_questions else asking).append(function.name)
        for index, event in enumerate(events):
            file = files[event.file]
            reason = _reason(event, file, runs_again=index < last_question)
            if reason:
                findings.add(Finding(event.file, event.line, function.name, event.name, reason))
            elif event.unseen:
                unseen[f"{event.name} ({event.unseen})"] = None
    return Report(tuple(asking), tuple(asking_in_two_ways), tuple(sorted(findings)), tuple(unseen))


def _read_files(sources: Sources) -> dict[str, File]:
    """Read the names of each file. The result has it by its path, and by its dotted module name."""
    files: dict[str, File] = {}
    for name, tree in sources.trees.items():
        file = File(name, tree, files)
        module = name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        files |= {name: file, module: file}
    return files


def _handlers(files: dict[str, File], places: set[tuple[str, int]]) -> Iterator[Function]:
    """Find the functions that a server calls for its clients, because a call or a decorator registers them."""
    for file in dict.fromkeys(files.values()):
        registered_names = set(_registered_names(file.tree))
        for function in file.functions:
            decorators = decorators_of(function.node)
            is_decorated = any(isinstance(each, ast.Attribute) and each.attr in DECORATORS for each in decorators)
            if is_decorated or function.name in registered_names or (file.name, function.line) in places:
                yield function


def _registered_names(tree: ast.Module) -> Iterator[str]:
    """Return the names that calls register, as in `server.add_tool(book)` and `Server(on_call_tool=call)`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            if last_name(node.func) in METHODS:
                yield from map(last_name, node.args)
            yield from (dotted(keyword.value) for keyword in node.keywords if keyword.arg in KEYWORDS)


def _find_catching(file: File) -> Iterator[Finding]:
    """Find code around a question that catches every exception, or returns in `finally`."""
    for function in file.functions:
        for node in ast.walk(function.node):
            if not isinstance(node, ast.Try) or not any(map(_asks, _parts(node.body))):
                continue
            for handler in filter(_catches_all, node.handlers):
                yield Finding(file.name, handler.lineno, function.name, "except", known_calls.CATCHES)
            for part in _parts(node.finalbody):
                if isinstance(part, ast.Return):
                    yield Finding(file.name, part.lineno, function.name, "return", known_calls.CATCHES)


def _catches_all(handler: ast.ExceptHandler) -> bool:
    """Whether an `except` ends every exception, because it raises none itself."""
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    catches_all = any(kind is None or dotted(kind) == "BaseException" for kind in kinds)
    return catches_all and not any(isinstance(each, ast.Raise) for each in ast.walk(handler))


def _parts(statements: list[ast.stmt]) -> Iterator[ast.AST]:
    return (part for statement in statements for part in ast.walk(statement))


def _asks(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and last_name(node.func) in known_calls.QUESTIONS


def _find_http(file: File) -> Iterator[Finding]:
    """Find what a server has of HTTP: its applications with their options, and what reads a request or a token."""
    for node in ast.walk(file.tree):
        if isinstance(node, ast.Call):
            yield from _find_http_call(file, node)
        elif isinstance(node, ast.Attribute):
            name = dotted(node)
            if ".".join(name.split(".")[-2:]) in known_calls.HTTP_ATTRIBUTES:
                yield Finding(file.name, node.lineno, "the server", name, known_calls.NO_HTTP_REQUEST)
            elif node.attr == "claims":
                yield Finding(file.name, node.lineno, "the server", name, known_calls.CLAIMS)


def _find_http_call(file: File, node: ast.Call) -> Iterator[Finding]:
    called, last = dotted(node.func), last_name(node.func)
    if last in known_calls.HTTP_READERS:
        yield Finding(file.name, node.lineno, "the server", called, known_calls.NO_HTTP_REQUEST)
    is_app = last in known_calls.HTTP_APPS
    options = [
        f"{called}({keyword.arg or '**'}=…)"
        for keyword in node.keywords
        if (is_app and keyword.arg not in known_calls.NOT_RESTRICTING)
        or (last in known_calls.HTTP_RUNS and keyword.arg in known_calls.RESTRICTING)
    ]
    for option in options:
        yield Finding(file.name, node.lineno, "the server", option, known_calls.HTTP_OPTION)
    if last == known_calls.HTTP_MANAGER or (is_app and not options):
        yield Finding(file.name, node.lineno, "the server", called, known_calls.HTTP_APP)


def _reason(event: Event, file: File, *, runs_again: bool) -> str:
    """Say why an event is a finding; "" if it is none."""
    if event.change:
        return event.change
    last = event.name.rpartition(".")[2]
    if last in known_calls.ANYWHERE:
        return known_calls.ANYWHERE[last]
    if runs_again and not event.asks:
        return _reason_if_repeated(event.name, file)
    return ""


def _reason_if_repeated(name: str, file: File) -> str:
    """Say why a call that runs in every round is a finding; "" if it is none."""
    first = name.partition(".")[0]
    last = name.rpartition(".")[2]
    if name in known_calls.STEPS:
        return ""
    if last in known_calls.GROUPS:
        return known_calls.CONCURRENT
    if first in known_calls.CHANGING or last in known_calls.CHANGING_NAMES:
        return known_calls.CHANGES
    if _only_reads(name, file):
        return ""
    if last in known_calls.WRITING_NAMES:
        return known_calls.WRITES
    return known_calls.UNKNOWN


def _only_reads(name: str, file: File) -> bool:
    """Whether a call may run twice without harm, by its dotted name."""
    owner, _dot, last = name.rpartition(".")
    first = name.partition(".")[0]
    is_data = last[:1].isupper() and file.package_of(first) in known_calls.DATA_PACKAGES
    if name in known_calls.READING_BUILTINS or is_data:
        return True
    if owner in known_calls.READING_MODULES:
        return True
    return bool(owner) and last in known_calls.READING_METHODS
