"""A prompt: a function that writes messages for a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp_functions.handlers.base import P, R
from mcp_functions.handlers.completion import CompletableHandler
from mcp_functions.protocol import results

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.rounds.round import Round


class Prompt(CompletableHandler[P, R]):
    """A function that writes messages for a model."""

    kind = "prompt"

    def _fields(self) -> dict[str, Any]:
        listed = [
            {
                "name": argument.wire,
                **({"title": argument.title} if argument.title else {}),
                **({"description": argument.kind.description} if argument.kind.description else {}),
                "required": argument.required,
            }
            for argument in self.arguments.every
        ]
        return {"arguments": listed or None}

    def call(self, params: Mapping[str, Any], round_: Round | None) -> dict[str, Any]:
        """Run one round of a `prompts/get` (server/prompts).

        Raises:
            InvalidArguments: an argument is missing or does not fit.
            InputRequired: the round ends with a question.

        """
        value = self._answered(params.get("arguments") or {}, round_)
        return results.get_prompt_result(value, self.description)
