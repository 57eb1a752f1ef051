"""Steps: work that is done once in a conversation, though its handler runs in every round.

A step's result is recorded in the state, and later rounds read it. Where the record is missing it may run again: a
client that lost a response repeats the round, and presents the state from before the step. So the step has a key for
whoever must not act twice, derived from the conversation, the step's key and its arguments: the same in every
repetition.
"""

from __future__ import annotations

import base64
import hashlib
import inspect
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NoReturn, ParamSpec, TypeVar, cast, get_type_hints
from uuid import UUID

from mcp_functions.capabilities import Capability
from mcp_functions.errors import DeveloperError
from mcp_functions.jsonrpc import dumps
from mcp_functions.kinds import kind
from mcp_functions.request_state import canonical
from mcp_functions.results import to_json

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcp_functions.rounds import Round

P = ParamSpec("P")
R = TypeVar("R")

MAX_BYTES = 8 * 1024  # of one result; the whole state has a cap of its own


class Step(Capability):
    """Does something once in a conversation: `flight = step("reserve", reserve, city)`."""

    asks = True

    def __init__(self, round_: Round) -> None:
        """Record within one round, and note when the conversation began."""
        super().__init__(round_)
        self._running: str | None = None
        _ = round_.began

    def __call__(self, key: str, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Return what `function` returned, now or in an earlier round.

        Args:
            key: names the step across rounds; one for each call.
            function: what to do. Its return annotation gives the type of a result that was recorded.
            args: for it; JSON values, models or dataclasses.
            kwargs: for it, likewise.

        Raises:
            DeveloperError: the key was used with other arguments, or JSON cannot carry the result, or it is too large.

        """
        return self._once(key, None, function, *args, **kwargs)

    def within(self, seconds: float) -> Callable[..., Any]:
        """Say how long a step takes at most: `step.within(8)("render", render, page)`.

        If it would not end in time, the round ends before it and the next one begins with it.
        """

        def call(key: str, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
            return self._once(key, seconds, function, *args, **kwargs)

        return call

    async def wait(self, key: str, function: Callable[P, Awaitable[R]], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Await an async function likewise, in an async handler."""
        digest, known, value = self._look_up(key, None, function, args, kwargs)
        if known:
            return cast("R", self._typed(function, value))
        self._running, started = self._key(key, digest), time.monotonic()
        try:
            result = await function(*args, **kwargs)
        finally:
            self._running = None
        return cast("R", self._keep(key, digest, function, result, started))

    @property
    def key(self) -> str:
        """The idempotency key of the step that is running, 32 characters: hand it to whoever must not act twice.

        Raises:
            DeveloperError: no step is running.

        """
        if self._running is None:
            self._round.fail("step.key is the key of a running step: read it in the function that the step calls")
        return self._running

    def now(self) -> datetime:
        """Return when the conversation began: the same in all its rounds, which no repetition can roll again."""
        return datetime.fromtimestamp(self._round.began / 1000, UTC)

    def uuid(self, key: str) -> UUID:
        """Return a UUID of this conversation: the same in all its rounds, another for each key."""
        return UUID(bytes=self._derived("uuid", key)[:16], version=4)

    def random(self, key: str) -> float:
        """Return a number of this conversation in [0, 1): the same in all its rounds, another for each key."""
        return int.from_bytes(self._derived("random", key)[:6], "big") / (1 << 48)

    def shed(self) -> NoReturn:
        """End the round here by hand: the client sends the request again, and the work goes on where it stands."""
        self._round.shed()

    def _once(self, key: str, takes: float | None, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        digest, known, value = self._look_up(key, takes, function, args, kwargs)
        if known:
            return cast("R", self._typed(function, value))
        self._running, started = self._key(key, digest), time.monotonic()
        try:
            result = function(*args, **kwargs)
        finally:
            self._running = None
        if inspect.isawaitable(result):
            self._round.fail(f"step {key!r} calls an async function: await step.wait({key!r}, …)")
        return cast("R", self._keep(key, digest, function, result, started))

    def _look_up(
        self, key: str, takes: float | None, function: Callable[..., Any], args: object, kwargs: object
    ) -> tuple[str, bool, Any]:
        if self._running is not None:
            self._round.fail(f"step {key!r} runs inside another step: a step is recorded as a whole")
        try:
            digest = _short(hashlib.sha256(canonical(to_json([args, kwargs]))).digest())
        except ValueError:
            self._round.fail(f"step {key!r}: JSON cannot carry the arguments of {function.__name__}")
        known, value = self._round.recorded(key, digest)
        if not known:
            self._round.make_room(takes)
        return digest, known, value

    def _keep(self, key: str, digest: str, function: Callable[..., Any], result: Any, started: float) -> Any:  # noqa: ANN401
        try:
            value = to_json(result)
            size = len(dumps(value).encode())
        except (TypeError, ValueError):
            self._round.fail(f"step {key!r}: JSON cannot carry what {function.__name__} returned")
        if size > MAX_BYTES:
            self._round.fail(f"step {key!r} returned {size} bytes of at most {MAX_BYTES}: keep a reference instead")
        self._round.keep(key, digest, value, int((time.monotonic() - started) * 1000))
        return self._typed(function, value)

    def _typed(self, function: Callable[..., Any], value: Any) -> Any:  # noqa: ANN401 - the function's own type
        try:
            returns = get_type_hints(function).get("return", Any)
            return kind(returns).check(value)
        except ValueError as error:
            self._round.fail(f"a recorded result does not fit what {function.__name__} says it returns: it {error}")
        except (TypeError, NameError, AttributeError, DeveloperError):
            return value  # a function without annotations, or with types that only a checker knows: plain JSON

    def _key(self, key: str, digest: str) -> str:
        return self._derived("step", f"{key}\0{digest}").hex()[:32]

    def _derived(self, label: str, key: str) -> bytes:
        return hashlib.sha256(f"mcp-functions\0{label}\0{self._round.flow}\0{key}".encode()).digest()


def _short(digest: bytes) -> str:
    return base64.urlsafe_b64encode(digest[:16]).rstrip(b"=").decode()
