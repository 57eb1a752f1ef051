"""What prompts and resources have in common: their arguments are text, and an author may complete them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import CoroutineType
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from mcp_functions.handlers.base import Handler, P, R, awaited
from mcp_functions.protocol.errors import DeveloperError, HandlerError, InvalidArguments, InvalidParams
from mcp_functions.protocol.plain_values import type_name
from mcp_functions.schemas import arguments
from mcp_functions.schemas.arguments import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from mcp_functions.handlers.signatures import Signature
    from mcp_functions.rounds.round import Round

Complete: TypeAlias = "Callable[[str, Mapping[str, str]], Sequence[str] | Awaitable[Sequence[str]]]"
Completer = TypeVar("Completer", bound=Complete)

MAX_COMPLETIONS = 100  # "values: … Must not exceed 100 items"


class Completing(Handler[P, R]):
    """What prompts and resource templates have in common: their arguments are text, and can be completed."""

    def __init__(self, function: Callable[P, R], **options: Any) -> None:  # noqa: ANN401 - checked by Handler
        """Take the function; completers are added by `complete`."""
        self._completers: dict[str, Complete] = {}
        super().__init__(function, **options)

    def _read_signature(self, signature: Signature) -> None:
        self.arguments = arguments.read(signature.sent, signature.hints, camel_case=self.camel_case)

    @property
    def completes(self) -> list[str]:
        """The arguments that have a completer."""
        return sorted(self._completers)

    def complete(self, argument: str) -> Callable[[Completer], Completer]:
        """Decorate the function that completes one argument: `(value, arguments) -> list of values, the best first`.

        It may be an `async def`.

        Args:
            argument: its wire name.

        Raises:
            TypeError: there is no such argument.

        """
        known = [found.wire for found in self.arguments.every]
        if argument not in known:
            message = f"{self.name} has no argument {argument!r} to complete; it has: {', '.join(known) or 'none'}"
            raise TypeError(message)

        def remember(completer: Completer) -> Completer:
            self._completers[argument] = completer
            return completer

        return remember

    def completion(self, argument: str, value: str, known: Mapping[str, str]) -> dict[str, Any]:
        """Complete one argument (server/utilities/completion).

        Raises:
            InvalidParams: there is no such argument.
            DeveloperError: its completer returned something else than texts or numbers.

        """
        if argument not in [found.wire for found in self.arguments.every]:
            message = "params.argument.name names no argument of this reference"
            raise InvalidParams(message)
        completer = self._completers.get(argument)
        completed: Any = completer(value, known) if completer else []
        if isinstance(completed, CoroutineType):
            completed = awaited(completed)
        if isinstance(completed, str | Mapping):
            rule = f"a completer returns a list of texts, and this one returned {type_name(completed)}"
            raise DeveloperError(rule)
        values = [_text(each) for each in completed]
        more = len(values) > MAX_COMPLETIONS
        return {"completion": {"values": values[:MAX_COMPLETIONS], "total": len(values), "hasMore": more}}

    def _answered(self, given: Mapping[str, Any], round_: Round | None) -> Any:  # noqa: ANN401 - what the function returns
        try:
            return self._run(self.arguments.bind(given, text=True), round_)
        except InvalidArgument as error:
            raise InvalidArguments(str(error)) from None
        except Exception as error:
            if (text := self.told(error)) is None:
                raise
            raise HandlerError(text) from None


def _text(value: object) -> str:
    """Write one completion. A model or a dict is refused: its `str()` would be offered to the user."""
    if isinstance(value, Enum):
        value = value.value
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        rule = f"a completer returns a list of texts, and this one holds {type_name(value)}"
        raise DeveloperError(rule)
    return str(value)
