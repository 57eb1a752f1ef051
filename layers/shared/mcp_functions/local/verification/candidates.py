"""The calls that a verification may make.

The user names tools that may be called. Without a name only reads are made: resources, prompts, and tools with
`readOnlyHint`. MCP says that any other tool may be destructive ("destructiveHint … Default: true").
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from mcp_functions.attack import schema_values
from mcp_functions.local.verification.report import fail

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

LISTS = ("resources", "prompts", "tools")
MAX_CALLS = 20  # without a name from the user


class Call(NamedTuple):
    """A call to make."""

    method: str  # of the protocol
    params: Mapping[str, Any]  # name and arguments, or URI
    repeated: Sequence[tuple[str, str]] = ()  # arguments that headers repeat: property and `x-mcp-header`
    named: bool = False  # whether the user named it

    def __str__(self) -> str:
        """Return its name or URI."""
        return str(self.params.get("name") or self.params.get("uri"))


def named(listed: Mapping[str, Any], tools: Iterable[tuple[str, Mapping[str, Any]]]) -> list[Call]:
    """Return the calls of tools that the user names, with their arguments.

    Args:
        listed: the lists of the server.
        tools: names and arguments.

    Raises:
        Failed: the server does not list a tool.
    """
    return [_named(listed["tools"], name, arguments) for name, arguments in tools]


def reads(listed: Mapping[str, Any]) -> list[Call]:
    """Return calls that change nothing, with invented arguments."""
    calls = [Call("resources/read", {"uri": resource["uri"]}) for resource in listed["resources"]]
    calls += [Call("prompts/get", _invented(prompt)) for prompt in listed["prompts"]]
    calls += [_read(tool) for tool in listed["tools"] if tool.get("annotations", {}).get("readOnlyHint") is True]
    return calls[:MAX_CALLS]


def _named(listed: Sequence[Mapping[str, Any]], name: str, arguments: Mapping[str, Any]) -> Call:
    tool = next((tool for tool in listed if tool["name"] == name), None)
    if tool is None:
        fail(f"there is no tool {name}")
    return Call("tools/call", {"name": name, "arguments": arguments}, _repeated(tool), named=True)


def _invented(prompt: Mapping[str, Any]) -> dict[str, Any]:
    required = [argument["name"] for argument in prompt.get("arguments", []) if argument.get("required")]
    return {"name": prompt["name"], "arguments": dict.fromkeys(required, "example")}


def _read(tool: Mapping[str, Any]) -> Call:
    arguments = schema_values.example(tool["inputSchema"])
    return Call("tools/call", {"name": tool["name"], "arguments": arguments}, _repeated(tool))


def _repeated(tool: Mapping[str, Any]) -> list[tuple[str, str]]:
    properties: Mapping[str, Any] = tool["inputSchema"].get("properties", {})
    return [(name, part["x-mcp-header"]) for name, part in properties.items() if "x-mcp-header" in part]
