"""What every handler has in common: a name, a description, a signature, and a way to run one round."""

from __future__ import annotations

import inspect
import re
import sys
from functools import update_wrapper
from types import CoroutineType, FunctionType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, ParamSpec, TypeAlias, TypeVar

from mcp_functions.handlers import signatures
from mcp_functions.protocol import scopes as words
from mcp_functions.protocol.errors import DeveloperError, HandlerError, NotAnswered, ToolError
from mcp_functions.protocol.json_reader import copy_json

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping, Sequence
    from datetime import timedelta

    from mcp_functions.handlers.signatures import Signature
    from mcp_functions.protocol.errors import Crash
    from mcp_functions.protocol.foreign_types import Model
    from mcp_functions.protocol.headers import HeaderParameters
    from mcp_functions.protocol.wire_types import Icon
    from mcp_functions.rounds.round import Round

P = ParamSpec("P")
R = TypeVar("R")

# "Names SHOULD be between 1 and 128 characters … A-Z, a-z, 0-9, underscore, hyphen and dot": a header carries them
NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")

Mode: TypeAlias = Literal["replay", "reject"]
MODES = ("replay", "reject")
SDKS = ("mcp", "fastmcp")


class Handler(Generic[P, R]):
    """One function that a client can call, and what the client is told about it.

    Attributes:
        name: what the client calls it.
        asks: whether it can end a round with a question, so that its Lambda must be able to seal.
        logs: whether it can send log messages, so that the capability is advertised.
        alone: whether it can do nothing but return, so that it needs to know nothing of its round.
        answer_within: seconds a person may take for one answer.
        max_sheds: rounds in a row that may end without a question, because the time was up.
        scopes: all of which a caller's access token must grant.
        task: what makes a call a task; only tools have it.
        single_use: whether each round of a conversation runs once, and what who asks again is told; None: no promise.
        keeps: whether its Lambda needs the table.

    """

    kind: ClassVar[str]
    repeated: HeaderParameters = {}  # noqa: RUF012 - a tool's arguments that clients repeat in headers; never changed
    task: object = None

    def __init__(  # noqa: PLR0913 - each is a field of the specification's description
        self,
        function: Callable[P, R],
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        icons: Sequence[Icon | Model] | None = None,
        meta: Mapping[str, Any] | None = None,
        camel_case: bool = False,
        answer_within: int | timedelta = 600,
        max_sheds: int = 2,
        scopes: Sequence[str] = (),
        single_use: Mode | None = None,
    ) -> None:
        """Read the function's signature and docstring; nothing is called.

        Raises:
            TypeError: the signature breaks the contract; the message says where and how to mend it.

        """
        _check_function(function)
        update_wrapper(self, function)
        self.function = function
        self.name = name or function.__name__
        self.description = description or inspect.getdoc(function)
        self.camel_case = camel_case
        self.answer_within = answer_within if isinstance(answer_within, int) else int(answer_within.total_seconds())
        self.max_sheds = max_sheds
        self.scopes: Sequence[str] = scopes if isinstance(scopes, str) else tuple(scopes)
        self.single_use = single_use
        self._described: dict[str, Any] = {"title": title, "icons": icons, "_meta": meta}
        with signatures.where(function):
            self._check_options()
            self._signature = signatures.read(function, camel_case=camel_case)
            self._read_signature(self._signature)
            self._check_single_use()
        self.asks = self._signature.asks
        self.alone = not (self._signature.capabilities or self._signature.declared or self.task)
        self.keeps = bool(single_use or self.task)
        self.logs = self._signature.logs

    def _check_options(self) -> None:
        if not NAME.fullmatch(self.name):
            message = f"the name {self.name!r} must be 1 to 128 of A-Z a-z 0-9 _ - ."
            raise TypeError(message)
        self._check_described()
        if self.answer_within < 1 or self.max_sheds < 0:
            message = "answer_within is a timedelta or seconds, 1 or more; max_sheds is 0 or more"
            raise TypeError(message)
        if isinstance(self.scopes, str) or not all(re.fullmatch(words.SCOPE, scope) for scope in self.scopes):
            message = 'scopes is a list of words without blanks or quotes: scopes=["work:write"]'
            raise TypeError(message)

    def _check_described(self) -> None:
        if not all(isinstance(text, str | None) for text in (self._described["title"], self.description)):
            message = "title and description are text"
            raise TypeError(message)
        if self._described["icons"] is None and self._described["_meta"] is None:
            return
        from mcp_functions.protocol import hints  # noqa: PLC0415 - many handlers have none

        self._described["icons"] = hints.read_icons(self._described["icons"])
        self._described["_meta"] = hints.read_meta(self._described["_meta"])

    def _check_single_use(self) -> None:
        if self.single_use is None:
            return
        if self.single_use not in MODES:
            message = f'single_use is "replay" or "reject", not {self.single_use!r}'
        elif self.kind != "tool":
            message = f"single_use is of tools: a {self.kind} is read, and may be read again"
        elif not self._signature.asks:
            message = "single_use is of conversations, and this one has a single round: take elicit or step after *"
        elif not self.max_sheds:
            message = "single_use needs max_sheds=1 or more: a first round that reaches a step ends before it"
        else:
            return
        raise TypeError(message)

    def _read_signature(self, signature: Signature) -> None:
        raise NotImplementedError

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the author's function directly, as a unit test does; a default is what `Field` says, and fresh.

        Raises:
            TypeError: an argument is missing.

        """
        return self.function(*args, **{**self._signature.fill(len(args), kwargs), **kwargs})

    @property
    def key(self) -> str:
        """What a request names it by."""
        return self.name

    def matches(self, key: str) -> dict[str, str] | None:
        """Read the variables out of what a request names; None if it names another handler."""
        return {} if key == self.key else None

    def call(self, params: Mapping[str, Any], round_: Round | None) -> dict[str, Any]:
        """Run one round of a request; a handler that is `alone` needs none."""
        raise NotImplementedError

    def failed(self, reason: str) -> dict[str, Any]:
        """Say that the request cannot be completed.

        Raises:
            HandlerError: there is no result that could say so.

        """
        raise HandlerError(reason)

    def told(self, error: BaseException) -> str | None:
        """Return the text of an exception that is meant for the model; None if it is not."""
        return text_of(error) if isinstance(error, NotAnswered) or is_tool_error(error) else None

    @property
    def label(self) -> str:
        """What errors call it: its kind and its name."""
        return f"{self.kind.partition('_')[0]} {self.name}"

    def crashed(self, crash: Crash) -> dict[str, Any]:
        """Say that the function crashed.

        Raises:
            Crash: there is no result that could say so.

        """
        raise crash

    def describe(self) -> dict[str, Any]:
        """Write its entry in the list of its kind."""
        fields = {**self._described, "description": self.description, **self._fields()}
        return {"name": self.name, **{key: value for key, value in fields.items() if value is not None}}

    def _fields(self) -> dict[str, Any]:
        return {}

    def _run(self, arguments: Mapping[str, Any], round_: Round | None) -> Any:  # noqa: ANN401 - what the function returns
        if self.alone or round_ is None:
            value: Any = self.function(**arguments)  # type: ignore[call-arg]  # read above
        else:
            answers = self._signature.ask(arguments, round_, camel_case=self.camel_case)
            made = self._signature.make(round_)
            # The next round is compared with the arguments as the client sent them, so the function gets copies.
            copies = copy_json(arguments)
            value = self.function(**copies, **answers, **made)  # type: ignore[arg-type, call-arg]  # read above
        if isinstance(value, CoroutineType):
            value = awaited(value, round_)
        if _ends_round(value):
            if not self.asks or round_ is None:
                rule = "{name} returned an InputRequiredResult; to ask, it takes an InputResponses after *"
                raise DeveloperError(rule, name=self.name)
            round_.require(value)
        return value


def text_of(error: BaseException) -> str:
    """Return the text of an exception, or its type where it has none."""
    return str(error) or type(error).__name__


def is_tool_error(error: BaseException) -> bool:
    """Tell a ToolError: ours, or that of the package `mcp` or `fastmcp`, which a server that was ported raises."""
    return isinstance(error, ToolError) or any(
        kind.__name__ == "ToolError" and kind.__module__.partition(".")[0] in SDKS for kind in type(error).__mro__
    )


def awaited(value: Coroutine[Any, Any, Any], round_: Round | None = None) -> Any:  # noqa: ANN401 - what the function returns
    """Run what an async function of the author's returned, in the event loop of this process."""
    from mcp_functions.handlers import event_loop  # noqa: PLC0415 - a function written with def never pays for asyncio

    if round_ is None:
        return event_loop.run(value)
    from mcp_functions.rounds.round import MARGIN_SECONDS  # noqa: PLC0415 - a handler that is alone has no round
    from mcp_functions.rounds.steps import to_its_end  # noqa: PLC0415

    # A step may be running in a thread: as any other it is finished and recorded first.
    left = round_.deadline - round_.now() - MARGIN_SECONDS
    return event_loop.run(to_its_end(value, round_), thread_seconds=left)


def _ends_round(value: object) -> bool:
    low_level = sys.modules.get("mcp_functions.rounds.input_requests")  # who returns one has imported it
    return low_level is not None and isinstance(value, low_level.InputRequiredResult)


def _check_function(function: object) -> None:
    if not isinstance(function, FunctionType):
        message = f"{function!r}: a handler is a function, written with def"
        raise TypeError(message)
