"""One call of a step: `flight = step("reserve", reserve, city)` in the author's function.

The author's function runs from its first line in every round, which is one request of a call. But a step runs in one
round only, because each round leaves a record of results for the next. If the record has no result yet, the step runs
`reserve(city)` and records what it returns. Then it reads the record, so that every round gets the same value.
"""

from __future__ import annotations

import inspect
import json
from functools import partial
from typing import TYPE_CHECKING, Any

from mcp_functions.protocol.errors import DeveloperError
from mcp_functions.protocol.json_reader import copy_json
from mcp_functions.protocol.json_writer import dumps
from mcp_functions.protocol.plain_values import is_json, type_name
from mcp_functions.rounds.record import RecordedStep
from mcp_functions.rounds.round import RunningStep, step_of_context
from mcp_functions.rounds.step_values import ADVICE, digest_arguments, read_return_type, to_record, warn_of_loss

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mcp_functions.rounds.round import Round

MAX_BYTES = 8 * 1024  # of one recorded result: the client carries all of them in each request


class StepCall:
    """One call of a step."""

    def __init__(
        self, round_: Round, key: str, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> None:
        """Prepare the call `function(*args, **kwargs)`; the function does not run yet.

        Raises:
            DeveloperError: the call is inside another step, the key is not text, or JSON cannot carry the arguments.
        """
        self._round = round_
        self._key = key
        self._function = function
        self._call = partial(function, *args, **kwargs)
        self._returns = read_return_type(function)
        outer = round_.running_step()
        if outer:
            rule = "step {key!r} runs inside step {outer!r}: a step is recorded as a whole"
            raise self._failed(rule, outer=outer.key)
        if not isinstance(key, str):
            raise self._failed("a step's key is text, and not of type {type}", type=type(key).__name__)
        try:
            self._arguments_digest = digest_arguments(args, kwargs)
        except (TypeError, ValueError, RecursionError) as error:
            raise self._failed("step {key!r}: JSON cannot carry the arguments of {function}") from error
        try:
            if self._returns:
                self._returns.check_recordable()
        except TypeError as error:
            rule = "step {key!r}: {function} is annotated as returning what no record gives back: {why}"
            raise self._failed(rule, why=error) from error

    def run(self, max_seconds: float | None) -> object:
        """Return the recorded result; run the function first if the record has none. It raises as `Step.__call__` does.

        `max_seconds` is the longest duration of the function, as the author set it with `step.within`.
        """
        if self._begin():
            try:
                self._end_round_if_step_must_wait(max_seconds)
                self._run_and_record()
            finally:
                self._round.running_steps.remove(self._key)
        return self._recorded_result()

    async def wait(self, max_seconds: float | None) -> object:
        """Return the recorded result of an async function; await the function first if the record has none."""
        round_ = self._round
        if self._begin():
            try:
                self._end_round_if_step_must_wait(max_seconds)
                work = self._await_and_record()
                await round_.running_steps.await_in_task(work, must_finish=lambda: round_.continues)
            finally:
                round_.running_steps.remove(self._key)
        return self._recorded_result()

    def _begin(self) -> bool:
        """Add the step to the running ones, and return True; return False if the record has its result."""
        round_ = self._round
        with round_.lock:  # of two threads, only one may begin the step
            round_.check_not_ended()
            if self._key in round_.running_steps.keys:
                raise self._failed(
                    "step {key!r} is called again while its first call still runs, in another task or thread: "
                    "give each call a key of its own"
                )
            recorded = round_.record.steps.get(self._key)
            if recorded is None:
                round_.running_steps.keys.add(self._key)
                return True
            if recorded.arguments_digest != self._arguments_digest:
                raise self._failed(
                    "step {key!r} ran with other arguments before: give each call a key of its own, a new one too if "
                    "a deployment calls it with something else, and make its arguments from what later rounds know as "
                    "well"
                )
            return False

    def _end_round_if_step_must_wait(self, max_seconds: float | None) -> None:
        """End the round if the step must not run in it: the next round runs it.

        Without `max_seconds`, a step may take as long as the longest step of the conversation so far.
        """
        round_ = self._round
        if round_.lease and not round_.lease.renew_before_step(round_):
            raise round_.interrupted()  # the task was cancelled, or another worker has it
        if round_.options.single_use:
            round_.require_state()
        if not round_.has_new_step:
            return  # the first step of a round always runs, or no round would make progress
        if max_seconds is None:
            with round_.lock:
                max_seconds = max(step.milliseconds for step in round_.record.steps.values()) / 1000
        if round_.request.now() + max_seconds > round_.steps_must_end:
            raise round_.shed()

    def _run_and_record(self) -> None:
        """Call the function in this thread, and record its result."""
        began = self._round.request.now()
        token = step_of_context.set(RunningStep(self._round, self._key, self._arguments_digest))
        try:
            result = self._call()
        finally:
            step_of_context.reset(token)
        if inspect.isawaitable(result):
            if inspect.iscoroutine(result):
                result.close()  # otherwise Python warns that it was never awaited
            raise self._failed("step {key!r} calls an async function: await step.wait({key!r}, …)")
        self._record(result, began)

    async def _await_and_record(self) -> None:
        """Await the function in the task that calls this, and record its result."""
        began = self._round.request.now()
        # It needs no reset: each task has a copy of the context, which ends with the task.
        step_of_context.set(RunningStep(self._round, self._key, self._arguments_digest))
        result = await self._call()
        self._record(result, began)

    def _record(self, result: object, began: float) -> None:
        """Record the result; a task saves it. `began` is when the function was called, in unix seconds."""
        value, fits = self._to_json(result)
        seconds = max(0.0, self._round.request.now() - began)  # a wall clock may be set back
        step = RecordedStep(self._arguments_digest, value, int(seconds * 1000), fits)
        round_ = self._round
        with round_.lock:
            round_.record.steps[self._key] = step
        if round_.lease and not round_.lease.save_step(round_):
            # Another worker has the task, so this one must not run a step after one that was not saved.
            raise round_.interrupted()

    def _to_json(self, result: object) -> tuple[object, bool]:
        """Return the result as JSON, which must be small, and tell whether later rounds can read it as its type."""
        try:
            written, fits = self._write(result)
            text = dumps(written)
            value = json.loads(text)  # later rounds read this text, so this round reads it, too
        except (TypeError, ValueError, RecursionError) as error:
            raise self._failed("step {key!r}: JSON cannot carry what {function} returned") from error
        size = len(text.encode("utf-8", "surrogatepass"))
        if size > MAX_BYTES:
            rule = "step {key!r} returned {size} bytes of at most {most}: keep a reference instead"
            raise self._failed(rule, size=size, most=MAX_BYTES)
        return value, fits

    def _write(self, result: object) -> tuple[object, bool]:
        """Write the result by its annotated type, and tell whether it fits; one that does not is written as it is."""
        if self._returns is None:
            written = to_record(result)
            if not is_json(result):
                advice = "give it a return annotation (a def, not a lambda) whose name is imported at run time"
                self._warn("could not tell that {function} returned a {type}", advice, result)
            return written, True
        try:
            written, is_whole = self._returns.record(result)
            self._returns.read_record(written)
        except ValueError as error:
            written = to_record(result)
            self._warn(
                "could not read the {type} that {function} returned as its annotation says", f"it {error}", result
            )
            return written, False
        if not is_whole:
            self._warn("do not get an equal {type} from the record", ADVICE, result)
        return written, True

    def _warn(self, problem: str, advice: str, result: object) -> None:
        named = problem.format(function=self._name, type=type_name(result))
        warn_of_loss(f"step {self._key!r}: later rounds {named}", advice, self._round)

    def _recorded_result(self) -> object:
        """Return a copy of the recorded result, as the type in the function's return annotation."""
        recorded = self._round.record.steps[self._key]
        value = copy_json(recorded.result)
        try:
            return self._returns.read_record(value) if self._returns else value
        except ValueError as error:
            if not recorded.fits:
                return value  # the round that ran the step returned it so, and has warned
            rule = (
                "the recorded result of step {key!r} does not fit what {function} says it returns: "
                "it {problem} (new fields need defaults, for conversations that are under way)"
            )
            raise self._failed(rule, problem=error) from error

    @property
    def _name(self) -> str:
        return str(getattr(self._function, "__name__", type(self._function).__name__))

    def _failed(self, rule: str, **values: object) -> DeveloperError:
        """Return the error that the caller raises (`Round.failed`). The rule may have a `{key}` and a `{function}`."""
        return self._round.failed(DeveloperError(rule, key=self._key, function=self._name, **values))
