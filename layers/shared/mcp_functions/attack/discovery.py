"""Finds the calls of a server that ask: it calls everything that the server lists once."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from mcp_functions.attack import messages, schema_values
from mcp_functions.attack.scan import Target

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mcp_functions.attack.scan import Scan

MAX_PAGES = 5
MAX_CALLS = 60
VARIABLE = re.compile(r"\{\+?\w+\}")


def find_targets(scan: Scan, named: Sequence[tuple[str, dict[str, Any]]] = ()) -> list[Target]:
    """Find calls that ask, those with the most rounds first; of the named tools only, if there are any."""
    targets = []
    for number, candidate in enumerate(_named(scan, named) if named else _listed(scan)):
        if number >= MAX_CALLS:
            break
        if scan.call(candidate).response.questions:
            target = scan.hold_conversation(candidate)
            if target.questions and len(target.rounds) > 1:
                targets.append(target)
    return targets if named else sorted(targets, key=_rank)


def _rank(target: Target) -> tuple[bool, int]:
    is_complete = target.completes and target.rounds[0].response.state is not None
    return not is_complete, -len(target.rounds)


def _named(scan: Scan, named: Sequence[tuple[str, dict[str, Any]]]) -> Iterator[Target]:
    schemas = {tool.get("name"): tool.get("inputSchema") or {} for tool in _list(scan, "tools/list", "tools")}
    for name, arguments in named:
        yield Target("tools/call", {"name": name, "arguments": arguments}, schemas.get(name, {}))


def _listed(scan: Scan) -> Iterator[Target]:
    for tool in _list(scan, "tools/list", "tools"):
        schema = tool.get("inputSchema") or {}
        params = {"name": tool.get("name"), "arguments": schema_values.example(schema)}
        yield Target("tools/call", params, schema)
    for prompt in _list(scan, "prompts/list", "prompts"):
        arguments = prompt.get("arguments") or []
        schema = {"properties": {argument.get("name"): {"type": "string"} for argument in arguments}}
        required = {argument.get("name"): "example" for argument in arguments if argument.get("required")}
        yield Target("prompts/get", {"name": prompt.get("name"), "arguments": required}, schema)
    for resource in _list(scan, "resources/list", "resources"):
        yield Target("resources/read", {"uri": resource.get("uri")})
    for template in _list(scan, "resources/templates/list", "resourceTemplates"):
        uris = [VARIABLE.sub(text, str(template.get("uriTemplate"))) for text in ("example", "1", "2")]
        yield Target("resources/read", {"uri": uris[0]}, similar=[{"uri": uris[1]}, {"uri": uris[2]}])
        yield Target("resources/read", {"uri": uris[1]}, similar=[{"uri": uris[2]}])


def _list(scan: Scan, method: str, key: str) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = []
    params: dict[str, Any] = {}
    for _ in range(MAX_PAGES):
        message = messages.message(method, params, next(scan.ids))
        result = scan.client.send(messages.write(message)).response.result or {}
        page = result.get(key)
        if isinstance(page, list):
            entries += [entry for entry in page if isinstance(entry, dict)]
        if not isinstance(result.get("nextCursor"), str):
            break
        params = {"cursor": result["nextCursor"]}
    return entries
