"""One call of a step: `flight = step("reserve", reserve, city)` in the author's function.

A conversation takes several requests, and a round is one of them. The author's function runs from its first line in
every round, but a step runs in one round only: its result is in the record, the JSON that each round leaves for the
next. A call of a step does this:

    begin     no other task or thread of this round may run the step; if the record has its result, go on with `read`
    check     if too little time is left for the step, end the round; the next round runs it
    run       call `reserve(city)`
    record    write the result into the record, as JSON
    end       other tasks and threads may call the step again
    read      return the recorded JSON as the type in the return annotation of `reserve`

The round that ran a step reads its result from the record, too. So every round gets the same value.
"""

from __future__ import annotations

import inspect
import json
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

from mcp_functions.protocol.errors import InputRequired
from mcp_functions.protocol.json_reader import copy_json
from mcp_functions.protocol.json_writer import dumps
from mcp_functions.rounds.record import RecordedStep
from mcp_functions.rounds.round import RunningStep, step_of_context
from mcp_functions.rounds.step_arguments import digest_arguments
from mcp_functions.rounds.step_results import is_json, read_return_type, to_record

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mcp_functions.rounds.round import Round

MAX_BYTES = 8 * 1024  # the limit of one recorded result, because the client carries all of them in each request


class StepCall:
    """One call of a step.

    Attributes:
        round: the round that calls the step.
        step_key: the step's key, the same in all rounds.
        arguments_digest: a digest of the arguments; a recorded result counts only for the same arguments.
    """

    def __init__(
        self, round_: Round, key: str, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> None:
        """Prepare the call `function(*args, **kwargs)`; the function does not run yet.

        Raises:
            DeveloperError: the call is inside another step, the key is not text, or JSON cannot carry the arguments.
        """
        self.round = round_
        self.step_key = key
        self._function = function
        self._call = partial(function, *args, **kwargs)
        self._returns = read_return_type(function)
        outer = round_.current_step()
        if outer:
            self._fail("step {key!r} runs inside step {outer!r}: a step is recorded as a whole", outer=outer.key)
        if not isinstance(key, str):
            self._fail("a step's key is text, and not of type {type}", type=type(key).__name__)
        try:
            self.arguments_digest = digest_arguments(args, kwargs)
        except (TypeError, ValueError, RecursionError):
            self._fail("step {key!r}: JSON cannot carry the arguments of {function}")
        self._running = RunningStep(round_, key, self.arguments_digest)

    def run(self, max_seconds: float | None) -> object:
        """Return the recorded result; run the function first if the record has none.

        Args:
            max_seconds: the longest duration of the function, as the author set it with `step.within`; or None.

        Raises:
            InputRequired: the round ends before the step, and the next round runs it.
            DeveloperError: the call breaks a rule.
        """
        with self as must_run:
            if must_run:
                self.round.end_if_step_must_wait(max_seconds)
                self._run_and_record()
        return self._recorded_result()

    async def wait(self, max_seconds: float | None) -> object:
        """Return the recorded result of an async function; await the function first if the record has none."""
        with self as must_run:
            if must_run:
                self.round.end_if_step_must_wait(max_seconds)
                await self._run_in_task()
        return self._recorded_result()

    def __enter__(self) -> bool:
        """Begin the step: add it to the running ones, and return True. If the record has its result, return False.

        Raises:
            InputRequired: the round has ended.
            DeveloperError: the step runs already, or its result belongs to other arguments.
        """
        round_ = self.round
        round_.raise_kept_error()
        with round_.lock:
            if round_.has_ended or round_.handler_returned:
                raise InputRequired
            if self.step_key in round_.running_steps:
                self._fail(
                    "step {key!r} is called again while its first call still runs, in another task or thread: "
                    "give each call a key of its own"
                )
            recorded = round_.record.steps.get(self.step_key)
            if recorded is None:
                round_.running_steps.add(self.step_key)
                return True
            if recorded.arguments_digest != self.arguments_digest:
                self._fail(
                    "step {key!r} ran with other arguments before: give each call a key of its own, a new one too if "
                    "a deployment calls it with something else, and make its arguments from what later rounds know as "
                    "well"
                )
            return False

    def __exit__(self, *_error: object) -> None:
        """End the step: remove it from the running ones. `Round.close` may wait for that."""
        with self.round.lock:
            self.round.running_steps.discard(self.step_key)
            self.round.lock.notify_all()

    def _run_and_record(self) -> None:
        """Call the function in this thread, and record its result."""
        began = self.round.request.now()
        token = step_of_context.set(self._running)
        try:
            result = self._call()
        finally:
            step_of_context.reset(token)
        if inspect.isawaitable(result):
            if inspect.iscoroutine(result):
                result.close()  # otherwise Python warns that it was never awaited
            self._fail("step {key!r} calls an async function: await step.wait({key!r}, …)")
        self._record(result, began)

    async def _run_in_task(self) -> None:
        """Await the function in a separate task, which goes on if another task ends the round with a question.

        The question cancels this call, like all tasks of the handler. The function still runs to its end. Its result is
        recorded, because the next round would run it again otherwise.
        """
        import asyncio  # noqa: PLC0415 - whoever awaits this has imported it; steps that are not async do not need it

        task = asyncio.ensure_future(self._await_and_record())
        self.round.step_tasks.add(task)
        task.add_done_callback(self.round.step_tasks.discard)
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            if not self.round.has_ended:  # the author's code cancelled the call
                task.cancel()
            await task  # an exception of the function leaves here
            raise

    async def _await_and_record(self) -> None:
        """Await the function, and record its result."""
        began = self.round.request.now()
        step_of_context.set(self._running)  # no reset: each task has a copy of the context, which ends with the task
        result = await self._call()
        self._record(result, began)

    def _record(self, result: object, began: float) -> None:
        """Record the result as JSON. `began` is when the function was called, in unix seconds."""
        try:
            text = dumps(to_record(result))
            value = json.loads(text)  # later rounds read this text, so this round must read the same value
        except (TypeError, ValueError, RecursionError):
            self._fail("step {key!r}: JSON cannot carry what {function} returned")
        size = len(text.encode("utf-8", "surrogatepass"))
        if size > MAX_BYTES:
            rule = "step {key!r} returned {size} bytes of at most {most}: keep a reference instead"
            self._fail(rule, size=size, most=MAX_BYTES)
        if not is_json(result) and self._returns is None:
            rule = (
                "step {key!r}: later rounds could not tell that {function} returned a {type}: "
                "give it a return annotation (a def, not a lambda) whose name is imported at run time"
            )
            self._fail(rule, type=type(result).__name__)
        round_ = self.round
        seconds = max(0.0, round_.request.now() - began)  # a wall clock may be set back
        with round_.lock:
            round_.record.steps[self.step_key] = RecordedStep(self.arguments_digest, value, int(seconds * 1000))
            round_.has_recorded_step = True
        if round_.lease and not round_.lease.save_step(round_):
            round_.end()  # another worker has the task; this one must not run a step after one that was not saved

    def _recorded_result(self) -> object:
        """Return a copy of the recorded result, as the type in the function's return annotation."""
        value = copy_json(self.round.record.steps[self.step_key].result)
        try:
            return self._returns.read(value) if self._returns else value
        except ValueError as error:
            rule = (
                "the recorded result of step {key!r} does not fit what {function} says it returns: "
                "it {problem} (new fields need defaults, for conversations that are under way)"
            )
            self._fail(rule, problem=error)

    def _fail(self, rule: str, **values: object) -> NoReturn:
        """Raise the DeveloperError of a rule, with this step's key and function for `{key}` and `{function}` in it."""
        name = str(getattr(self._function, "__name__", type(self._function).__name__))
        self.round.fail(rule, key=self.step_key, function=name, **values)
