"""A prompt: a function that writes messages for a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp_functions.handlers.base import P, R
from mcp_functions.handlers.completion import CompletableHandler
from mcp_functions.protocol import results

if TYPE_CHECKING:
    from collections.abc import Mapping


class Prompt(CompletableHandler[P, R]):
    """A function that writes messages for a model (server/prompts)."""

    kind = "prompt"

    def bind(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Read the arguments of a `prompts/get`."""
        return self.bind_texts(params.get("arguments") or {})

    def result(self, value: object, _params: Mapping[str, Any]) -> dict[str, Any]:
        """Convert what the handler returned to a GetPromptResult."""
        return results.get_prompt_result(value, self.description)

    def _fields(self) -> dict[str, Any]:
        listed = [
            {
                "name": argument.wire_name,
                **({"title": argument.parameter.title} if argument.parameter.title else {}),
                **({"description": argument.description} if argument.description else {}),
                "required": argument.parameter.required,
            }
            for argument in self.arguments
        ]
        return {"arguments": listed or None}
