"""What a client can call: `Handler` is the base class, and a `FunctionHandler` runs an author's function.

A function may ask its user in the middle of its work. Its call then takes several requests, and each is a round. The
result of a round may be a question. With the answer, the client also sends back a sealed (encrypted) state, which has
the earlier answers, and the function runs again from its first line.
"""

from __future__ import annotations

import re
from functools import partial, update_wrapper
from types import CoroutineType, FunctionType
from typing import TYPE_CHECKING, Any, Generic, Literal, ParamSpec, TypeAlias, TypeVar

from mcp_functions.handlers import signatures
from mcp_functions.handlers.return_types import is_input_required
from mcp_functions.protocol.errors import DeveloperError
from mcp_functions.protocol.scopes import SCOPE
from mcp_functions.schemas.parameters import docstring

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from datetime import timedelta
    from typing import TypedDict

    from mcp_functions.handlers.hooks import Hook
    from mcp_functions.protocol.wire_types import Icon, Model
    from mcp_functions.rounds.round import Round

    class HandlerOptions(TypedDict, total=False):
        """The options that every decorator takes, for type checkers; the constructor has their defaults."""

        name: str | None
        title: str | None
        description: str | None
        icons: Sequence[Icon | Model] | None
        meta: Mapping[str, Any] | None
        tags: Collection[str]
        camel_case: bool
        answer_within: int | timedelta
        max_sheds: int
        scopes: Sequence[str]


# What a client gets if it sends the request of a round a second time: "replay", the same result again; or an error.
RepeatPolicy: TypeAlias = Literal["replay", "reject"]
# Whether a call may or must become a task: the client then gets a task id at once, and polls for the result.
TaskSupport: TypeAlias = Literal["allowed", "required"]

P = ParamSpec("P")
R = TypeVar("R")


class Handler(Generic[P, R]):
    """A tool, a prompt or a resource: a function of the author, or a part of another library's server (`adopt`)."""

    kind: str  # "tool", "prompt", "resource" or "resource_template"
    name: str  # its name for clients
    key: str  # what a request names it by: its name, its URI or its URI template
    scopes: Sequence[str] = ()  # the OAuth scopes that the caller's access token must grant, all of them
    camel_case = False  # whether the names in its arguments and forms are camelCase on the wire
    server_description: Mapping[str, Any] = {}  # the `instructions` and `serverInfo` of its server
    has_completers = False  # whether it completes arguments while a user types them
    logs = False  # whether it can send log messages to the client

    # About calls of several rounds:
    needs_state = False  # whether a call may take more than one round
    answer_within: int  # seconds that the user has for one answer
    max_sheds: int  # how many rounds in a row may end because their time is up, and not with a question

    # Only tools have these options.
    header_arguments: Mapping[str, tuple[str, ...]] = {}  # the arguments that `Mcp-Param-*` headers repeat, by header
    errors: frozenset[type[Exception]] = frozenset()  # exceptions whose text the model reads; no subclasses of these
    single_use: RepeatPolicy | None = None  # what a repeated request gets; None if it runs the round again
    task: TaskSupport | Callable[..., TaskSupport | None] | None = None  # whether a call may or must become a task
    may_show_form = False  # whether an app (MCP Apps) may show the questions as a form
    ask_in_words: Sequence[str] = ()  # the keys of the questions that the model may ask in the chat
    requires: Sequence[str] = ()  # the call of a client without these capabilities ends with error -32021

    @property
    def needs_round(self) -> bool:
        """Whether a call needs a `Round`. A function that only takes arguments and returns a value does not."""
        return True

    @property
    def needs_table(self) -> bool:
        """Whether its Lambda needs the DynamoDB table, which records rounds that ran, and tasks."""
        return bool(self.single_use or self.task)

    def describe(self) -> dict[str, Any]:
        """Write its entry in the list of its kind."""
        raise NotImplementedError

    def name_sets(self) -> Collection[str]:
        """Return those sets of the catalog that its name is in: see `catalog.NAME_SETS`."""
        return ()

    def call(self, params: Mapping[str, Any], round_: Round | None) -> dict[str, Any]:
        """Run one round, and return the result of its request; `round_` is None if it needs none (`needs_round`).

        Raises:
            InputRequired: the round ends with a question. `dispatch` catches it, and writes the question as the result.
            McpError: the request has no result: an argument does not fit, or the function broke a rule.
        """
        raise NotImplementedError


class FunctionHandler(Handler[P, R]):
    """A handler that runs a function of the author: the base class of tools, prompts and resources.

        @tool
        def add(a: int, b: int) -> int: ...

    `Tool(add)` reads the signature once. `describe()` writes the entry for `tools/list`. `call` runs one round:

        {"arguments": {"a": 2, "b": 3}}     the params of the request
        {"a": 2, "b": 3}                    `bind` reads the arguments of the function
        5                                   `run` calls the function, with the values of its parameters after `*`
        {"structuredContent": 5, …}         `result` writes the returned value as a result

    Each kind of handler has its own `bind` and `result`, and its own fields of the entry (`describe_kind`).
    """

    def __init__(  # noqa: PLR0913 - each is an option of the decorators
        self,
        function: Callable[P, R],
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        icons: Sequence[Icon | Model] | None = None,
        meta: Mapping[str, Any] | None = None,
        tags: Collection[str] = (),
        camel_case: bool = False,
        answer_within: int | timedelta = 600,  # for one answer of the user, in seconds
        max_sheds: int = 2,  # rounds in a row that may run out of time before the function asks or returns
        scopes: Sequence[str] = (),
    ) -> None:
        """Read a function's signature and docstring, and its options, which `decorators.tool` describes.

        Raises:
            TypeError: the signature or an option is wrong.
        """
        plain = _to_plain_function(function)
        update_wrapper(self, plain)  # Python's own tools find the name and the docstring of the function
        self.function: Callable[P, R] = plain
        self.name = self.key = name or plain.__name__
        self.title = title
        self.description = description or docstring(plain)
        self.camel_case = camel_case
        self.answer_within = to_seconds(answer_within)
        self.max_sheds = max_sheds
        self.scopes = tuple(scopes)
        self._check_options(scopes)
        self._icons, self._meta = _read_hints(icons, meta, tags)
        self._signature = signatures.read(plain, camel_case=camel_case)
        injection = self._signature.injection  # None if the function has no parameters after `*`
        self.asks = injection is not None and injection.asks  # whether the function may ask its user
        self.needs_state = injection is not None and injection.needs_state  # true also for steps without a question
        self.logs = injection is not None and injection.logs
        self.around: Hook | None = None  # the hook that runs around the function: `serve(around=…)` sets it

    def _check_options(self, scopes: object) -> None:
        # server/tools, "Tool names": 1 to 128 of these characters. The header `Mcp-Name` repeats the name.
        if not re.fullmatch(r"[A-Za-z0-9_.-]{1,128}", self.name):
            message = f"the name {self.name!r} must be 1 to 128 of A-Z a-z 0-9 _ - ."
            raise TypeError(message)
        for option, text in (("title", self.title), ("description", self.description)):
            if not isinstance(text, str | None):
                message = f"title and description are text, and this {option} is {text!r}"
                raise TypeError(message)
        if self.answer_within < 1:
            message = "answer_within is a timedelta or seconds, 1 or more"
            raise TypeError(message)
        if self.max_sheds < 0:
            message = "max_sheds is a number of rounds, 0 or more"
            raise TypeError(message)
        if isinstance(scopes, str) or not all(re.fullmatch(SCOPE, scope) for scope in self.scopes):
            message = 'scopes is a list of words without blanks or quotes: scopes=["work:write"]'
            raise TypeError(message)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the author's function directly, as a unit test does."""
        defaults = self._signature.make_defaults(len(args), kwargs)
        function: Callable[..., R] = self.function
        return function(*args, **kwargs, **defaults)

    @property
    def needs_round(self) -> bool:
        """Whether the function has parameters after `*`, tasks or a hook."""
        return bool(self._signature.injection or self.task or self.around)

    def describe(self) -> dict[str, Any]:
        """Write its entry in the list of its kind."""
        entry = {
            "name": self.name,
            "title": self.title,
            "icons": self._icons,
            "_meta": self._meta,
            "description": self.description,
            **self.describe_kind(),
        }
        return {field: value for field, value in entry.items() if value is not None}

    def describe_kind(self) -> dict[str, Any]:
        """Write the fields that only entries of its kind have. `describe` leaves out those that are None."""
        raise NotImplementedError

    def call(self, params: Mapping[str, Any], round_: Round | None) -> dict[str, Any]:
        """Run one round, as the example of this class shows."""
        arguments = self.bind(params)
        if self.around and round_:  # with a hook there is always a round: see `needs_round`
            from mcp_functions.handlers import hooks  # noqa: PLC0415 - `serve` imports it at init, if there is a hook

            call = hooks.describe_call(self.kind, self.name, arguments, round_)
            value = hooks.run_inside(self.around, call, partial(self.run, arguments, round_))
        else:
            value = self.run(arguments, round_)
        return self.result(value, params)

    def bind(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Read the function's arguments from the params of a request."""
        raise NotImplementedError

    def result(self, value: object, params: Mapping[str, Any]) -> dict[str, Any]:
        """Write the value that the function returned as the result of the request."""
        raise NotImplementedError

    def run(self, arguments: Mapping[str, Any], round_: Round | None) -> object:
        """Call the author's function, and return its value.

        Args:
            arguments: the arguments before `*`.
            round_: the current round, for the values of the parameters after `*`; None without such parameters.

        Raises:
            InputRequired: the function asked, and the round ends with its questions.
        """
        function: Callable[..., object] = self.function
        injection = self._signature.injection
        if injection and round_:
            arguments = injection.inject(arguments, round_)
        value = function(**arguments)
        if isinstance(value, CoroutineType):  # the function is async
            from mcp_functions.handlers import event_loop  # noqa: PLC0415 - a plain function needs no asyncio

            # The results of steps that have begun are recorded for the next round.
            value = event_loop.run(value, before_end=round_.wait_for_steps if round_ else None)
        if is_input_required(value):  # the function asks by what it returns, and not by a parameter after `*`
            if not self.needs_state or round_ is None:
                rule = "{name} returned an InputRequiredResult; to ask, it takes an InputResponses after *"
                raise DeveloperError(rule, name=self.name)
            value.end_round(round_)  # raises InputRequired
        return value


def _to_plain_function(function: Callable[..., Any]) -> FunctionType:
    """Return the function itself, or a function that does the same as a method or an object with `__call__`."""
    if isinstance(function, FunctionType):
        return function
    from mcp_functions.handlers import callables  # noqa: PLC0415 - most handlers are functions

    return callables.to_function(function)


def _read_hints(
    icons: object, meta: object, tags: Collection[str]
) -> tuple[list[dict[str, Any]] | None, Mapping[str, Any] | None]:
    """Read the icons, and the `_meta` with the tags; None for each that is left out of the entry."""
    if icons is None and meta is None and not tags:
        return None, None
    from mcp_functions.protocol import hints  # noqa: PLC0415 - many handlers have none of these options

    return hints.read_icons(icons), hints.add_tags(hints.read_meta(meta), tags)


def to_seconds(duration: int | timedelta) -> int:
    """Return whole seconds."""
    return duration if isinstance(duration, int) else int(duration.total_seconds())
