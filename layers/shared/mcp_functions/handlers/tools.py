"""A tool: a function that a model calls, as in `@tool def add(a: int, b: int) -> int`.

The signature becomes the schemas of the tool's entry: `inputSchema` from the parameters before `*`, and `outputSchema`
from the return annotation. A call's arguments are checked by the first, and the returned value by the second.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp_functions.handlers import return_types
from mcp_functions.handlers.base import FunctionHandler, P, R, read_errors, to_seconds
from mcp_functions.protocol import header_parameters, results
from mcp_functions.protocol.errors import DeveloperError
from mcp_functions.schemas import arguments

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
    """A function that a model calls.

    Attributes:
        task: whether a call may, or must, become a task; or a function of the arguments that decides it.
        task_ttl: seconds for which a task is kept, from its creation.
    """

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
        """Read the function and the options, which `decorators.tool` explains."""
        super().__init__(function, **options)
        self.task: Any = task
        self.task_ttl = to_seconds(task_ttl)
        self._check_task()
        self.single_use = single_use
        self._check_single_use()
        self.errors = read_errors(errors)
        # A host shows one app for a tool: its author's own, or the form of this toolkit for its questions.
        self.form = form and not app
        if requires or ask_in_words or app or visibility:
            from mcp_functions.apps import tool_options  # noqa: PLC0415 - few tools have these options

            self.requires = tool_options.read_requires(requires)
            self.ask_in_words = tool_options.read_keys(ask_in_words)
            self.is_app_only = tool_options.is_app_only(visibility)
            ui = tool_options.read_app(app, visibility)
            if ui:
                meta = self._entry["_meta"] or {}  # None if the author gave no `meta`
                self._entry["_meta"] = {**meta, **ui}
        self._read_arguments(input_schema)
        self._read_output(output_schema)
        if annotations is not None:
            from mcp_functions.protocol import hints  # noqa: PLC0415 - many tools have none

            self._entry["annotations"] = hints.read_annotations(annotations, hints.TOOL)

    def _check_task(self) -> None:
        if self.task not in (None, *TASK_SUPPORT) and not callable(self.task):
            message = 'task is "allowed", "required" or None, or a function of the arguments that returns one of them'
            raise TypeError(message)
        if self.task_ttl < 1:
            message = "task_ttl is a timedelta or seconds, 1 or more"
            raise TypeError(message)

    def _check_single_use(self) -> None:
        if self.single_use is None:
            return
        if self.single_use not in SINGLE_USE:
            message = f'single_use is "replay" or "reject", not {self.single_use!r}'
        elif not self.needs_state:
            message = "single_use needs several rounds: add an `elicit` or `step` parameter after *"
        elif self.max_sheds == 0:
            message = "single_use needs max_sheds=1 or more: a first round that reaches a step ends before it"
        else:
            return
        raise TypeError(message)

    def _read_arguments(self, input_schema: Mapping[str, Any] | None) -> None:
        """Read the types of the arguments, and describe them to clients."""
        parameters = self._signature.client_parameters
        accepted: Arguments | RawArguments
        if input_schema is None:
            accepted = arguments.read_arguments(parameters, self._signature.types, camel_case=self.camel_case)
        else:
            accepted = arguments.read_raw_arguments(parameters, input_schema)
        self._arguments = accepted
        self._entry["inputSchema"] = accepted.schema
        self.header_arguments = header_parameters.find(accepted.schema)

    def _read_output(self, output_schema: Mapping[str, Any] | None) -> None:
        """Read the type of the structured content, if the tool promises any, and describe it to clients."""
        annotation = self._signature.returns
        self._returns_content_list = return_types.returns_content_list(annotation)
        if output_schema is None:
            self._output = return_types.read_structured_type(annotation)
        else:
            self._output = _read_output_schema(output_schema)
        if self._output:
            self._entry["outputSchema"] = self._output.schema

    def bind(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Read the arguments of a `tools/call`. The model reads why an argument does not fit."""
        return self._arguments.bind(params.get("arguments") or {})

    def result(self, value: object, _params: Mapping[str, Any]) -> dict[str, Any]:
        """Write a CallToolResult, and check that the value has the type that the signature promises."""
        output = self._output
        result = results.call_tool_result(value, promised=output is not None, lists=self._returns_content_list)
        if output and not result.get("isError"):
            self._check_output(output, result)
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


def _read_output_schema(schema: Mapping[str, Any]) -> JsonType:
    """Read the schema that an author wrote for structured content (server/tools, "Output Schema").

    Raises:
        TypeError: the schema may not be published.
    """
    from mcp_functions.schemas import validation  # noqa: PLC0415 - few tools have a schema of their own

    if not isinstance(schema, dict):
        message = "output_schema is a JSON Schema, a dict"
        raise TypeError(message)
    return validation.read_schema(schema)
