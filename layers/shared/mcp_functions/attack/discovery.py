"""Finds the calls that a server answers with a question: it calls everything that the server lists once.

Each found call (a `Target`) has the rounds of a correct conversation, which later attacks imitate and change.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Any

from mcp_functions.attack import messages, schema_values
from mcp_functions.attack.scan import Target

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mcp_functions.attack.scan import Scan

MAX_PAGES = 5  # pages of a list that are read
MAX_CALLS = 60  # calls that are tried
VARIABLE = re.compile(r"\{\+?\w+\}")  # a variable of a URI template


def find_targets(scan: Scan, named_tools: Sequence[tuple[str, dict[str, Any]]]) -> list[Target]:
    """Find the calls that ask.

    Args:
        scan: the run.
        named_tools: tools with their arguments; if there are any, nothing else is called, and their order is kept.
    """
    candidates = _calls_of_named_tools(scan, named_tools) if named_tools else _calls_of_lists(scan)
    targets = []
    for candidate in islice(candidates, MAX_CALLS):
        if scan.call(candidate).response.questions:
            target = scan.hold_conversation(candidate)
            if target.questions and len(target.rounds) > 1:
                targets.append(target)
    if named_tools:
        return targets
    return sorted(targets, key=_rank)


def _rank(target: Target) -> tuple[bool, int]:
    """Rank a call that answers complete, and that returns states, before others; then the one with more rounds."""
    is_complete = target.completes and target.gives_state
    return not is_complete, -len(target.rounds)


def _calls_of_named_tools(scan: Scan, named_tools: Sequence[tuple[str, dict[str, Any]]]) -> Iterator[Target]:
    schemas = {tool.get("name"): tool.get("inputSchema") or {} for tool in _read_list(scan, "tools/list", "tools")}
    for name, arguments in named_tools:
        yield Target("tools/call", {"name": name, "arguments": arguments}, schemas.get(name, {}))


def _calls_of_lists(scan: Scan) -> Iterator[Target]:
    for tool in _read_list(scan, "tools/list", "tools"):
        schema = tool.get("inputSchema") or {}
        params = {"name": tool.get("name"), "arguments": schema_values.example(schema)}
        yield Target("tools/call", params, schema)
    for prompt in _read_list(scan, "prompts/list", "prompts"):
        arguments = prompt.get("arguments") or []
        schema = {"properties": {argument.get("name"): {"type": "string"} for argument in arguments}}
        required = {argument.get("name"): "example" for argument in arguments if argument.get("required")}
        yield Target("prompts/get", {"name": prompt.get("name"), "arguments": required}, schema)
    for resource in _read_list(scan, "resources/list", "resources"):
        yield Target("resources/read", {"uri": resource.get("uri")})
    for template in _read_list(scan, "resources/templates/list", "resourceTemplates"):
        uris = [VARIABLE.sub(text, str(template.get("uriTemplate"))) for text in ("example", "1", "2")]
        yield Target("resources/read", {"uri": uris[0]}, similar=[{"uri": uris[1]}, {"uri": uris[2]}])
        yield Target("resources/read", {"uri": uris[1]}, similar=[{"uri": uris[2]}])


def _read_list(scan: Scan, method: str, key: str) -> list[dict[str, Any]]:
    """Return the entries of a list; [] if the server has no such list."""
    entries: list[dict[str, Any]] = []
    params: dict[str, Any] = {}
    for _ in range(MAX_PAGES):
        message = messages.message(method, params, next(scan.ids))
        result = scan.send(messages.write(message)).response.result or {}
        page = result.get(key)
        if isinstance(page, list):
            entries += [entry for entry in page if isinstance(entry, dict)]
        if not isinstance(result.get("nextCursor"), str):
            break
        params = {"cursor": result["nextCursor"]}
    return entries
