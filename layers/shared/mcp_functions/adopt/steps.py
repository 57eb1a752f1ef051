"""`step` for adopted tools, which take no parameter of this toolkit: `flight = step("reserve", reserve, city)`."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from mcp_functions.rounds.steps import Step

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcp_functions.rounds.round import Round

P = ParamSpec("P")
R = TypeVar("R")

current_round: ContextVar[Round | None] = ContextVar("adopted_round", default=None)


class AdoptedStep:
    """Runs a function once in a call that asks. Where nothing replays, it only calls the function."""

    def __call__(self, key: str, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Return what `function` returned, now or in an earlier round; see `mcp_functions.Step`.

        Args:
            key: of the step in all rounds; each call needs its own.
            function: to run. Its return annotation is the type of a recorded result.
            args: of the function: JSON values, models or dataclasses.
            kwargs: of the function: JSON values, models or dataclasses.

        Raises:
            InputRequired: the round ends before the step, and the next round runs it.
            DeveloperError: the key was used with other arguments, or the result is not JSON or has no known type.
        """
        made = self._made()
        return made(key, function, *args, **kwargs) if made else function(*args, **kwargs)

    async def wait(self, key: str, function: Callable[P, Awaitable[R]], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Await an async function once in a call that asks."""
        made = self._made()
        return await (made.wait(key, function, *args, **kwargs) if made else function(*args, **kwargs))

    @staticmethod
    def _made() -> Step | None:
        round_ = current_round.get()
        return Step.for_round(round_, ()) if round_ else None


step = AdoptedStep()
