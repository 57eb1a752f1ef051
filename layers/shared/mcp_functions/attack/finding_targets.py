"""Which calls of a server end with a question: its lists are read, and everything in them is called once."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from mcp_functions.attack import forms, messages
from mcp_functions.attack.hunt import Target

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mcp_functions.attack.hunt import Hunt

MAX_PAGES = 5
MAX_CALLS = 60
VARIABLE = re.compile(r"\{\+?\w+\}")


def asking(hunt: Hunt, named: Sequence[tuple[str, dict[str, Any]]] = ()) -> list[Target]:
    """Find calls that ask, those with the most rounds first.

    Args:
        hunt: with a line to the server.
        named: tools and arguments to try; nothing else is called then.

    """
    found = []
    for number, target in enumerate(_named(hunt, named) if named else _listed(hunt)):
        if number >= MAX_CALLS:
            break
        if hunt.call(target).answer.asked:
            walked = hunt.walk(target)
            if walked.questions and len(walked.rounds) > 1:
                found.append(walked)
    return found if named else sorted(found, key=lambda target: (not _completes(target), -len(target.rounds)))


def _completes(target: Target) -> bool:
    return target.rounds[-1].answer.done and target.rounds[0].answer.state is not None


def _named(hunt: Hunt, named: Sequence[tuple[str, dict[str, Any]]]) -> Iterator[Target]:
    schemas = {tool.get("name"): tool.get("inputSchema") or {} for tool in _pages(hunt, "tools/list", "tools")}
    for name, arguments in named:
        yield Target("tools/call", {"name": name, "arguments": arguments}, schemas.get(name, {}))


def _listed(hunt: Hunt) -> Iterator[Target]:
    for tool in _pages(hunt, "tools/list", "tools"):
        schema = tool.get("inputSchema") or {}
        yield Target("tools/call", {"name": tool.get("name"), "arguments": forms.example(schema)}, schema)
    for prompt in _pages(hunt, "prompts/list", "prompts"):
        arguments = prompt.get("arguments") or []
        schema = {"properties": {one.get("name"): {"type": "string"} for one in arguments}}
        given = {one.get("name"): "example" for one in arguments if one.get("required")}
        yield Target("prompts/get", {"name": prompt.get("name"), "arguments": given}, schema)
    for resource in _pages(hunt, "resources/list", "resources"):
        yield Target("resources/read", {"uri": resource.get("uri")})
    for template in _pages(hunt, "resources/templates/list", "resourceTemplates"):
        written = [VARIABLE.sub(text, str(template.get("uriTemplate"))) for text in ("example", "1", "2")]
        for number, uri in enumerate(written[:2]):
            others = [{"uri": other} for other in written[number + 1 :]]
            yield Target("resources/read", {"uri": uri}, others=others)


def _pages(hunt: Hunt, method: str, key: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    cursor: dict[str, Any] = {}
    for _ in range(MAX_PAGES):
        said = messages.message(method, cursor, next(hunt.ids))
        result = hunt.line.send(messages.write(said)).answer.result or {}
        listed = result.get(key)
        found += [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
        if not isinstance(result.get("nextCursor"), str):
            break
        cursor = {"cursor": result["nextCursor"]}
    return found
