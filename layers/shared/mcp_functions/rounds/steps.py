"""Steps: work that runs once in a conversation, although its handler runs in every round.

A conversation is one call of a tool, over several requests. Each request is a round: the handler runs from its first
line until it returns, or until it asks a question that is still unanswered. Then `elicit` raises `InputRequired`, which
ends the handler. The client gets the question and a sealed state, and its next request brings an answer and the state.

                                      round 1              round 2
    step("reserve", reserve, city)    runs, is recorded    returns the recorded result
    elicit("ok", "Book it?", Ok)      ends the round       returns the answer
    step("pay", pay, price)                                runs, is recorded

A step that raises is not recorded. A client that lost a response repeats the round with the state from before the step,
so the step may run again. For a service that must not act twice, a step has an idempotency key. It derives from the
conversation, the step's key and its arguments, so it is the same in every repetition of a round with a state.
"""

from __future__ import annotations

import functools
import hashlib
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NoReturn, ParamSpec, TypeVar, cast
from uuid import UUID

from mcp_functions.rounds.capabilities import Capability
from mcp_functions.rounds.step_call import StepCall

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcp_functions.rounds.round import Round

P = ParamSpec("P")
R = TypeVar("R")

KEY_BYTES = 16  # the length of an idempotency key: two keys are never equal by chance


class Step(Capability):
    """Runs a function once in a conversation: `flight = step("reserve", reserve, city)`."""

    needs_state = True

    def __init__(self, round_: Round, max_seconds: float | None = None) -> None:
        """Record when the conversation began, for `now`.

        Args:
            round_: the round in which the function runs.
            max_seconds: the longest duration of a step, if `within` has set one.
        """
        super().__init__(round_)
        round_.record.began = round_.began
        self._max_seconds = max_seconds

    def __call__(self, key: str, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Return what `function` returned, now or in an earlier round.

        Args:
            key: the step's key, the same in all rounds; each call needs its own.
            function: the function to run. Its return annotation is the type of a recorded result.
            args: the positional arguments of the function: JSON values, models or dataclasses.
            kwargs: the keyword arguments of the function.

        Raises:
            InputRequired: the round ends before the step, and the next round runs it.
            DeveloperError: the key was used with other arguments, or its first call still runs; or the result is not
                JSON, is too large, or has no known type.
        """
        call = StepCall(self._round, key, function, args, kwargs)
        return cast("R", call.run(self._max_seconds))

    async def wait(self, key: str, function: Callable[P, Awaitable[R]], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Await an async function once in a conversation, in an async handler.

        If another task ends the round with a question meanwhile, the function is not cancelled. It runs to its end, and
        its result is recorded before the client gets the question.
        """
        call = StepCall(self._round, key, function, args, kwargs)
        return cast("R", await call.wait(self._max_seconds))

    def within(self, seconds: float) -> Step:
        """Set the longest duration of a step: `step.within(8)("render", render, page)`.

        If the step would not end in time, the round ends first, and the next round runs the step.
        """
        return Step(self._round, seconds)

    @property
    def keyed(self) -> KeyedStep:
        """The step with an idempotency key: `step.keyed("charge", charge, flight)` calls `charge(flight, key="…")`.

        The key is `step.key`. In a conversation's first round, the step does not run: the round ends without a
        question, and the client repeats the request with a state. Without a state, a repeated request would begin
        another conversation, with another key.
        """
        return KeyedStep(self._round, self)

    @property
    def key(self) -> str:
        """The idempotency key of the running step, 32 hexadecimal digits, for a service that must not act twice.

        It is the same when a client repeats a round after a lost response. In the first round, which has no state, it
        may change. If that matters, use `step.keyed`.

        Raises:
            DeveloperError: no step is running.
        """
        call = self._round.current_step()
        if call is None:
            self._round.fail("step.key is the key of a running step: read it in the function that the step calls")
        # A digest has no zero byte, so no two pairs of a step's key and its arguments are written alike.
        return self._derive("step", f"{call.step_key}\0{call.arguments_digest}")[:KEY_BYTES].hex()

    def now(self) -> datetime:
        """Return when the conversation began: the record has it, so it is the same in all rounds."""
        return datetime.fromtimestamp(self._round.began / 1000, UTC)

    def uuid(self, key: str) -> UUID:
        """Return a UUID for a key, the same in all rounds of this conversation."""
        return UUID(bytes=self._derive("uuid", key)[:16], version=4)

    def random(self, key: str) -> float:
        """Return a number in [0, 1) for a key, the same in all rounds of this conversation."""
        return int.from_bytes(self._derive("random", key)[:6], "big") / (1 << 48)

    def shed(self) -> NoReturn:
        """End the round here, without a question: the next round continues the work.

        Raises:
            InputRequired: the normal outcome.
            DeveloperError: this round recorded no step, so the next round would only repeat it.
            ToolError: too many rounds in a row ended without a question.
        """
        self._round.end_without_question()

    def _derive(self, purpose: str, key: str) -> bytes:
        """Derive 32 bytes that are the same in all rounds of the conversation, and that no other one has."""
        flow = self._round.request.flow
        if not flow:
            self._round.fail("only a conversation that can be sealed has keys of its own: MCP_KMS_KEYS is not set")
        return hashlib.sha256(f"mcp-functions\0{purpose}\0{flow}\0{key}".encode()).digest()


class KeyedStep:
    """A step whose function gets `key=`. It does not run in a conversation's first round, which has no state."""

    def __init__(self, round_: Round, step: Step) -> None:
        """Keep the round, and the step that runs the function."""
        self._round = round_
        self._step = step

    def __call__(self, key: str, function: Callable[..., R], /, *args: object, **kwargs: object) -> R:
        """Return what `function` returned, now or in an earlier round; it gets `key=` besides its own arguments."""
        return self._step(key, self._with_key(function), *args, **kwargs)

    async def wait(self, key: str, function: Callable[..., Awaitable[R]], /, *args: object, **kwargs: object) -> R:
        """Await an async function, which gets `key=` besides its own arguments."""
        return await self._step.wait(key, self._with_key(function), *args, **kwargs)

    def _with_key(self, function: Callable[..., R]) -> Callable[..., R]:
        """Return the function with the idempotency key as its argument `key`."""

        @functools.wraps(function)
        def keyed(*args: object, **kwargs: object) -> R:
            self._round.require_state()  # the first round has none: it raises InputRequired
            return function(*args, key=self._step.key, **kwargs)

        return keyed
