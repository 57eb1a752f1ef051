"""The calls that a verification may make.

The user names tools that may be called. Without a name only reads are made: resources, prompts, and tools with
`readOnlyHint`. MCP says that any other tool may be destructive ("destructiveHint … Default: true").
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from mcp_functions.attack import messages, schema_values
from mcp_functions.local.verification.report import Failed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

LISTS = ("resources", "prompts", "tools")
MAX_CALLS = 20  # how many calls are made that the user did not name


class Call(NamedTuple):
    """A call to make."""

    method: str  # the method of the protocol, e.g. "tools/call"
    params: Mapping[str, Any]  # the name and the arguments, or the URI
    # each argument that a header repeats, with the name of its header (`x-mcp-header` of the schema)
    header_parameters: Sequence[tuple[str, str]] = ()
    is_named: bool = False  # whether the user named it

    def __str__(self) -> str:
        """Return the name or the URI that it calls."""
        return str(self.params.get("name") or self.params.get("uri"))


def named_calls(lists: Mapping[str, Any], tools: Iterable[tuple[str, Mapping[str, Any]]]) -> list[Call]:
    """Return the calls of tools that the user names, with their arguments.

    Args:
        lists: the server's lists, by name.
        tools: the names of the tools, with their arguments.

    Raises:
        Failed: the server does not list a tool.
    """
    return [_named_call(lists["tools"], name, arguments) for name, arguments in tools]


def read_calls(lists: Mapping[str, Any]) -> list[Call]:
    """Return calls that change nothing, with invented arguments."""
    calls = [Call("resources/read", {"uri": resource["uri"]}) for resource in lists["resources"]]
    calls += [Call("prompts/get", _params_of_prompt(prompt)) for prompt in lists["prompts"]]
    for tool in lists["tools"]:
        if tool.get("annotations", {}).get("readOnlyHint") is True:
            calls.append(_read_only_call(tool))
    return calls[:MAX_CALLS]


def _named_call(tools: Sequence[Mapping[str, Any]], name: str, arguments: Mapping[str, Any]) -> Call:
    matches = [tool for tool in tools if tool["name"] == name]
    if not matches:
        raise Failed(message=f"there is no tool {name}")
    header_parameters = messages.header_parameters(matches[0]["inputSchema"])
    return Call("tools/call", {"name": name, "arguments": arguments}, header_parameters, is_named=True)


def _params_of_prompt(prompt: Mapping[str, Any]) -> dict[str, Any]:
    """Return the params of a prompt, with a value for each required argument."""
    required = [argument["name"] for argument in prompt.get("arguments", []) if argument.get("required")]
    return {"name": prompt["name"], "arguments": dict.fromkeys(required, "example")}


def _read_only_call(tool: Mapping[str, Any]) -> Call:
    """Return the call of a read-only tool, with arguments that its schema accepts."""
    schema: Mapping[str, Any] = tool["inputSchema"]
    params = {"name": tool["name"], "arguments": schema_values.example(schema)}
    return Call("tools/call", params, messages.header_parameters(schema))
