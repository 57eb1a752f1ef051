"""A prompt is a function that writes messages for a model.

    @prompt
    def review(language: str, code: str) -> str: ...

    @review.complete("language")
    def languages(value: str, arguments: Mapping[str, str]) -> list[str]: ...

A user types the arguments of a prompt, or the variables of a resource's URI. Meanwhile, a host may offer completions of
one argument. The author's function that finds them is a completer. `CompletableHandler` has what prompts and resources
share.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import CoroutineType
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from mcp_functions.handlers.base import FunctionHandler, P, R
from mcp_functions.protocol import results
from mcp_functions.protocol.errors import DeveloperError, InvalidParams
from mcp_functions.protocol.plain_values import type_name
from mcp_functions.schemas.arguments import read_arguments

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from typing import Unpack

    from mcp_functions.handlers.decorators import HandlerOptions
    from mcp_functions.schemas.arguments import Argument

AnyCompleter: TypeAlias = "Callable[[str, Mapping[str, str]], Sequence[str] | Awaitable[Sequence[str]]]"
Completer = TypeVar("Completer", bound=AnyCompleter)

MAX_COMPLETIONS = 100  # server/utilities/completion: "Must not exceed 100 items"


class CompletableHandler(FunctionHandler[P, R]):
    """A prompt, a resource or a resource template: its arguments are text, which completers can complete."""

    def __init__(self, function: Callable[P, R], **options: Unpack[HandlerOptions]) -> None:
        """Read the function and its arguments; `complete` adds completers."""
        super().__init__(function, **options)
        self._completers: dict[str, AnyCompleter] = {}  # by the name of the argument
        # The arguments of a resource are the variables of its URI template, and keep their names.
        camel_case = self.camel_case and self.kind == "prompt"
        self.arguments = read_arguments(self._signature.client_parameters, camel_case=camel_case)

    def complete(self, argument: str) -> Callable[[Completer], Completer]:
        """Decorate the function that completes one argument; it may be async.

        It gets what the user has typed so far, and the other arguments by name. It returns texts, the best first.

        Args:
            argument: the name of the argument on the wire.

        Raises:
            TypeError: there is no such argument.
        """
        names = self.arguments.by_name
        if argument not in names:
            message = f"{self.name} has no argument {argument!r} to complete; it has: {', '.join(names) or 'none'}"
            raise TypeError(message)

        def register(completer: Completer) -> Completer:
            self._completers[argument] = completer
            self.has_completers = True
            return completer

        return register

    def find_completions(self, argument: str, value: str, filled_in: Mapping[str, str]) -> dict[str, Any]:
        """List the values with which one argument may be completed (server/utilities/completion).

        Args:
            argument: its name.
            value: what the user has typed so far.
            filled_in: the other arguments that the user has filled in.

        Raises:
            InvalidParams: there is no such argument.
            DeveloperError: the completer returned something else than texts.
        """
        if argument not in self.arguments.by_name:
            raise InvalidParams(message="params.argument.name names no argument of this reference")
        completer = self._completers.get(argument)
        returned: Any = completer(value, filled_in) if completer else []
        if isinstance(returned, CoroutineType):  # the completer is async
            from mcp_functions.handlers import event_loop  # noqa: PLC0415 - few completers are async

            returned = event_loop.run(returned)
        if isinstance(returned, str | Mapping):
            rule = f"a completer returns a list of texts, and this one returned {type_name(returned)}"
            raise DeveloperError(rule)
        values = [_to_text(each) for each in returned]
        has_more = len(values) > MAX_COMPLETIONS
        return {"completion": {"values": values[:MAX_COMPLETIONS], "total": len(values), "hasMore": has_more}}


class Prompt(CompletableHandler[P, R]):
    """A function that writes messages for a model (server/prompts)."""

    kind = "prompt"

    def __init__(self, function: Callable[P, R], **options: Unpack[HandlerOptions]) -> None:
        """Read the function and its arguments."""
        super().__init__(function, **options)
        self._entry["arguments"] = [_describe(argument) for argument in self.arguments.by_name.values()] or None

    def bind(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Read the arguments of a `prompts/get`."""
        return self.arguments.bind(params.get("arguments") or {}, values_are_text=True)

    def result(self, value: object, _params: Mapping[str, Any]) -> dict[str, Any]:
        """Write a GetPromptResult of the value that the function returned."""
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
    """Write one completion. Only text and numbers are allowed: no user would want to read the `str()` of a model."""
    plain = value.value if isinstance(value, Enum) else value
    if isinstance(plain, bool) or not isinstance(plain, str | int | float):
        raise DeveloperError(rule=f"a completer returns a list of texts, and this one holds {type_name(plain)}")
    return str(plain)
