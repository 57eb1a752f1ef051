"""What a client can call: a tool, a prompt or a resource.

`FunctionHandler` runs an author's function, and `AdoptedHandler` passes requests to a server of another library.

A handler may ask its user in the middle of its work. Its call then takes several requests, and each is a round. The
result of a round may be a question. With the answer, the client also sends back a sealed (encrypted) state, which has
the earlier answers, and the handler begins anew.
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Generic, Literal, ParamSpec, TypeAlias, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import timedelta
    from typing import Self

    from mcp_functions.handlers.hooks import Hook
    from mcp_functions.protocol.catalog_types import Server
    from mcp_functions.protocol.messages import Request
    from mcp_functions.protocol.wire_types import ListEntry, Params, ResultObject
    from mcp_functions.rounds.round import Round

# What a client gets if it sends the request of a round a second time: "replay", the same result again; or an error.
RepeatPolicy: TypeAlias = Literal["replay", "reject"]
# Whether a call may or must become a task: the client then gets a task id at once, and polls for the result.
TaskSupport: TypeAlias = Literal["allowed", "required"]

P = ParamSpec("P")
R = TypeVar("R")


class Handler(Generic[P, R]):
    """The base class of all tools, prompts and resources, with what the rest of the toolkit reads of them."""

    kind: str  # "tool", "prompt", "resource" or "resource_template"
    name: str  # its name for clients
    key: str  # what a request names it by: its name, its URI or its URI template
    scopes: Sequence[str] = ()  # the OAuth scopes that the caller's access token must grant, all
    hide_without_scopes = False  # whether callers without these scopes see no such name
    restricted_by = ""  # the option of an adopted server that lets in only callers with a token
    camel_case = False  # whether the names in its arguments and forms are camelCase on the wire
    server_description: Server  # the `instructions` and `serverInfo` of its server
    has_completers = False  # whether it completes arguments while a user types them
    logs = False  # whether it can send log messages to the client
    hook: Hook | None = None  # runs around its function, `serve(around=…)`
    passes_on = False  # whether an adopted server answers its completions and the methods below
    extension_methods: Sequence[str] = ()  # of an adopted server, as "skills/list"

    # About calls of several rounds:
    needs_state = False  # whether a call may take more than one round
    answer_within: int  # seconds that the user has for one answer
    max_sheds: int  # how many rounds in a row may end because their time is up

    # Only tools have these options.
    header_arguments: Mapping[str, tuple[str, ...]] = {}  # that `Mcp-Param-*` headers repeat
    errors: frozenset[type[Exception]] = frozenset()  # whose text the model reads; no subclasses
    single_use: RepeatPolicy | None = None  # None: a repeated request runs the round again
    task: TaskSupport | Callable[..., TaskSupport | None] | None = None
    requires: Sequence[str] = ()  # a client without these capabilities gets error -32021

    # Only tools that ask have these. They are for clients that cannot show questions.
    has_answer_tool = False  # whether such a client gets a second tool, which takes the answers
    may_show_form = False  # whether an app (MCP Apps) may show the questions as a form
    ask_in_words: Sequence[str] = ()  # the keys of questions that the model may ask in the chat
    is_app_only = False  # whether only an app may call the tool, and not the model

    def with_options(self, server_description: Server, errors: frozenset[type[Exception]], hook: Hook | None) -> Self:
        """Return a copy with the options of `serve`. Another `serve` may take the same handler with other options.

        The description replaces members of the handler's own, and the errors are added to those of a tool.
        """
        served = copy(self)
        served.server_description = {**self.server_description, **server_description}
        served.hook = hook
        if self.kind == "tool":
            served.errors = self.errors | errors
        return served

    @property
    def needs_round(self) -> bool:
        """Whether a call needs a `Round`. A function that only takes arguments and returns a value does not."""
        return True

    @property
    def needs_table(self) -> bool:
        """Whether its Lambda needs the DynamoDB table, which records rounds that ran, and tasks."""
        return bool(self.single_use or self.task)

    def describe(self) -> ListEntry:
        """Write its entry in the list of its kind."""
        raise NotImplementedError

    def call(self, params: Params, round_: Round | None) -> ResultObject:
        """Run one round, and return the result of its request; `round_` is None if it needs none (`needs_round`).

        Raises:
            InputRequired: the round ends with a question. `runner.run_round` catches it, and `dispatch` writes the
                result.
            McpError: the request has no result: an argument does not fit, or the function broke a rule.
        """
        raise NotImplementedError

    def pass_on(self, request: Request) -> ResultObject:
        """Return the result of another request than a call, if the handler `passes_on` these; or raise an McpError."""
        raise NotImplementedError


def to_seconds(duration: int | timedelta) -> int:
    """Return whole seconds."""
    return duration if isinstance(duration, int) else int(duration.total_seconds())
