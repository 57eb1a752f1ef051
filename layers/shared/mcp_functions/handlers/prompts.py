"""A prompt: a function that writes messages for a model. And the base class of prompts and resources.

The arguments of both are text that a user types. A host may offer completions while the user types: an author writes a
function for them, the completer of an argument.

    @review.complete("language")
    def languages(value: str, arguments: Mapping[str, str]) -> list[str]: ...
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import CoroutineType
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, TypeVar

from mcp_functions.handlers.base import Handler, P, R
from mcp_functions.protocol import results
from mcp_functions.protocol.errors import DeveloperError, InvalidParams
from mcp_functions.protocol.plain_values import type_name
from mcp_functions.schemas import arguments

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from mcp_functions.handlers.base import HandlerOptions
    from mcp_functions.schemas.arguments import Argument

AnyCompleter: TypeAlias = "Callable[[str, Mapping[str, str]], Sequence[str] | Awaitable[Sequence[str]]]"
Completer = TypeVar("Completer", bound=AnyCompleter)

MAX_COMPLETIONS = 100  # server/utilities/completion: "values: … Must not exceed 100 items"


class CompletableHandler(Handler[P, R]):
    """A prompt, a resource or a resource template: its arguments are text, and an author's function completes them."""

    has_template_names: ClassVar[bool] = False  # whether arguments keep the names that a URI template gives them

    def __init__(self, function: Callable[P, R], options: HandlerOptions) -> None:
        """Read the arguments; completers are added by `complete`."""
        super().__init__(function, options)
        self._completers: dict[str, AnyCompleter] = {}  # by argument
        camel_case = self.camel_case and not self.has_template_names
        self.arguments = arguments.read_arguments(self._signature.sent, self._signature.hints, camel_case=camel_case)

    @property
    def completes(self) -> list[str]:
        """The arguments that have a completer."""
        return sorted(self._completers)

    def complete(self, argument: str) -> Callable[[Completer], Completer]:
        """Decorate the function that completes one argument: `(value, arguments) -> list of values, the best first`.

        It may be an `async def`. `argument` is the name on the wire.
        """
        known = self.arguments.by_name
        if argument not in known:
            message = f"{self.name} has no argument {argument!r} to complete; it has: {', '.join(known) or 'none'}"
            raise TypeError(message)

        def register(completer: Completer) -> Completer:
            self._completers[argument] = completer
            return completer

        return register

    def completion(self, argument: str, value: str, known: Mapping[str, str]) -> dict[str, Any]:
        """Complete one argument (server/utilities/completion).

        Args:
            argument: its name.
            value: what the user has typed so far.
            known: the arguments that the user has already filled in.

        Raises:
            InvalidParams: there is no such argument.
            DeveloperError: the completer returned something else than texts.
        """
        if argument not in self.arguments.by_name:
            raise InvalidParams(message="params.argument.name names no argument of this reference")
        completer = self._completers.get(argument)
        completed: Any = completer(value, known) if completer else []
        if isinstance(completed, CoroutineType):
            from mcp_functions.handlers import event_loop  # noqa: PLC0415 - few completers are async

            completed = event_loop.run(completed)
        if isinstance(completed, str | Mapping):
            rule = f"a completer returns a list of texts, and this one returned {type_name(completed)}"
            raise DeveloperError(rule)
        values = [_to_text(each) for each in completed]
        has_more = len(values) > MAX_COMPLETIONS
        return {"completion": {"values": values[:MAX_COMPLETIONS], "total": len(values), "hasMore": has_more}}


class Prompt(CompletableHandler[P, R]):
    """A function that writes messages for a model (server/prompts)."""

    kind = "prompt"

    def __init__(self, function: Callable[P, R], options: HandlerOptions) -> None:
        """Read the function and describe its arguments."""
        super().__init__(function, options)
        self._entry["arguments"] = [_describe(argument) for argument in self.arguments.by_name.values()] or None

    def bind(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Read the arguments of a `prompts/get`."""
        return self.arguments.bind(params.get("arguments") or {}, values_are_text=True)

    def result(self, value: object, _params: Mapping[str, Any]) -> dict[str, Any]:
        """Convert what the handler returned to a GetPromptResult."""
        return results.get_prompt_result(value, self.description)


def _describe(argument: Argument) -> dict[str, Any]:
    """Write a PromptArgument of the specification."""
    described = {
        "name": argument.wire_name,
        "title": argument.parameter.title or None,
        "description": argument.type.schema.get("description"),
        "required": argument.parameter.required,
    }
    return {field: value for field, value in described.items() if value is not None}


def _to_text(value: object) -> str:
    """Write one completion. A model or a dict is refused: its `str()` would be offered to the user."""
    if isinstance(value, Enum):
        value = value.value
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        raise DeveloperError(rule=f"a completer returns a list of texts, and this one holds {type_name(value)}")
    return str(value)
