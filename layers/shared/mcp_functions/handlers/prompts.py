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
    from mcp_functions.protocol.wire_types import ListEntry, Params
    from mcp_functions.rounds.round import Round
    from mcp_functions.schemas.arguments import Argument


class Prompt(CompletableHandler[P, R]):
    """A function that writes messages for a model (server/prompts)."""

    kind = "prompt"

    def describe(self) -> ListEntry:
        """Write its entry of `prompts/list`; a prompt without arguments has no list of them."""
        arguments = [_describe(argument) for argument in self.arguments.by_name.values()]
        return self.write_entry(arguments=arguments or None)

    def call(self, params: Params, round_: Round | None) -> dict[str, Any]:
        """Answer a `prompts/get` with a GetPromptResult."""
        arguments = self.arguments.bind(params.get("arguments") or {}, values_are_text=True)
        returned = self.run(arguments, round_)
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
