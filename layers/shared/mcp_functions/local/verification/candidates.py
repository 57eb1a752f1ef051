"""The calls that a verification may make: of tools that the user names, and calls that change nothing.

The latter are resources, prompts, and tools with `readOnlyHint`. MCP says that any other tool may be destructive
("destructiveHint … Default: true").
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from mcp_functions.attack import messages, schema_values
from mcp_functions.local.verification.report import Failed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

LISTS = ("resources", "prompts", "tools")
MAX_CALLS = 20  # of calls that the user did not name


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
    schemas = {tool["name"]: tool["inputSchema"] for tool in lists["tools"]}
    calls = []
    for name, arguments in tools:
        if name not in schemas:
            raise Failed(message=f"there is no tool {name}")
        params = {"name": name, "arguments": arguments}
        calls.append(Call("tools/call", params, messages.header_parameters(schemas[name]), is_named=True))
    return calls


def read_calls(lists: Mapping[str, Any]) -> list[Call]:
    """Return calls that change nothing, with invented arguments."""
    calls = [Call("resources/read", {"uri": resource["uri"]}) for resource in lists["resources"]]
    calls += [Call("prompts/get", _params_of_prompt(prompt)) for prompt in lists["prompts"]]
    for tool in lists["tools"]:
        if tool.get("annotations", {}).get("readOnlyHint") is True:
            calls.append(_read_only_call(tool))
    return calls[:MAX_CALLS]


def _params_of_prompt(prompt: Mapping[str, Any]) -> dict[str, Any]:
    """Return the params of a prompt, with a value for each required argument."""
    required = [argument["name"] for argument in prompt.get("arguments", []) if argument.get("required")]
    return {"name": prompt["name"], "arguments": dict.fromkeys(required, "example")}


def _read_only_call(tool: Mapping[str, Any]) -> Call:
    """Return the call of a read-only tool, with arguments that its schema accepts."""
    schema: Mapping[str, Any] = tool["inputSchema"]
    params = {"name": tool["name"], "arguments": schema_values.example(schema)}
    return Call("tools/call", params, messages.header_parameters(schema))
