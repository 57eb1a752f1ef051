"""Completions: while a user types an argument, a client may show the values that it can have.

    @prompt
    def review(language: str, code: str) -> str: ...

    @review.complete("language")
    def languages(value: str, arguments: Mapping[str, str]) -> list[str]: ...

The author's function that lists the values is a completer. Users type the arguments of prompts, and the variables in
the URIs of resources. A model writes the arguments of tools, so these have no completions.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import CoroutineType
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from mcp_functions.handlers.base import P, R
from mcp_functions.handlers.function_handler import FunctionHandler
from mcp_functions.protocol.errors import DeveloperError, InvalidParams
from mcp_functions.protocol.plain_values import type_name
from mcp_functions.schemas.arguments import read_arguments

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from typing import Unpack

    from mcp_functions.handlers.function_handler import HandlerOptions
    from mcp_functions.protocol.wire_types import ResultObject

AnyCompleter: TypeAlias = "Callable[[str, dict[str, str]], Sequence[str] | Awaitable[Sequence[str]]]"
Completer = TypeVar("Completer", bound=AnyCompleter)


class CompletableHandler(FunctionHandler[P, R]):
    """The base class of prompts and resources, whose arguments completers can complete."""

    keeps_names = False  # whether `camel_case` leaves the names of arguments as they are

    def __init__(self, function: Callable[P, R], **options: Unpack[HandlerOptions]) -> None:
        """Read the function and its arguments; `complete` adds completers."""
        super().__init__(function, **options)
        camel_case = self.camel_case and not self.keeps_names
        self.arguments = read_arguments(self._signature.client_parameters, camel_case=camel_case)
        self._completers: dict[str, AnyCompleter] = {}  # by the name of the argument

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
            known = ", ".join(names) or "none"
            raise TypeError(f"{self.name} has no argument {argument!r} to complete; it has: {known}")

        def register(completer: Completer) -> Completer:
            self._completers[argument] = completer
            self.has_completers = True  # the catalog asks for this
            return completer

        return register

    def find_completions(self, argument: str, typed: str, filled_in: dict[str, str]) -> ResultObject:
        """Write a CompleteResult with the values that one argument may have (server/utilities/completion).

        It depends on what the user has typed so far, and on the other arguments that the user has filled in.

        Raises:
            InvalidParams: there is no such argument.
            DeveloperError: the completer returned something else than texts.
        """
        if argument not in self.arguments.by_name:
            raise InvalidParams(message="params.argument.name names no argument of this reference")
        completer = self._completers.get(argument)
        texts = _run(completer, typed, filled_in) if completer else []
        sent = texts[:100]  # "Must not exceed 100 items"
        return {"completion": {"values": sent, "total": len(texts), "hasMore": len(texts) > len(sent)}}


def _run(completer: AnyCompleter, typed: str, filled_in: dict[str, str]) -> list[str]:
    """Run a completer, and check that it returns texts."""
    returned: Any = completer(typed, filled_in)
    if isinstance(returned, CoroutineType):  # the completer is async
        from mcp_functions.handlers import event_loop

        returned = event_loop.run(returned)
    if isinstance(returned, str | Mapping):
        raise DeveloperError(rule=f"a completer returns a list of texts, and this one returned {type_name(returned)}")
    return [_to_text(each) for each in returned]


def _to_text(value: object) -> str:
    """Write one completion. Only text and numbers are allowed: no user would want to read the `str()` of a model."""
    plain = value.value if isinstance(value, Enum) else value
    if isinstance(plain, bool) or not isinstance(plain, str | int | float):
        raise DeveloperError(rule=f"a completer returns a list of texts, and this one holds {type_name(plain)}")
    return str(plain)
