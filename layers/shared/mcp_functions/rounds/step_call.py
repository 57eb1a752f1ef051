"""One call of a step: it reserves the step's key, runs the function, and records the result as JSON."""

from __future__ import annotations

import inspect
import json
from contextlib import contextmanager
from dataclasses import is_dataclass
from typing import TYPE_CHECKING, Any, NoReturn, cast, get_type_hints

from mcp_functions.protocol.errors import InputRequired
from mcp_functions.protocol.json_writer import base64url, dumps
from mcp_functions.protocol.plain_values import NotJson, to_json
from mcp_functions.rounds.questions import check_text
from mcp_functions.rounds.round import running_step
from mcp_functions.schemas.type_reader import read_type
from mcp_functions.seal.canonical_json import canonical_digest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from mcp_functions.rounds.round import Round
    from mcp_functions.schemas.json_types import JsonType

MAX_BYTES = 8 * 1024  # of one result; the whole state has another limit


class StepCall:
    """One call of a step. `digest` is that of its arguments: a recorded result counts only for the same arguments."""

    def __init__(
        self,
        round_: Round,
        key: str,
        function: Callable[..., Any],
        args: Sequence[object],
        kwargs: Mapping[str, object],
    ) -> None:
        """Refuse a call inside another step, and arguments that JSON cannot carry."""
        outer = round_.enclosing_step
        if outer is not None:
            round_.fail("step {key!r} runs inside step {outer!r}: a step is recorded as a whole", key=key, outer=outer)
        self.round, self.key = round_, key
        self._function, self._args, self._kwargs = function, args, kwargs
        self._returns = _return_type(function)
        self._seconds = 0.0
        self.digest = self._digest()

    def run(self, takes: float | None) -> object:
        """Return the recorded result; run the function first if the record has none. `takes` is in seconds."""
        if self._reserve():
            try:
                self.round.check_may_run(takes)
                with self._running():
                    result = self._function(*self._args, **self._kwargs)
                self._refuse_awaitable(result)
                self._record(result)
            finally:
                self._release()
        return self._recorded_result()

    async def wait(self, takes: float | None) -> object:
        """Do the same with an async function, in an async handler."""
        if self._reserve():
            try:
                self.round.check_may_run(takes)
                await self._wait_and_record()
            finally:
                self._release()
        return self._recorded_result()

    def _digest(self) -> str:
        try:
            digest = canonical_digest(b"", _to_json(_sort_sets([self._args, self._kwargs])))
        except (TypeError, ValueError, RecursionError):
            self._fail("step {key!r}: JSON cannot carry the arguments of {function}")
        return base64url(digest[:16])

    def _reserve(self) -> bool:
        """Reserve the key, so that no other task or thread runs the step too. Return False if it was recorded."""
        round_, key = self.round, self.key
        round_.check_can_continue()
        with round_.noting_errors():
            check_text(key, "a step's key is text, and not of type {type}")
        with round_.record.lock:
            if round_.ended or round_.closed:
                raise InputRequired
            if key in round_.running_steps:
                self._fail(
                    "step {key!r} is called again while its first call still runs, in another task or thread: "
                    "give each call a key of its own"
                )
            if key not in round_.record.steps:
                round_.running_steps.add(key)
                return True
            if round_.record.steps[key][0] != self.digest:
                self._fail(
                    "step {key!r} ran with other arguments before: give each call a key of its own, a new one too if a"
                    " deployment calls it with something else, and make its arguments from what later rounds know as "
                    "well"
                )
            return False

    def _release(self) -> None:
        with self.round.record.lock:
            self.round.running_steps.discard(self.key)
            self.round.record.lock.notify_all()

    @contextmanager
    def _running(self) -> Iterator[None]:
        now = self.round.request.now
        token, started = running_step.set(self), now()
        try:
            yield
        finally:
            running_step.reset(token)
            self._seconds = max(0.0, now() - started)  # a wall clock may be set back

    async def _wait_and_record(self) -> None:
        import asyncio  # noqa: PLC0415 - its caller runs in it

        future = asyncio.get_running_loop().create_future()
        self.round.running_futures.add(future)
        try:
            with self._running():
                result, cancelled = await self._wait_for_function()
            self._record(result)
        finally:
            future.set_result(None)
            self.round.running_futures.discard(future)
        if cancelled:
            raise cancelled

    async def _wait_for_function(self) -> tuple[object, BaseException | None]:
        """Wait until the function ends; return its result, and a cancellation that arrived meanwhile.

        If the round has ended, the function continues. Otherwise the author's code cancelled it, and it may clean up.
        """
        import asyncio  # noqa: PLC0415 - its caller runs in it

        task = asyncio.ensure_future(self._function(*self._args, **self._kwargs))
        if self.round.handler_returned:
            task.cancel()  # before it begins
        try:
            return await asyncio.shield(task), None
        except asyncio.CancelledError as cancelled:
            if not self.round.ended:
                task.cancel()
            return await task, cancelled

    def _refuse_awaitable(self, result: object) -> None:
        if inspect.iscoroutine(result):
            result.close()
        if inspect.isawaitable(result):
            self._fail("step {key!r} calls an async function: await step.wait({key!r}, …)")

    def _record(self, result: object) -> None:
        """Record the result as JSON, so that this round reads the same value as later rounds."""
        try:
            text = dumps(_to_json(result))
            value = json.loads(text)
        except (TypeError, ValueError, RecursionError):
            self._fail("step {key!r}: JSON cannot carry what {function} returned")
        size = len(text.encode("utf-8", "surrogatepass"))
        if size > MAX_BYTES:
            rule = "step {key!r} returned {size} bytes of at most {most}: keep a reference instead"
            self._fail(rule, size=size, most=MAX_BYTES)
        if not _is_json(result) and self._returns is None:
            self._fail(
                "step {key!r}: later rounds could not tell that {function} returned a {type}: "
                "give it a return annotation (a def, not a lambda) whose name is imported at run time",
                type=type(result).__name__,
            )
        round_ = self.round
        with round_.record.lock:
            round_.record.steps[self.key] = [self.digest, value, int(self._seconds * 1000)]
            round_.new_steps += 1
        if round_.on_step_recorded:
            round_.on_step_recorded()

    def _recorded_result(self) -> object:
        value = self.round.record.step_result(self.key)
        try:
            return self._returns.read(value) if self._returns else value
        except ValueError as error:
            self._fail(
                "the recorded result of step {key!r} does not fit what {function} says it returns: "
                "it {problem} (new fields need defaults, for conversations that are under way)",
                problem=error,
            )

    def _fail(self, rule: str, **values: object) -> NoReturn:
        name = str(getattr(self._function, "__name__", type(self._function).__name__))
        self.round.fail(rule, key=self.key, function=name, **values)


def _return_type(function: Callable[..., Any]) -> JsonType | None:
    """Read the return annotation of a function; None if it has no type that JSON can be read as."""
    while inner := getattr(function, "__wrapped__", None) or getattr(function, "func", None):
        function = inner  # decorated, or functools.partial
    if not inspect.isroutine(function) and not isinstance(function, type):
        function = type(function).__call__
    try:
        annotation: Any = function
        if not isinstance(function, type):
            annotation = get_type_hints(function, include_extras=True).get("return")
        return None if annotation in (None, Any, object) else read_type(annotation)
    except (TypeError, NameError, AttributeError):
        return None  # a name that only type checkers see, or a type that JSON cannot hold


def _is_json(value: object) -> bool:
    """Check whether a value comes back from JSON unchanged; a tuple may come back as a list."""
    if type(value) in (list, tuple):
        return all(map(_is_json, cast("list[Any]", value)))
    if type(value) is dict:
        return all(type(key) is str and _is_json(member) for key, member in value.items())
    return value is None or type(value) in (str, int, float, bool)


def _to_json(value: object) -> object:
    try:
        return to_json(value)
    except NotJson:
        from pydantic_core import to_jsonable_python  # noqa: PLC0415 - only for values that a result cannot hold either

        return to_jsonable_python(value, by_alias=True)


def _sort_sets(value: object) -> object:
    """Sort the members of sets, because their order differs between processes."""
    if isinstance(value, set | frozenset):
        return sorted(map(_sort_sets, value), key=repr)
    if isinstance(value, dict):
        return {key: _sort_sets(member) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [_sort_sets(member) for member in value]
    if hasattr(value, "model_dump"):
        return _sort_sets(value.model_dump(by_alias=True, warnings=False))  # which would quote values in the log
    if is_dataclass(value) and not isinstance(value, type):
        return {name: _sort_sets(getattr(value, name)) for name in value.__dataclass_fields__}
    return value
