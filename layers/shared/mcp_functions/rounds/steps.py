"""Steps: work that runs once in a conversation, although its handler runs in every round.

The state records a step's result, and later rounds read it. A client that lost a response repeats the round with the
state from before the step, so the step may run again. For services that must not act twice, a step has an idempotency
key. It derives from the conversation, the step's key and its arguments, so it is the same in every repetition of a
round with a state. A step that raises is not recorded.
"""

from __future__ import annotations

import functools
import hashlib
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NoReturn, ParamSpec, TypeVar, cast
from uuid import UUID

from mcp_functions.rounds.capabilities import Capability
from mcp_functions.rounds.round import running_step
from mcp_functions.rounds.step_call import StepCall

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcp_functions.rounds.round import Round

P = ParamSpec("P")
R = TypeVar("R")


class Step(Capability):
    """Runs a function once in a conversation: `flight = step("reserve", reserve, city)`."""

    needs_state = True

    def __init__(self, round_: Round, takes: float | None = None) -> None:
        """Take the round; `takes` is the seconds of `within`."""
        super().__init__(round_)
        self._takes = takes
        round_.record.started_at = round_.started_at

    def __call__(self, key: str, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Return what `function` returned, now or in an earlier round.

        Args:
            key: of the step in all rounds; each call needs its own.
            function: to run. Its return annotation is the type of a recorded result.
            args: of the function: JSON values, models or dataclasses.
            kwargs: of the function: JSON values, models or dataclasses.

        Raises:
            DeveloperError: the key was used with other arguments, or its first call still runs; or the result is not
                JSON, is too large, or has no known type.

        """
        return cast("R", StepCall(self._round, key, function, args, kwargs).run(self._takes))

    async def wait(self, key: str, function: Callable[P, Awaitable[R]], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Await an async function once in a conversation, in an async handler.

        If another task ends the round with a question meanwhile, the function is not cancelled. It runs to its end, and
        its result is recorded before the client gets the question.
        """
        return cast("R", await StepCall(self._round, key, function, args, kwargs).wait(self._takes))

    def within(self, seconds: float) -> Step:
        """Set the longest duration of a step: `step.within(8)("render", render, page)`.

        If the step would not end in time, the round ends first, and the next round runs the step.
        """
        return Step(self._round, seconds)

    @property
    def keyed(self) -> KeyedStep:
        """Pass the idempotency key: `step.keyed("charge", charge, flight)` calls `charge(flight, key="…")`.

        The key is `step.key`. A conversation's first round ends before that step, without a question. A repeated
        first request would begin another conversation, with another key.
        """
        return KeyedStep(self._round, self._takes)

    @property
    def key(self) -> str:
        """The idempotency key of the running step, 32 characters, for a service that must not act twice.

        It is the same when a client repeats a round after a lost response. The first round is the exception, because it
        has no state: ask something before, or use `step.keyed`.

        Raises:
            DeveloperError: no step is running.

        """
        step = running_step.get()
        if step is None or step.round is not self._round:
            self._round.fail("step.key is the key of a running step: read it in the function that the step calls")
        return _derived(self._round, "step", f"{step.key}\0{step.digest}").hex()[:32]

    def now(self) -> datetime:
        """Return when the conversation began: the record has it, so it is the same in all rounds."""
        return datetime.fromtimestamp(self._round.started_at / 1000, UTC)

    def uuid(self, key: str) -> UUID:
        """Return a UUID for a key, the same in all rounds of this conversation."""
        return UUID(bytes=_derived(self._round, "uuid", key)[:16], version=4)

    def random(self, key: str) -> float:
        """Return a number in [0, 1) for a key, the same in all rounds of this conversation."""
        return int.from_bytes(_derived(self._round, "random", key)[:6], "big") / (1 << 48)

    def shed(self) -> NoReturn:
        """End the round here: the client repeats the request, and the next round continues the work."""
        self._round.shed()


class KeyedStep(Capability):
    """A step whose function gets `key=`. It does not run in a conversation's first round, which has no state."""

    def __init__(self, round_: Round, takes: float | None) -> None:
        """Take the round; `takes` is the seconds of `within`."""
        super().__init__(round_)
        self._step = Step(round_, takes)

    def __call__(self, key: str, function: Callable[..., R], /, *args: object, **kwargs: object) -> R:
        """Return what `function` returned, now or in an earlier round; it gets `key=` besides its own arguments."""
        return self._step(key, self._with_key(function), *args, **kwargs)

    async def wait(self, key: str, function: Callable[..., Awaitable[R]], /, *args: object, **kwargs: object) -> R:
        """Await an async function, which gets `key=` besides its own arguments."""
        return await self._step.wait(key, self._with_key(function), *args, **kwargs)

    def _with_key(self, function: Callable[..., R]) -> Callable[..., R]:
        @functools.wraps(function)
        def keyed(*args: object, **kwargs: object) -> R:
            self._round.end_first_round()
            return function(*args, key=self._step.key, **kwargs)

        return keyed


def _derived(round_: Round, label: str, key: str) -> bytes:
    if not round_.request.flow:
        round_.fail("only a conversation that can be sealed has keys of its own: MCP_KMS_KEYS is not set")
    return hashlib.sha256(f"mcp-functions\0{label}\0{round_.request.flow}\0{key}".encode()).digest()
