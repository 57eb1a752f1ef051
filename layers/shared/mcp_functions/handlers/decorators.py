"""The three decorators: `@tool`, `@prompt`, `@resource("uri")`.

    @tool(title="Add two numbers")
    def add(a: int, b: int) -> int: ...

    handler = serve(add)      # `add` is now a Tool, of which `serve` makes a Lambda function
    assert add(2, 3) == 5     # a test calls it like the function

A wrong signature or option raises a TypeError while the module loads. Its text begins with the file and the line.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, overload

from mcp_functions.handlers.base import require
from mcp_functions.protocol.errors import DeveloperError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Unpack

    from mcp_functions.handlers.base import P, R
    from mcp_functions.handlers.function_handler import HandlerOptions
    from mcp_functions.handlers.prompts import Prompt
    from mcp_functions.handlers.resources import Resource, ResourceOptions
    from mcp_functions.handlers.tools import Tool, ToolOptions

T = TypeVar("T")


@overload
def tool(function: Callable[P, R], /) -> Tool[P, R]: ...
@overload
def tool(**options: Unpack[ToolOptions]) -> Callable[[Callable[P, R]], Tool[P, R]]: ...
def tool(function: Callable[P, R] | None = None, /, **options: Any) -> Any:
    """Make a function a tool (server/tools).

    Args:
        function: what the model calls. Its docstring becomes the description, and its parameters before `*` become the
            input schema. It may be a method of an object, or a callable object.
        options:
            - `name`: its name for clients; without it, the function's.
            - `title`: its name for people.
            - `description`: what it does, for the model; without it, the docstring.
            - `annotations`: hints about its effects, as in {"readOnlyHint": True}.
            - `icons`: its icons.
            - `meta`: the `_meta` of its entry.
            - `tags`: words that clients may filter by. Their place in `_meta` is that of FastMCP.
            - `input_schema`: a JSON Schema, for a function with one parameter that takes all arguments.
            - `output_schema`: a JSON Schema of the structured content; without it, the return annotation's.
            - `camel_case`: if true, the names of parameters and of forms are in camelCase on the wire.
            - `answer_within`: the time that the user has for one answer, as a timedelta or seconds.
            - `max_sheds`: how often in a row the client repeats its request because the time was up before the function
              could ask or finish. With 2, the call fails if the third request is too short as well.
            - `scopes`: the scopes that a caller's access token must grant, all of them.
            - `hide_without_scopes`: if true, callers whose token lacks these scopes do not see the tool: its name is
              unknown to them. Without it they see the tool, and a call tells their client which scopes to ask for.
            - `task`: "allowed" if a call may become a task, "required" if it must; or a function of the arguments that
              returns one of them, or None.
            - `task_ttl`: how long a task is kept, as a timedelta or seconds.
            - `single_use`: each request of a call runs the function once. If the client sends it again, it gets the
              same answer with "replay", and an error with "reject". It needs the table (MCP_TABLE), as `task` does.
            - `requires`: the capabilities that a client must have for the tool's questions, as in ["elicitation"]. A
              client without one of them gets error -32021 instead of a question.
            - `ask_in_words`: keys of the questions that the model may ask in the chat, and whose answers it may send,
              if the client cannot show questions.
            - `form`: whether an app (MCP Apps) may show the questions, if the client cannot. The app gets the result of
              the call, so it is false for a tool whose result the model needs in the same call.
            - `app`: the URI of the author's own app, a resource like "ui://shop/cart".
            - `visibility`: ["app"] if only the app may call the tool, and not the model.
            - `errors`: exceptions whose text the model may read; their subclasses are not included. For any other
              exception, the model reads only that the tool failed, and the log says more.

    Raises:
        TypeError: the signature or an option is wrong; the message says why.
    """
    from mcp_functions.handlers.tools import Tool

    if function is None:  # `@tool(…)`: Python calls what this returns with the function
        return partial(_make, "@tool", Tool, options)
    return _make("@tool", Tool, options, function)


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
    from mcp_functions.handlers.prompts import Prompt

    if function is None:
        return partial(_make, "@prompt", Prompt, options)
    return _make("@prompt", Prompt, options, function)


def resource(uri: str, **options: Unpack[ResourceOptions]) -> Callable[[Callable[P, R]], Resource[P, R]]:
    """Make a function a resource, or a template of resources if `uri` has variables like `{name}` (server/resources).

    Args:
        uri: the URI or URI template; its variables are the function's parameters before `*`.
        options: the same as for `prompt`, and:
            `mime_type`: the media type of its contents.
            `size`: the number of bytes, if it is known; a template has none.
            `annotations`: hints about who should use it.
            `ttl_ms`: milliseconds for which a client may cache the contents.
            `cache_scope`: "private", or "public" if every caller reads the same.

    Raises:
        TypeError: the signature or an option is wrong; the message says why.
    """
    require(isinstance(uri, str), '@resource needs its URI: @resource("config://app")')
    from mcp_functions.handlers.resources import Resource

    def decorate(function: Callable[P, R]) -> Resource[P, R]:
        return _make("@resource", Resource, {"uri": uri, **options}, function)

    return decorate


def _make(
    decorator: str, handler_class: Callable[..., T], options: Mapping[str, Any], function: Callable[..., Any]
) -> T:
    """Make a handler. A TypeError about its signature or an option begins with the function's file, line and name."""
    try:
        return handler_class(function, **options)
    except (TypeError, ValueError, NameError, DeveloperError) as error:
        # For an unknown option, Python's text names the constructor. An author knows only the decorator.
        reason = str(error).replace("FunctionHandler.__init__()", decorator)
        raise TypeError(f"{_place(function)}: {reason}") from error


def _place(function: Callable[..., Any]) -> str:
    """Return the file, the line and the name of a function."""
    written: Any = getattr(function, "__wrapped__", function)  # without other decorators
    if not hasattr(written, "__code__"):  # it is no function: a class, for example
        return repr(function)
    code = written.__code__
    return f"{code.co_filename}:{code.co_firstlineno}: {function.__name__}()"
