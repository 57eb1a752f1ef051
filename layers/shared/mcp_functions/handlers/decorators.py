"""The three decorators: `@tool`, `@prompt`, `@resource("uri")`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, overload

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import timedelta

    from mcp_functions.handlers.base import Mode
    from mcp_functions.handlers.prompts import Prompt
    from mcp_functions.handlers.resources import CacheScope, Resource
    from mcp_functions.handlers.tools import TaskSupport, Tool
    from mcp_functions.protocol.foreign_types import Model
    from mcp_functions.protocol.wire_types import Annotations, Icon, ToolAnnotations

P = ParamSpec("P")
R = TypeVar("R")


@overload
def tool(function: Callable[P, R], /) -> Tool[P, R]: ...
@overload
def tool(
    *,
    name: str | None = None,
    title: str | None = None,
    description: str | None = None,
    annotations: ToolAnnotations | Model | None = None,
    icons: Sequence[Icon | Model] | None = None,
    meta: Mapping[str, Any] | None = None,
    input_schema: Mapping[str, Any] | None = None,
    camel_case: bool = False,
    answer_within: int | timedelta = 600,
    max_sheds: int = 2,
    scopes: Sequence[str] = (),
    task: TaskSupport | Callable[..., TaskSupport] = None,
    task_ttl: int | timedelta = 86_400,
    single_use: Mode | None = None,
    errors: Sequence[type[Exception]] = (),
) -> Callable[[Callable[P, R]], Tool[P, R]]: ...
def tool(function: Callable[P, R] | None = None, /, **options: Any) -> Any:
    """Make a function a tool (server/tools).

    Args:
        function: the model calls it. Its docstring becomes the description, and its parameters before `*` become the
            input schema.
        options:
            `name`, `title`, `description`, `annotations` (hints), `icons`, `meta`: fields of the tool's entry.
            `input_schema`: a JSON Schema, for a function with one parameter that takes all arguments.
            `camel_case=True`: the names of parameters and of forms are in camelCase on the wire.
            `answer_within`: a timedelta or seconds for one answer.
            `max_sheds`: rounds in a row that may end without a question because the time was up.
            `scopes`: the scopes that a caller's access token must grant, all of them.
            `task`: "allowed" or "required" where a call may or must become a task, or a function of the arguments
            that returns one of them. `task_ttl`: a timedelta or seconds for which a task is kept.
            `single_use`: each round runs once. A repeated request gets the same answer with "replay", and an error
            with "reject". Both need the table (MCP_TABLE).
            `errors`: exceptions whose text is meant for the model, by exact type. Any other exception is logged, and
            the model reads only that the tool failed.

    Raises:
        TypeError: the signature or an option is wrong; the message says why.

    """
    from mcp_functions.handlers.tools import Tool  # noqa: PLC0415 - each kind of handler loads its own

    return Tool(function) if function else lambda decorated: Tool(decorated, **options)


@overload
def prompt(function: Callable[P, R], /) -> Prompt[P, R]: ...
@overload
def prompt(
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
) -> Callable[[Callable[P, R]], Prompt[P, R]]: ...
def prompt(function: Callable[P, R] | None = None, /, **options: Any) -> Any:
    """Make a function a prompt (server/prompts): it returns text, messages, content, or a list of these.

    Args:
        function: writes the prompt.
        options: as for `tool`, without `annotations`, `input_schema`, `single_use` and `errors`.

    Raises:
        TypeError: the signature or an option is wrong; the message says why.

    """
    from mcp_functions.handlers.prompts import Prompt  # noqa: PLC0415

    return Prompt(function) if function else lambda decorated: Prompt(decorated, **options)


def resource(  # noqa: PLR0913 - each is a field of the specification's description
    uri: str,
    *,
    name: str | None = None,
    title: str | None = None,
    description: str | None = None,
    mime_type: str | None = None,
    size: int | None = None,
    annotations: Annotations | Model | None = None,
    icons: Sequence[Icon | Model] | None = None,
    meta: Mapping[str, Any] | None = None,
    camel_case: bool = False,
    answer_within: int | timedelta = 600,
    max_sheds: int = 2,
    scopes: Sequence[str] = (),
    ttl_ms: int = 0,
    cache_scope: CacheScope = "private",
) -> Callable[[Callable[P, R]], Resource[P, R]]:
    """Make a function a resource, or a template of resources if `uri` has variables like `{name}` (server/resources).

    Args:
        uri: the URI or URI template; its variables are the function's parameters before `*`.
        name: its name for programs; by default the function's name.
        title: its name for people.
        description: by default the function's docstring.
        mime_type: the media type of its contents.
        size: its size in bytes, if it is known; a template has none.
        annotations: hints about who should use it.
        icons: icons that a client may show.
        meta: `_meta` of its entry in the list.
        camel_case: whether the names of forms are in camelCase on the wire.
        answer_within: a timedelta or seconds for one answer; days are possible.
        max_sheds: rounds in a row that may end without a question because the time was up.
        scopes: the scopes that a caller's access token must grant, all of them.
        ttl_ms: milliseconds for which a client may cache the contents.
        cache_scope: "private", or "public" where every caller reads the same.

    Raises:
        TypeError: the signature or an option is wrong; the message says why.

    """
    if not isinstance(uri, str):
        message = '@resource needs its URI: @resource("config://app")'
        raise TypeError(message)
    from mcp_functions.handlers.resources import Resource, ResourceTemplate  # noqa: PLC0415

    resource_class = ResourceTemplate if "{" in uri else Resource

    def decorate(function: Callable[P, R]) -> Resource[P, R]:
        return resource_class(
            function,
            uri,
            name=name,
            title=title,
            description=description,
            mime_type=mime_type,
            size=size,
            annotations=annotations,
            icons=icons,
            meta=meta,
            camel_case=camel_case,
            answer_within=answer_within,
            max_sheds=max_sheds,
            scopes=scopes,
            ttl_ms=ttl_ms,
            cache_scope=cache_scope,
        )

    return decorate
