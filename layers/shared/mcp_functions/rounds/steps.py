"""Steps: work that is done once in a conversation, though its handler runs in every round.

A step's result is recorded in the state, and later rounds read it. Where the record is missing it may run again: a
client that lost a response repeats the round, and presents the state from before the step. So the step has a key for
whoever must not act twice, derived from the conversation, the step's key and its arguments: the same in every
repetition of a round that brought a state. A step that raises is not recorded.
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
from mcp_functions.schemas.json_types import kind
from mcp_functions.seal.request_state import digest_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterator

    from mcp_functions.rounds.round import Round
    from mcp_functions.schemas.json_types import Kind

P = ParamSpec("P")
R = TypeVar("R")

MAX_BYTES = 8 * 1024  # of one result; the whole state has a cap of its own


class Step(Capability):
    """Does something once in a conversation: `flight = step("reserve", reserve, city)`."""

    asks = True

    def __init__(self, round_: Round, takes: float | None = None) -> None:
        """Record within one round; `takes` is the seconds that `within` was told."""
        super().__init__(round_)
        self._takes = takes
        round_.note_beginning()

    def __call__(self, key: str, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Return what `function` returned, now or in an earlier round.

        Args:
            key: names the step across rounds; one for each call.
            function: what to do. Its return annotation gives the type of a result that was recorded.
            args: for it; JSON values, models or dataclasses.
            kwargs: for it, likewise.

        Raises:
            DeveloperError: the key was used with other arguments, or its first call still runs; or JSON cannot carry
                the result, or it is too large, or nothing says what type it has.

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
        """Await an async function likewise, in an async handler.

        If another task ends the round meanwhile, with a question, the function is not cancelled: what has begun is done
        to its end and recorded, before the question goes out.
        """
        call = self._call(key, function, args, kwargs)
        with self._round.step(key, call.arguments, self._takes) as has_to_run:
            if has_to_run:
                await call.wait(lambda: function(*args, **kwargs))
        return cast("R", call.result())

    def within(self, seconds: float) -> Step:
        """Say how long a step takes at most: `step.within(8)("render", render, page)`.

        If it would not end in time, the round ends before it and the next one begins with it.
        """
        return Step(self._round, seconds)

    @property
    def keyed(self) -> KeyedStep:
        """Do what must not happen twice: `step.keyed("charge", charge, flight)` calls `charge(flight, key="…")`.

        The key is `step.key`. A conversation's first round ends before such a step, without a question: a first request
        that the client repeats begins another conversation, and its key would be another.
        """
        return KeyedStep(self._round, self._takes)

    @property
    def key(self) -> str:
        """The idempotency key of the step that is running, 32 characters: hand it to whoever must not act twice.

        It is the same when a lost response makes the client repeat a round, except a conversation's first, which
        brought no state: ask something before, or use `step.keyed`.

        Raises:
            DeveloperError: no step is running.

        """
        step = running_step.get()
        if step is None or step.round is not self._round:
            self._round.fail("step.key is the key of a running step: read it in the function that the step calls")
        return _derived(self._round, "step", f"{step.key}\0{step.arguments}").hex()[:32]

    def now(self) -> datetime:
        """Return when the conversation began: it is recorded, so all rounds and their repetitions say the same."""
        return datetime.fromtimestamp(self._round.began / 1000, UTC)

    def uuid(self, key: str) -> UUID:
        """Return a UUID of this conversation: the same in all its rounds, another for each key."""
        return UUID(bytes=_derived(self._round, "uuid", key)[:16], version=4)

    def random(self, key: str) -> float:
        """Return a number of this conversation in [0, 1): the same in all its rounds, another for each key."""
        return int.from_bytes(_derived(self._round, "random", key)[:6], "big") / (1 << 48)

    def shed(self) -> NoReturn:
        """End the round here by hand: the client sends the request again, and the work goes on where it stands."""
        self._round.shed()

    def _call(self, key: str, function: Callable[..., Any], args: Any, kwargs: Any) -> _Call:  # noqa: ANN401
        if (outer := self._round.enclosing_step) is not None:
            self._round.fail(
                "step {key!r} runs inside step {outer!r}: a step is recorded as a whole", key=key, outer=outer
            )
        try:
            digest = _short(digest_of(b"", _json(_ordered([args, kwargs]))))
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
    """A step whose function is called with `key=`, and never in a round that nothing ties to its repetition."""

    def __init__(self, round_: Round, takes: float | None) -> None:
        """Act as a Step does; `takes` is the seconds that `within` was told."""
        super().__init__(round_)
        self._step = Step(round_, takes)

    def __call__(self, key: str, function: Callable[..., R], /, *args: Any, **kwargs: Any) -> R:  # noqa: ANN401
        """Return what `function` returned, called with `key=` besides its own arguments; otherwise as Step does.

        Raises:
            InputRequired: this is the conversation's first round.
            DeveloperError: as Step.

        """
        return self._step(key, self._with_key(function), *args, **kwargs)

    async def wait(self, key: str, function: Callable[..., Awaitable[R]], /, *args: Any, **kwargs: Any) -> R:  # noqa: ANN401
        """Await an async function likewise, in an async handler."""
        return await self._step.wait(key, self._with_key(function), *args, **kwargs)

    def _with_key(self, function: Callable[..., R]) -> Callable[..., R]:
        @functools.wraps(function)
        def keyed(*args: Any, **kwargs: Any) -> R:  # noqa: ANN401 - the function's own
            self._round.anchor()
            return function(*args, key=self._step.key, **kwargs)

        return keyed


@dataclass(slots=True)
class _Call:
    """One call of a step, recorded or to be."""

    round: Round
    key: str
    function: Callable[..., Any]
    arguments: str  # their digest
    seconds: float = 0.0
    returns: Kind | None = field(init=False)

    def __post_init__(self) -> None:
        self.returns = _returns(self.function)

    @contextmanager
    def running(self) -> Iterator[None]:
        token, started = running_step.set(RunningStep(self.round, self.key, self.arguments)), self.round.now()
        try:
            yield
        finally:
            running_step.reset(token)
            self.seconds = max(0.0, self.round.now() - started)  # a wall clock may be set back

    async def wait(self, begin: Callable[[], Awaitable[Any]]) -> None:
        import asyncio  # noqa: PLC0415 - who calls this runs in it

        under_way = asyncio.get_running_loop().create_future()
        self.round.under_way.add(under_way)
        try:
            with self.running():
                result, stopped = await _whole(begin(), self.round)
            self.keep(result)
        finally:
            under_way.set_result(None)
            self.round.under_way.discard(under_way)
        if stopped:
            raise stopped

    def keep(self, result: Any) -> None:  # noqa: ANN401 - the author's own value
        """Record what the function returned, as JSON writes it: so this round reads what later rounds read."""
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
        self.round.keep(self.key, self.arguments, value, int(self.seconds * 1000))

    def result(self) -> Any:  # noqa: ANN401 - of the type that the function says it returns
        """Read the record; nobody else holds what this returns."""
        value = self.round.result_of(self.key)
        try:
            return self.returns.check(value) if self.returns else value
        except ValueError as error:
            self.round.fail(
                "the recorded result of step {key!r} does not fit what {function} says it returns: "
                "it {problem} (new fields need defaults, for conversations that are under way)",
                key=self.key,
                function=_name(self.function),
                problem=error,
            )


async def _whole(begun: Awaitable[R], round_: Round) -> tuple[R, BaseException | None]:
    """Wait for a step's function to its end; return its result, and the cancellation that arrived meanwhile, if any.

    If the round has ended, the function goes on. If its author stops it, it is cancelled, and may clean up.
    """
    import asyncio  # noqa: PLC0415 - who calls this runs in it

    task = asyncio.ensure_future(begun)
    if round_.returned:
        task.cancel()  # before it begins
    try:
        return await asyncio.shield(task), None
    except asyncio.CancelledError as stopped:
        if not round_.ended:
            task.cancel()
        return await task, stopped


async def to_its_end(handler: Coroutine[Any, Any, R], round_: Round) -> R:
    """Run an async handler, and then what steps are under way in its tasks: to their end, so that they are recorded."""
    import asyncio  # noqa: PLC0415 - who calls this runs in it

    try:
        return await handler
    finally:
        round_.returned = True
        while round_.under_way:
            await asyncio.wait(round_.under_way)


def _returns(function: Callable[..., Any]) -> Kind | None:
    """Read what a function says it returns; None if it says nothing that could tell one type of JSON from another."""
    while inner := getattr(function, "__wrapped__", None) or getattr(function, "func", None):
        function = inner  # decorated, or functools.partial
    if not inspect.isroutine(function) and not isinstance(function, type):
        function = type(function).__call__
    try:
        said = function if isinstance(function, type) else get_type_hints(function, include_extras=True).get("return")
        return None if said in (None, Any, object) else kind(said)
    except (TypeError, NameError, AttributeError):
        return None  # a name that only type checkers see, or a type that nobody could read from JSON


def _is_json(value: object) -> bool:
    """Say whether a value comes back from JSON as it was, or as nearly as makes no difference (a tuple as a list)."""
    if type(value) in (list, tuple):
        return all(map(_is_json, cast("list[Any]", value)))
    if type(value) is dict:
        return all(type(key) is str and _is_json(member) for key, member in value.items())
    return value is None or type(value) in (str, int, float, bool)


def _json(value: object) -> Any:  # noqa: ANN401 - JSON is any value
    try:
        return to_json(value)
    except NotJson:
        from pydantic_core import to_jsonable_python  # noqa: PLC0415 - only for what a result could not hold either

        return to_jsonable_python(value, by_alias=True)


def _ordered(value: Any) -> Any:  # noqa: ANN401 - an argument
    """Give the members of sets an order: their own differs from process to process."""
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
    if not round_.flow:
        round_.fail("only a conversation that can be sealed has keys of its own: MCP_KMS_KEYS is not set")
    return hashlib.sha256(f"mcp-functions\0{label}\0{round_.flow}\0{key}".encode()).digest()


def _short(digest: bytes) -> str:
    return base64url(digest[:16])
