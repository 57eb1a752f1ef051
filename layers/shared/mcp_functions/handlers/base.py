"""The base classes of what a client can call: `Handler`, and `FunctionHandler` for a function of the author.

A call may take several requests, and a round is one of them:

    a round asks       it ends with a question for the user; the client repeats its request with the answer
    a round is shed    it ends without a question, because its time is up; the client just repeats its request
    the next round     runs the function again from its first line, with all that the rounds before it recorded
"""

from __future__ import annotations

import re
from functools import update_wrapper
from types import CoroutineType, FunctionType
from typing import TYPE_CHECKING, Any, Generic, Literal, ParamSpec, TypeAlias, TypeVar

from mcp_functions.handlers import signatures
from mcp_functions.handlers.return_types import is_input_required
from mcp_functions.protocol.errors import DeveloperError, HandlerError
from mcp_functions.protocol.scopes import SCOPE
from mcp_functions.schemas.parameters import docstring

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from contextlib import AbstractContextManager
    from datetime import timedelta

    from mcp_functions.handlers.hooks import Call
    from mcp_functions.protocol.header_parameters import HeaderParameters
    from mcp_functions.protocol.wire_types import Icon, Model
    from mcp_functions.rounds.round import Round


P = ParamSpec("P")
R = TypeVar("R")

# server/tools, "Tool names": 1 to 128 of these characters. The header `Mcp-Name` repeats the name.
NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")

# The answer to a repeated request, if each round runs once: the same answer again, or an error.
Mode: TypeAlias = Literal["replay", "reject"]


class Handler(Generic[P, R]):
    """What a client can call: a tool, a prompt or a resource.

    It is a function of the author, or a part of an adopted server, which was written with another library. `describe`
    writes its entry for the lists, and `call` runs one round of a request.

    Every handler sets the attributes that have no value here. A handler that does not need one of the others keeps its
    value. Most of them are for tools; a prompt has them too, so that code which reads them need not know the kind.
    """

    # What it is.
    kind: str  # "tool", "prompt", "resource" or "resource_template"
    name: str  # its name for clients
    key: str  # the value by which a request chooses it: its name, URI or URI template
    function: Callable[P, R]  # the author's function

    # What the lists say about it. `handlers.catalog` reads these.
    server_description: Mapping[str, Any] = {}  # the `instructions` and `serverInfo` of its server
    is_adopted = False  # whether it is a part of an adopted server, which writes its questions itself
    is_app_only = False  # whether only the app of a host may call it, and not the model
    has_completers = False  # whether it completes arguments while a user types them
    logs = False  # whether it can send log messages to the client

    # What a call must bring. `dispatch.dispatcher` checks it before the first line of the function.
    scopes: Sequence[str] = ()  # the scopes that the caller's access token must grant, all of them
    # The arguments that clients repeat in `Mcp-Param-*` headers.
    header_arguments: HeaderParameters = {}  # noqa: RUF012 - never changed

    # How its rounds run. `dispatch.conversations` and `handlers.runner` read these.
    needs_state = False  # whether a round may end before the function does: the next one continues from a sealed state
    max_sheds: int = 2  # how many rounds in a row may be shed; with 2, the third one must ask or return
    single_use: Mode | None = None  # the answer to a repeated request; None if its round simply runs again
    task: object = None  # not None if a call may become a task: the client then polls for the result
    errors: frozenset[type[Exception]] = frozenset()  # exceptions whose text is meant for the model, by exact type

    # How it asks its user. The last three are for a client that cannot show a question itself, because it lacks the
    # capability `elicitation`: `apps` then looks for another way to the user.
    camel_case = False  # whether the names in its arguments and forms are camelCase on the wire
    answer_within: int  # seconds that the user has for one answer
    requires: Sequence[str] = ()  # capabilities of the client: a question to a client without them is error -32021
    may_show_form = False  # whether a host may show the toolkit's form, an app, for the questions
    ask_in_words: Sequence[str] = ()  # keys of the questions that the model may ask, and whose answers it may relay

    @property
    def only_returns(self) -> bool:
        """Whether it can do nothing but return, so that it needs no round."""
        return False

    @property
    def needs_table(self) -> bool:
        """Whether its Lambda needs the table."""
        return bool(self.single_use or self.task)

    def describe(self) -> dict[str, Any]:
        """Write its entry in the list of its kind."""
        raise NotImplementedError

    def call(self, params: Mapping[str, Any], round_: Round | None) -> dict[str, Any]:
        """Run one round of a request; a handler that only returns needs no `Round` object.

        Raises:
            InputRequired: the round ends with a question. It is a signal: `dispatch` writes the result.
            McpError: the request has no result.
        """
        raise NotImplementedError

    def error_result(self, text: str) -> dict[str, Any]:
        """Write the result that reports an error. A prompt or a resource has none: it raises HandlerError."""
        raise HandlerError(text) from None  # the text is all that the client may learn of the author's exception


class FunctionHandler(Handler[P, R]):
    """A handler that runs a function of the author: the base class of tools, prompts and resources.

        @tool
        def add(a: int, b: int) -> int: ...

    `Tool(add)` reads the signature once. `describe()` writes the entry for `tools/list`. `call` runs one round:

        {"arguments": {"a": 2, "b": 3}}     the params of the request
        {"a": 2, "b": 3}                    `bind` reads the arguments of the function
        5                                   `run` calls the function, with the values of its parameters after `*`
        {"structuredContent": 5, …}         `result` writes the returned value as a result

    Each kind of handler has its own `bind` and `result`, and adds fields to the entry.
    """

    asks = False  # whether the function may ask its user; one that has only steps needs a state and never asks
    around: Callable[[Call], AbstractContextManager[object]] | None = None  # the hook of `serve`; None without one

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
        answer_within: int | timedelta = 600,
        max_sheds: int = 2,
        scopes: Sequence[str] = (),
    ) -> None:
        """Read the signature and the docstring of a function, and the options that each decorator takes.

        The function is not called. `decorators.tool` describes the options.
        """
        plain: Any = function
        if not isinstance(function, FunctionType):  # a method, or an object with `__call__`
            from mcp_functions.handlers import callables  # noqa: PLC0415 - most handlers are functions

            plain = callables.to_function(function)
        update_wrapper(self, plain)
        self.function = plain
        self.name = name or plain.__name__
        self.key = self.name
        self.description = description or docstring(plain)
        self.camel_case = camel_case
        self.answer_within = to_seconds(answer_within)
        self.max_sheds = max_sheds
        self.scopes = tuple(scopes)
        self._check_options(title, scopes)
        # The entry in the list of its kind. Each subclass adds fields; `describe` leaves out those that are None.
        self._entry: dict[str, Any] = {
            "name": self.name,
            "title": title,
            "icons": None,
            "_meta": None,
            "description": self.description,
        }
        if icons is not None or meta is not None or tags:
            from mcp_functions.protocol import hints  # noqa: PLC0415 - many handlers have none

            self._entry["icons"] = hints.read_icons(icons)
            self._entry["_meta"] = hints.add_tags(hints.read_meta(meta), tags)
        self._signature = signatures.read(plain, camel_case=camel_case)
        injection = self._signature.injection
        if injection:
            self.needs_state = injection.needs_state
            self.asks = injection.asks
            self.logs = injection.logs

    def _check_options(self, title: object, scopes: Sequence[str]) -> None:
        if not NAME.fullmatch(self.name):
            message = f"the name {self.name!r} must be 1 to 128 of A-Z a-z 0-9 _ - ."
            raise TypeError(message)
        if not isinstance(title, str | None) or not isinstance(self.description, str | None):
            message = "title and description are text"
            raise TypeError(message)
        if self.answer_within < 1 or self.max_sheds < 0:
            message = "answer_within is a timedelta or seconds, 1 or more; max_sheds is 0 or more"
            raise TypeError(message)
        if isinstance(scopes, str) or not all(re.fullmatch(SCOPE, scope) for scope in scopes):
            message = 'scopes is a list of words without blanks or quotes: scopes=["work:write"]'
            raise TypeError(message)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the author's function directly, as a unit test does.

        For an argument that is left out, Python would take the value after `=`. That may be a `Field`, or a value that
        a call changes: for these, `make_default` makes the default.
        """
        for parameter in self._signature.client_parameters[len(args) :]:
            if parameter.name in kwargs:
                continue
            if parameter.required:
                message = f"missing required argument: {parameter.name!r}"
                raise TypeError(message)
            if parameter.make_default:
                kwargs[parameter.name] = parameter.make_default()
        return self.function(*args, **kwargs)

    @property
    def only_returns(self) -> bool:
        """Whether the function takes nothing after `*` and has no hook, so that a call is one request."""
        return self._signature.injection is None and not self.task and self.around is None

    def describe(self) -> dict[str, Any]:
        """Write its entry in the list of its kind, without the fields that are None."""
        return {field: value for field, value in self._entry.items() if value is not None}

    def call(self, params: Mapping[str, Any], round_: Round | None) -> dict[str, Any]:
        """Run one round of a request.

        Raises:
            InputRequired: the round ends with a question.
            McpError: an argument of a prompt or resource does not fit.
            DeveloperError: the function broke a rule, or returned a value of the wrong type.
        """
        arguments = self.bind(params)
        if self.around and round_:  # a handler with a hook always gets a round
            from mcp_functions.handlers import hooks  # noqa: PLC0415 - imported at init, where a function has a hook

            value = hooks.run_inside(self, arguments, round_)
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
        """Call the author's function, and return its value; it may end the round with questions.

        Args:
            arguments: the arguments before `*`.
            round_: the current round, for the values of the parameters after `*`; None without such parameters.
        """
        function: Callable[..., object] = self.function
        injection = self._signature.injection
        if injection and round_:
            arguments = injection.inject(arguments, round_)
        value = function(**arguments)
        if isinstance(value, CoroutineType):
            from mcp_functions.handlers import event_loop  # noqa: PLC0415 - a plain function never pays for asyncio

            value = event_loop.run(value, round_)
        if is_input_required(value):
            if not self.needs_state or round_ is None:
                rule = "{name} returned an InputRequiredResult; to ask, it takes an InputResponses after *"
                raise DeveloperError(rule, name=self.name)
            value.end_round(round_)  # raises InputRequired
        return value

    def require_declared_answers(self, params: Mapping[str, Any], round_: Round) -> None:
        """Ask the questions that the signature declares; raise InputRequired if an answer is missing."""
        arguments = self.bind(params)  # also if nothing is declared, because wrong arguments begin no task
        if self._signature.injection:
            self._signature.injection.ask_questions(arguments, round_)


def to_seconds(duration: int | timedelta) -> int:
    """Return whole seconds."""
    return duration if isinstance(duration, int) else int(duration.total_seconds())
