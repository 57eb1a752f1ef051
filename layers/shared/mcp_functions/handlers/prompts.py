"""A prompt is a function that writes messages for a model.

    @prompt
    def review(language: str, code: str) -> str: ...

A user chooses a prompt, and types its arguments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp_functions.handlers.base import P, R
from mcp_functions.handlers.completions import CompletableHandler
from mcp_functions.protocol import results

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.schemas.arguments import Argument


class Prompt(CompletableHandler[P, R]):
    """A function that writes messages for a model (server/prompts)."""

    kind = "prompt"

    def describe_kind(self) -> dict[str, Any]:
        """List the arguments; a prompt without arguments has no list."""
        return {"arguments": [_describe(argument) for argument in self.arguments.by_name.values()] or None}

    def bind(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Read the arguments of a `prompts/get`."""
        return self.arguments.bind(params.get("arguments") or {}, values_are_text=True)

    def result(self, returned: object, _params: Mapping[str, Any]) -> dict[str, Any]:
        """Write a GetPromptResult of the value that the function returned."""
        return results.get_prompt_result(returned, self.description)


def _describe(argument: Argument) -> dict[str, Any]:
    """Write a PromptArgument of the specification."""
    described = {
        "name": argument.wire_name,
        "title": argument.parameter.title or None,
        "description": argument.type.schema.get("description"),
        "required": argument.parameter.required,
    }
    return {field: value for field, value in described.items() if value is not None}
