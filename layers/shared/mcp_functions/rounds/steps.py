"""Steps: work that runs once in a conversation, although the author's function runs again in each of its requests.

Each request is a round: the function runs until it returns, or reaches a question without an answer.

                                      round 1                    round 2
    step("reserve", reserve, city)    runs, and is recorded      returns the recorded result
    elicit("ok", "Book it?", bool)    ends the round             returns the answer
    step("pay", pay, price)                                      runs, and is recorded

A step runs again if it raised an exception, or if the client lost the response and repeats its request. For a service
that must not act twice, each step has an idempotency key, which is the same in both runs. It is derived from the id of
the conversation. The client gets this id with the first response, in a sealed state, and sends it back.
"""

from __future__ import annotations

import functools
import hashlib
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NoReturn, ParamSpec, TypeVar, cast
from uuid import UUID

from mcp_functions.protocol.errors import DeveloperError
from mcp_functions.rounds.capabilities import Capability
from mcp_functions.rounds.step_call import StepCall

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcp_functions.rounds.round import Round

P = ParamSpec("P")
R = TypeVar("R")


class Step(Capability):
    """Runs a function once in a conversation: `flight = step("reserve", reserve, city)`."""

    needs_state = True  # the record of the steps is in the sealed state

    def __init__(self, round_: Round, max_seconds: float | None = None) -> None:
        """Record when the conversation began; `max_seconds` is the longest duration of a step (`within`)."""
        super().__init__(round_)
        round_.record.began = round_.began  # so that `now` returns the same time in later rounds
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
        return cast("R", StepCall(self._round, key, function, args, kwargs).run(self._max_seconds))

    async def wait(self, key: str, function: Callable[P, Awaitable[R]], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Await an async function once in a conversation, in an async handler.

        If another task ends the round with a question meanwhile, the function is not cancelled. It runs to its end, and
        its result is recorded before the client gets the question.
        """
        return cast("R", await StepCall(self._round, key, function, args, kwargs).wait(self._max_seconds))

    def within(self, seconds: float) -> Step:
        """Set the longest duration of a step: `step.within(8)("render", render, page)`.

        If the step would not end in time, the round ends first, and the next round runs the step.
        """
        return Step(self._round, seconds)

    @property
    def keyed(self) -> KeyedStep:
        """A step whose function gets its idempotency key: `step.keyed("pay", pay, price)` calls `pay(price, key="…")`.

        A repeated first request has no state, so its conversation and its key would be new. So a keyed step does not
        run in the first round: the round ends before it, and the client repeats its request with the state that it got.
        """
        return KeyedStep(self._round, self)

    @property
    def key(self) -> str:
        """The idempotency key of the running step, 32 hexadecimal digits, for a service that must not act twice.

        A repeated request has the same key, except for a repeated first request, which has no state (`step.keyed`).

        Raises:
            DeveloperError: no step is running.
        """
        step = self._round.running_step()
        if step is None:
            rule = "step.key is the key of a running step: read it in the function that the step calls"
            raise self._round.failed(DeveloperError(rule))
        # The digest is base64url, without a zero byte. So two pairs of key and digest never give the same text.
        name = f"{step.key}\0{step.arguments_digest}"
        return self._derive("step", name, length=16).hex()

    def now(self) -> datetime:
        """Return when the conversation began: the record has it, so it is the same in all rounds."""
        return datetime.fromtimestamp(self._round.began / 1000, UTC)

    def uuid(self, key: str) -> UUID:
        """Return a UUID for a key, the same in all rounds of this conversation."""
        return UUID(bytes=self._derive("uuid", key, length=16), version=4)

    def random(self, key: str) -> float:
        """Return a number in [0, 1) for a key, the same in all rounds of this conversation."""
        number = int.from_bytes(self._derive("random", key, length=6))
        return number / 2**48  # a float holds 48 bits exactly

    def shed(self) -> NoReturn:
        """End the round here, without a question: the next round continues the work.

        Raises:
            InputRequired: the normal outcome.
            DeveloperError: this round recorded no step, so the next round would only repeat it.
            ToolError: too many rounds in a row ended without a question.
        """
        raise self._round.shed()

    def _derive(self, purpose: str, key: str, *, length: int) -> bytes:
        """Return bytes for a key: the same in all rounds of this conversation, and others in any other one."""
        flow = self._round.history.flow
        if not flow:
            rule = "only a conversation that can be sealed has keys of its own: MCP_KMS_KEYS is not set"
            raise self._round.failed(DeveloperError(rule))
        return hashlib.sha256(f"mcp-functions\0{purpose}\0{flow}\0{key}".encode()).digest()[:length]


class KeyedStep:
    """A step whose function gets its idempotency key as `key=`."""

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
            self._round.require_state()  # in the first round it raises InputRequired
            return function(*args, key=self._step.key, **kwargs)

        return keyed
