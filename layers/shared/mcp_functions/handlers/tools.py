"""A tool: a function that a model calls, as in `@tool def add(a: int, b: int) -> int`.

The signature becomes the schemas of the tool's entry: `inputSchema` from the parameters before `*`, and `outputSchema`
from the return annotation. A call's arguments are checked by the first, and the returned value by the second.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp_functions.handlers import return_types
from mcp_functions.handlers.base import FunctionHandler, P, R, to_seconds
from mcp_functions.handlers.runner import read_errors
from mcp_functions.protocol import header_parameters, results
from mcp_functions.protocol.errors import DeveloperError
from mcp_functions.schemas.arguments import read_arguments, read_raw_arguments

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import timedelta
    from typing import Literal, TypeAlias, Unpack

    from mcp_functions.handlers.base import Mode
    from mcp_functions.handlers.decorators import HandlerOptions
    from mcp_functions.protocol.wire_types import Model, ToolAnnotations
    from mcp_functions.schemas.arguments import Arguments, RawArguments
    from mcp_functions.schemas.json_types import JsonType

    TaskSupport: TypeAlias = "Literal['allowed', 'required'] | None"


TASK_SUPPORT = ("allowed", "required")  # whether a call may, or must, become a task: a client then polls for its result
DAY_SECONDS = 24 * 3600
SINGLE_USE = ("replay", "reject")  # the answer to a repeated request: the same result again, or an error


class Tool(FunctionHandler[P, R]):
    """A function that a model calls."""

    kind = "tool"

    def __init__(  # noqa: PLR0913 - each is an option of `@tool`
        self,
        function: Callable[P, R],
        *,
        annotations: ToolAnnotations | Model | None = None,
        input_schema: Mapping[str, Any] | None = None,
        output_schema: Mapping[str, Any] | None = None,
        task: TaskSupport | Callable[..., TaskSupport] = None,
        task_ttl: int | timedelta = DAY_SECONDS,
        single_use: Mode | None = None,
        errors: Sequence[type[Exception]] = (),
        requires: Sequence[str] = (),
        ask_in_words: Sequence[str] = (),
        app: str = "",
        form: bool = True,
        visibility: Sequence[str] = (),
        **options: Unpack[HandlerOptions],
    ) -> None:
        """Read the function's signature, and the options of `@tool`, which `decorators.tool` describes."""
        super().__init__(function, **options)
        self.task: Any = task
        self.task_ttl = to_seconds(task_ttl)
        self.single_use = single_use
        self._check_rounds()
        self.errors = read_errors(errors)
        self.may_show_form = form and not app  # a host shows one page for a tool: the author's app, or the form
        if requires or ask_in_words or app or visibility:
            from mcp_functions.apps import tool_options  # noqa: PLC0415 - few tools have these options

            self.requires = tool_options.read_requires(requires)
            self.ask_in_words = tool_options.read_keys(ask_in_words)
            self.is_app_only = bool(visibility) and "model" not in visibility
            self._entry["_meta"] = tool_options.add_app(self._entry["_meta"], app, visibility)
        signature = self._signature
        parameters = signature.client_parameters
        self._arguments: Arguments | RawArguments
        if input_schema is None:
            self._arguments = read_arguments(parameters, signature.types, camel_case=self.camel_case)
        else:
            self._arguments = read_raw_arguments(parameters, input_schema)
        self.header_arguments = header_parameters.find(self._arguments.schema)
        self._returns_content_list = return_types.returns_content_list(signature.returns)
        self._output = _read_output(output_schema, signature.returns)
        self._entry["inputSchema"] = self._arguments.schema
        self._entry["outputSchema"] = self._output.schema if self._output else None
        if annotations is not None:
            from mcp_functions.protocol import hints  # noqa: PLC0415 - many tools have none

            self._entry["annotations"] = hints.read_annotations(annotations, hints.TOOL_ANNOTATIONS)

    def _check_rounds(self) -> None:
        """Check the options about tasks, and about rounds that run once."""
        if self.task not in (None, *TASK_SUPPORT) and not callable(self.task):
            message = 'task is "allowed", "required" or None, or a function of the arguments that returns one of them'
            raise TypeError(message)
        if self.task_ttl < 1:
            message = "task_ttl is a timedelta or seconds, 1 or more"
            raise TypeError(message)
        if self.single_use not in (None, *SINGLE_USE):
            message = f'single_use is "replay" or "reject", not {self.single_use!r}'
            raise TypeError(message)
        if self.single_use and not self.needs_state:
            message = "single_use needs several rounds: add an `elicit` or `step` parameter after *"
            raise TypeError(message)
        if self.single_use and self.max_sheds == 0:
            message = "single_use needs max_sheds=1 or more: the first round must stop, and a second continue"
            raise TypeError(message)

    def bind(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Read the arguments of a `tools/call`. The model reads why an argument does not fit."""
        return self._arguments.bind(params.get("arguments") or {})

    def result(self, value: object, _params: Mapping[str, Any]) -> dict[str, Any]:
        """Write a CallToolResult, and check that the value has the type that the signature promises."""
        is_promised = self._output is not None
        result = results.call_tool_result(
            value, promises_structured=is_promised, promises_list=self._returns_content_list
        )
        if self._output and not result.get("isError"):
            self._check_output(self._output, result)
        return result

    def error_result(self, text: str) -> dict[str, Any]:
        """Write a result that reports an error to the model (server/tools, "Tool execution errors")."""
        return results.tool_error(text)

    def task_support(self, params: Mapping[str, Any]) -> TaskSupport:
        """Decide whether this call may become a task, or must.

        Raises:
            DeveloperError: the author's function returned something else.
        """
        if not callable(self.task):
            support: TaskSupport = self.task
            return support
        support = self.task(**self.bind(params))
        if support not in (None, *TASK_SUPPORT):
            rule = '{name}: task=… returned {decided!r}, and not "allowed", "required" or None'
            raise DeveloperError(rule, name=self.name, decided=support)
        return support

    def _check_output(self, output: JsonType, result: Mapping[str, Any]) -> None:
        """Check the structured content: "servers MUST provide structured results that conform to this schema"."""
        if "structuredContent" not in result:
            rule = "{name} promises structured content in its signature and returned none"
            raise DeveloperError(rule, name=self.name)
        try:
            output.read(result["structuredContent"])
        except ValueError as error:
            rule = "{name} returned something else than its signature promises: it {problem}"
            # The problem in words is enough; the exception of a validator behind it may quote the value.
            raise DeveloperError(rule, name=self.name, problem=error) from None


def _read_output(schema: Mapping[str, Any] | None, returns: object) -> JsonType | None:
    """Read the type of the structured content (server/tools, "Output Schema"); None if the tool promises none.

    Args:
        schema: the schema that the author wrote; None if the type is that of the return annotation.
        returns: the return annotation.

    Raises:
        TypeError: the schema may not be published.
    """
    if schema is None:
        return return_types.read_structured_type(returns)
    from mcp_functions.schemas import validation  # noqa: PLC0415 - few tools have a schema of their own

    if not isinstance(schema, dict):
        message = "output_schema is a JSON Schema, a dict"
        raise TypeError(message)
    return validation.read_schema(schema)
