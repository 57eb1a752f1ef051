"""Steps: work that runs once in a conversation, although its handler runs in every round.

The state records a step's result, and later rounds read it. A client that lost a response repeats the round with the
state from before the step, so the step may run again. For services that must not act twice, a step has an idempotency
key. It derives from the conversation, the step's key and its arguments, so it is the same in every repetition of a
round with a state. A step that raises is not recorded.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import json
from contextlib import contextmanager
from dataclasses import dataclass, field, is_dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NoReturn, ParamSpec, TypeVar, cast, get_type_hints
from uuid import UUID

from mcp_functions.protocol.json_writer import base64url, dumps
from mcp_functions.protocol.plain_values import NotJson, to_json
from mcp_functions.rounds.capabilities import Capability
from mcp_functions.rounds.round import RunningStep, running_step
from mcp_functions.schemas.type_reader import read_type
from mcp_functions.seal.canonical_json import canonical_digest

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterator

    from mcp_functions.rounds.round import Round
    from mcp_functions.schemas.json_types import JsonType

P = ParamSpec("P")
R = TypeVar("R")

MAX_BYTES = 8 * 1024  # of one result; the whole state has a limit of its own


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
        call = self._call(key, function, args, kwargs)
        with self._round.step(key, call.arguments, self._takes) as has_to_run:
            if has_to_run:
                with call.running():
                    result = function(*args, **kwargs)
                self._refuse_awaitable(key, result)
                call.keep(result)
        return cast("R", call.result())

    async def wait(self, key: str, function: Callable[P, Awaitable[R]], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Await an async function once in a conversation, in an async handler.

        If another task ends the round with a question meanwhile, the function is not cancelled. It runs to its end, and
        its result is recorded before the client gets the question.
        """
        call = self._call(key, function, args, kwargs)
        with self._round.step(key, call.arguments, self._takes) as has_to_run:
            if has_to_run:
                await call.wait(lambda: function(*args, **kwargs))
        return cast("R", call.result())

    def within(self, seconds: float) -> Step:
        """Set the longest duration of a step: `step.within(8)("render", render, page)`.

        If the step would not end in time, the round ends first, and the next round runs the step.
        """
        return Step(self._round, seconds)

    @property
    def keyed(self) -> KeyedStep:
        """Pass the idempotency key: `step.keyed("charge", charge, flight)` calls `charge(flight, key="…")`.

        The key is `step.key`. A conversation's first round ends before such a step, without a question. A repeated
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
        return _derived(self._round, "step", f"{step.key}\0{step.arguments}").hex()[:32]

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

    def _call(self, key: str, function: Callable[..., Any], args: object, kwargs: object) -> _Call:
        if (outer := self._round.enclosing_step) is not None:
            self._round.fail(
                "step {key!r} runs inside step {outer!r}: a step is recorded as a whole", key=key, outer=outer
            )
        try:
            digest = _short(canonical_digest(b"", _json(_ordered([args, kwargs]))))
        except (TypeError, ValueError, RecursionError):
            rule = "step {key!r}: JSON cannot carry the arguments of {function}"
            self._round.fail(rule, key=key, function=_name(function))
        return _Call(self._round, key, function, digest)

    def _refuse_awaitable(self, key: str, result: object) -> None:
        if inspect.iscoroutine(result):
            result.close()
        if inspect.isawaitable(result):
            self._round.fail("step {key!r} calls an async function: await step.wait({key!r}, …)", key=key)


class KeyedStep(Capability):
    """A step whose function gets `key=`. It does not run in a conversation's first round, which has no state."""

    def __init__(self, round_: Round, takes: float | None) -> None:
        """Take the round; `takes` is the seconds of `within`."""
        super().__init__(round_)
        self._step = Step(round_, takes)

    def __call__(self, key: str, function: Callable[..., R], /, *args: object, **kwargs: object) -> R:
        """Return what `function` returned, now or in an earlier round; it gets `key=` besides its own arguments.

        Raises:
            InputRequired: this is the conversation's first round.
            DeveloperError: as Step.

        """
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


@dataclass(slots=True)
class _Call:
    """One call of a step."""

    round: Round
    key: str
    function: Callable[..., Any]
    arguments: str  # their digest
    seconds: float = 0.0
    returns: JsonType | None = field(init=False)

    def __post_init__(self) -> None:
        self.returns = _returns(self.function)

    @contextmanager
    def running(self) -> Iterator[None]:
        token, started = running_step.set(RunningStep(self.round, self.key, self.arguments)), self.round.request.now()
        try:
            yield
        finally:
            running_step.reset(token)
            self.seconds = max(0.0, self.round.request.now() - started)  # a wall clock may be set back

    async def wait(self, begin: Callable[[], Awaitable[object]]) -> None:
        import asyncio  # noqa: PLC0415 - its caller runs in it

        future = asyncio.get_running_loop().create_future()
        self.round.running_futures.add(future)
        try:
            with self.running():
                result, stopped = await _wait_to_end(begin(), self.round)
            self.keep(result)
        finally:
            future.set_result(None)
            self.round.running_futures.discard(future)
        if stopped:
            raise stopped

    def keep(self, result: object) -> None:
        """Record the result as JSON, so that this round reads the same value as later rounds."""
        name = _name(self.function)
        try:
            written = dumps(_json(result))
            value = json.loads(written)
        except (TypeError, ValueError, RecursionError):
            self.round.fail("step {key!r}: JSON cannot carry what {function} returned", key=self.key, function=name)
        size = len(written.encode("utf-8", "surrogatepass"))
        if size > MAX_BYTES:
            rule = "step {key!r} returned {size} bytes of at most {most}: keep a reference instead"
            self.round.fail(rule, key=self.key, size=size, most=MAX_BYTES)
        if not _is_json(result) and self.returns is None:
            self.round.fail(
                "step {key!r}: later rounds could not tell that {function} returned a {type}: "
                "give it a return annotation (a def, not a lambda) whose name is imported at run time",
                key=self.key,
                function=name,
                type=type(result).__name__,
            )
        self.round.record_step(self.key, self.arguments, value, int(self.seconds * 1000))

    def result(self) -> object:
        """Read a copy of the recorded result."""
        value = self.round.record.step_result(self.key)
        try:
            return self.returns.read(value) if self.returns else value
        except ValueError as error:
            self.round.fail(
                "the recorded result of step {key!r} does not fit what {function} says it returns: "
                "it {problem} (new fields need defaults, for conversations that are under way)",
                key=self.key,
                function=_name(self.function),
                problem=error,
            )


async def _wait_to_end(awaitable: Awaitable[R], round_: Round) -> tuple[R, BaseException | None]:
    """Wait until a step's function ends; return its result, and a cancellation that arrived meanwhile.

    If the round has ended, the function continues. Otherwise the author's code cancelled it, and it may clean up.
    """
    import asyncio  # noqa: PLC0415 - its caller runs in it

    task = asyncio.ensure_future(awaitable)
    if round_.handler_returned:
        task.cancel()  # before it begins
    try:
        return await asyncio.shield(task), None
    except asyncio.CancelledError as stopped:
        if not round_.ended:
            task.cancel()
        return await task, stopped


async def run_with_steps(handler: Coroutine[Any, Any, R], round_: Round) -> R:
    """Run an async handler, and wait for the steps that its tasks have started, so that they are recorded."""
    import asyncio  # noqa: PLC0415 - its caller runs in it

    try:
        return await handler
    finally:
        round_.handler_returned = True
        while round_.running_futures:
            await asyncio.wait(round_.running_futures)


def _returns(function: Callable[..., Any]) -> JsonType | None:
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


def _json(value: object) -> object:
    try:
        return to_json(value)
    except NotJson:
        from pydantic_core import to_jsonable_python  # noqa: PLC0415 - only for values that a result cannot hold either

        return to_jsonable_python(value, by_alias=True)


def _ordered(value: object) -> object:
    """Sort the members of sets, because their order differs between processes."""
    if isinstance(value, set | frozenset):
        return sorted(map(_ordered, value), key=repr)
    if isinstance(value, dict):
        return {key: _ordered(member) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [_ordered(member) for member in value]
    if hasattr(value, "model_dump"):
        return _ordered(value.model_dump(by_alias=True, warnings=False))  # which would quote values in the log
    if is_dataclass(value) and not isinstance(value, type):
        return {name: _ordered(getattr(value, name)) for name in value.__dataclass_fields__}
    return value


def _name(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


def _derived(round_: Round, label: str, key: str) -> bytes:
    if not round_.request.flow:
        round_.fail("only a conversation that can be sealed has keys of its own: MCP_KMS_KEYS is not set")
    return hashlib.sha256(f"mcp-functions\0{label}\0{round_.request.flow}\0{key}".encode()).digest()


def _short(digest: bytes) -> str:
    return base64url(digest[:16])
