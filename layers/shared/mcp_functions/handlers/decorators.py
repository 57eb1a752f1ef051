"""The three decorators: `@tool`, `@prompt`, `@resource("uri")`.

Each makes a handler of the function below it: an object that `serve` takes, and that a test can call as the function. A
wrong signature or option raises a TypeError while the module loads. Its text begins with the file and the line.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, overload

from mcp_functions.protocol.errors import DeveloperError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from datetime import timedelta
    from typing import TypedDict, Unpack

    from mcp_functions.handlers.base import RepeatPolicy
    from mcp_functions.handlers.prompts import Prompt
    from mcp_functions.handlers.resources import CacheScope, Resource
    from mcp_functions.handlers.tools import TaskSupport, Tool
    from mcp_functions.protocol.wire_types import Annotations, Icon, Model, ToolAnnotations

    # The options and their types. The constructors of the handlers repeat them with defaults, because a type checker
    # cannot read the options of `@tool(…)` from a constructor.

    class HandlerOptions(TypedDict, total=False):
        """The options that every decorator takes."""

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

    class ToolOptions(HandlerOptions, total=False):
        """The options of `@tool`."""

        annotations: ToolAnnotations | Model | None
        input_schema: Mapping[str, Any] | None
        output_schema: Mapping[str, Any] | None
        task: TaskSupport | Callable[..., TaskSupport]
        task_ttl: int | timedelta
        single_use: RepeatPolicy | None
        errors: Sequence[type[Exception]]
        requires: Sequence[str]
        ask_in_words: Sequence[str]
        app: str
        form: bool
        visibility: Sequence[str]

    class ResourceOptions(HandlerOptions, total=False):
        """The options of `@resource`."""

        mime_type: str | None
        size: int | None
        annotations: Annotations | Model | None
        ttl_ms: int
        cache_scope: CacheScope


P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


@overload
def tool(function: Callable[P, R], /) -> Tool[P, R]: ...
@overload
def tool(**options: Unpack[ToolOptions]) -> Callable[[Callable[P, R]], Tool[P, R]]: ...
def tool(function: Callable[P, R] | None = None, /, **options: Any) -> Any:
    """Make a function a tool (server/tools).

    Args:
        function: the model calls it. Its docstring becomes the description, and its parameters before `*` become the
            input schema. It may be a method of an object, or a callable object.
        options:
            `name`: its name for clients; without it, the function's.
            `title`: its name for people.
            `description`: what it does, for the model; without it, the docstring.
            `annotations`: hints about its effects, as in {"readOnlyHint": True}.
            `icons`: its icons.
            `meta`: the `_meta` of its entry.
            `tags`: words that clients may filter by, in its `_meta` as FastMCP writes them.
            `input_schema`: a JSON Schema, for a function with one parameter that takes all arguments.
            `output_schema`: a JSON Schema of the structured content, in the place of the return annotation's.
            `camel_case`: if true, the names of parameters and of forms are in camelCase on the wire.
            `answer_within`: a timedelta or seconds for one answer.
            `max_sheds`: how many requests of a call in a row may be shed. A request is shed when its time is up after
                a `step`: it ends without a result, and the client repeats it. With 2, the third request must ask the
                user or finish, or the call fails.
            `scopes`: the scopes that a caller's access token must grant, all of them.
            `task`: "allowed" or "required" where a call may or must become a task, or a function of the arguments
                that returns one of them.
            `task_ttl`: a timedelta or seconds for which a task is kept.
            `single_use`: each round runs once. A repeated request gets the same answer with "replay", and an error
                with "reject". It needs the table (MCP_TABLE), as `task` does.
            `requires`: the capabilities that a client must have for the tool's questions, as in ["elicitation"]. A
                client that lacks one gets error -32021 in the place of a question.
            `ask_in_words`: keys of the questions that the model may put to the user in words, and whose answers it
                may relay, where a client shows no form.
            `form`: if false, no form of a host asks for this tool, because the model needs the result in the same
                call.
            `app`: the URI of the author's own app, a resource like "ui://shop/cart".
            `visibility`: ["app"] where only the app may call the tool.
            `errors`: exceptions whose text is meant for the model, by exact type. Any other exception is logged, and
                the model reads only that the tool failed.

    Raises:
        TypeError: the signature or an option is wrong; the message says why.
    """
    from mcp_functions.handlers.tools import Tool  # noqa: PLC0415 - each kind of handler loads its own

    decorate = partial(_make, "@tool", Tool, options)
    return decorate(function) if function else decorate


@overload
def prompt(function: Callable[P, R], /) -> Prompt[P, R]: ...
@overload
def prompt(**options: Unpack[HandlerOptions]) -> Callable[[Callable[P, R]], Prompt[P, R]]: ...
def prompt(function: Callable[P, R] | None = None, /, **options: Any) -> Any:
    """Make a function a prompt (server/prompts): it returns text, messages, content, or a list of these.

    Args:
        function: writes the prompt.
        options: the same as for `tool`, without those that only a tool has (`annotations`, `task`, `errors` and so on).

    Raises:
        TypeError: the signature or an option is wrong; the message says why.
    """
    from mcp_functions.handlers.prompts import Prompt  # noqa: PLC0415

    decorate = partial(_make, "@prompt", Prompt, options)
    return decorate(function) if function else decorate


def resource(uri: str, **options: Unpack[ResourceOptions]) -> Callable[[Callable[P, R]], Resource[P, R]]:
    """Make a function a resource, or a template of resources if `uri` has variables like `{name}` (server/resources).

    Args:
        uri: the URI or URI template; its variables are the function's parameters before `*`.
        options: the same as for `prompt`, and:
            `mime_type`: the media type of its contents.
            `size`: in bytes, if it is known; a template has none.
            `annotations`: hints about who should use it.
            `ttl_ms`: milliseconds for which a client may cache the contents.
            `cache_scope`: "private", or "public" where every caller reads the same.

    Raises:
        TypeError: the signature or an option is wrong; the message says why.
    """
    if not isinstance(uri, str):
        message = '@resource needs its URI: @resource("config://app")'
        raise TypeError(message)
    from mcp_functions.handlers.resources import Resource  # noqa: PLC0415

    def decorate(function: Callable[P, R]) -> Resource[P, R]:
        return _make("@resource", Resource, {"uri": uri, **options}, function)

    return decorate


def _make(
    decorator: str, handler_class: Callable[..., T], options: Mapping[str, Any], function: Callable[..., Any]
) -> T:
    """Make a handler. An error in its signature or its options names the function's file, line and name."""
    try:
        return handler_class(function, **options)
    except (TypeError, ValueError, NameError, DeveloperError) as error:
        # Python says which constructor has no such option; an author knows the decorator.
        reason = str(error).replace("FunctionHandler.__init__()", decorator)
        message = f"{_place(function)}: {reason}"
        raise TypeError(message) from error


def _place(function: Callable[..., Any]) -> str:
    """Return the file, the line and the name of a function."""
    written: Any = getattr(function, "__wrapped__", function)  # the author's own, behind other decorators
    if not hasattr(written, "__code__"):
        return repr(function)
    code = written.__code__
    return f"{code.co_filename}:{code.co_firstlineno}: {function.__name__}()"
