"""`step` for adopted tools, which take no parameter of this toolkit: `flight = step("reserve", reserve, city)`.

A tool that asks runs again from its first line in every round, which is one request of the call. A step runs its
function once, and later rounds read the recorded result. The context variable `current_round` tells it the round.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from mcp_functions.rounds.steps import Step

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcp_functions.rounds.round import Round

P = ParamSpec("P")
R = TypeVar("R")

# The round that runs; None if the call does not ask, so that nothing replays.
current_round: ContextVar[Round | None] = ContextVar("adopted_round", default=None)


class AdoptedStep:
    """Runs a function once in a call that asks. Where nothing replays, it only calls the function."""

    def __call__(self, key: str, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Return what `function` returned, now or in an earlier round; see `mcp_functions.Step`.

        Args:
            key: the name of the step in all rounds; each step of a call needs another one.
            function: the function to run. Its return annotation is the type of a recorded result.
            args: its arguments: JSON values, models or dataclasses.
            kwargs: as `args`.

        Raises:
            InputRequired: the round ends before the step, and the next round runs it.
            DeveloperError: the key was used with other arguments, or the result is not JSON or has no known type.
        """
        round_ = current_round.get()
        if round_ is None:
            return function(*args, **kwargs)
        return Step(round_)(key, function, *args, **kwargs)

    async def wait(self, key: str, function: Callable[P, Awaitable[R]], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Await an async function once in a call that asks."""
        round_ = current_round.get()
        if round_ is None:
            return await function(*args, **kwargs)
        return await Step(round_).wait(key, function, *args, **kwargs)


step = AdoptedStep()
