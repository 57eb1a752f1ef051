"""A tool: a function that a model calls, as in `@tool def add(a: int, b: int) -> int`.

The signature becomes the schemas of the tool's entry: `inputSchema` from the parameters before `*`, and `outputSchema`
from the return annotation. A call's arguments are checked by the first, and the returned value by the second.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp_functions.handlers.base import Handler, P, R, read_errors, to_seconds
from mcp_functions.handlers.return_types import returns_content_lists
from mcp_functions.protocol import header_parameters, results
from mcp_functions.protocol.errors import DeveloperError
from mcp_functions.schemas import arguments

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import timedelta
    from typing import Literal, TypeAlias

    from mcp_functions.handlers.base import HandlerOptions, Mode
    from mcp_functions.protocol.wire_types import Model, ToolAnnotations
    from mcp_functions.schemas.arguments import Arguments, RawArguments
    from mcp_functions.schemas.json_types import JsonType

    TaskSupport: TypeAlias = "Literal['allowed', 'required'] | None"

    class ToolOptions(HandlerOptions, total=False):
        """The options of `@tool`."""

        annotations: ToolAnnotations | Model | None
        input_schema: Mapping[str, Any] | None
        output_schema: Mapping[str, Any] | None
        task: TaskSupport | Callable[..., TaskSupport]
        task_ttl: int | timedelta
        single_use: Mode | None
        errors: Sequence[type[Exception]]
        requires: Sequence[str]
        ask_in_words: Sequence[str]
        app: str
        form: bool
        visibility: Sequence[str]


TASK_SUPPORT = ("allowed", "required")  # whether a call may, or must, become a task: a client then polls for its result
SINGLE_USE = ("replay", "reject")  # the answer to a repeated request: the same result again, or an error


class Tool(Handler[P, R]):
    """A function that a model calls.

    Attributes:
        task: whether a call may, or must, become a task; or a function of the arguments that decides it.
        task_ttl: seconds for which a task is kept, from its creation.
    """

    kind = "tool"

    def __init__(self, function: Callable[P, R], options: ToolOptions) -> None:
        """Read the function and the options of `@tool`.

        Each option is removed from the dict when it is read: `decorators` refuses the options that are left.
        """
        super().__init__(function, options)  # it also reads whether the function asks, which the checks need

        # Read all options.
        self.task: Any = options.pop("task", None)
        self.task_ttl = to_seconds(options.pop("task_ttl", 24 * 3600))
        self.single_use = options.pop("single_use", None)
        self.errors = read_errors(options.pop("errors", ()))
        self.requires = options.pop("requires", ())
        self.ask_in_words = options.pop("ask_in_words", ())
        self.app = options.pop("app", "")
        # A host shows one app for a tool: its author's own, or the form of this toolkit for its questions.
        self.form = options.pop("form", True) and not self.app
        visibility = options.pop("visibility", ())
        input_schema = options.pop("input_schema", None)
        output_schema = options.pop("output_schema", None)
        annotations = options.pop("annotations", None)

        # Check them. Few tools have the options of `apps`, so its module is imported only for those.
        self._check_task()
        self._check_single_use()
        if self.requires or self.ask_in_words:
            self._check_asking()
        if self.app or visibility:
            self._read_app(visibility)

        # Read the types of the arguments and of the result, and describe them to clients.
        self._accepts = self._read_arguments(input_schema)
        self._entry["inputSchema"] = self._accepts.schema
        self._output = self._signature.output
        if output_schema is not None:
            self._output = _read_output(output_schema)
        if self._output:
            self._entry["outputSchema"] = self._output.schema
        self._read_annotations(annotations)
        self.header_arguments = header_parameters.find(self._accepts.schema)
        self._content_lists = returns_content_lists(self._signature.hints.get("return"))

    def _check_asking(self) -> None:
        """Check how the tool asks where a client has no elicitation."""
        from mcp_functions.apps import tool_options  # noqa: PLC0415 - few tools have these options

        self.requires = tool_options.read_requires(self.requires)
        self.ask_in_words = tool_options.read_keys(self.ask_in_words)

    def _read_app(self, visibility: Sequence[str]) -> None:
        """Read the author's own app and who may call the tool, and add both to the `_meta` of its entry."""
        from mcp_functions.apps import tool_options  # noqa: PLC0415 - few tools have these options

        ui = tool_options.read_app(self.app, visibility)
        self.is_app_only = tool_options.is_app_only(visibility)
        meta = self._entry["_meta"] or {}  # None if the author gave no `meta`
        self._entry["_meta"] = {**meta, **ui}

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

    def _read_arguments(self, input_schema: Mapping[str, Any] | None) -> Arguments | RawArguments:
        signature = self._signature
        if input_schema is None:
            return arguments.read_arguments(signature.sent, signature.hints, camel_case=self.camel_case)
        return arguments.read_raw_arguments(signature.sent, input_schema)

    def bind(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Read the arguments of a `tools/call`. The model reads why an argument does not fit."""
        return self._accepts.bind(params.get("arguments") or {})

    def result(self, value: object, _params: Mapping[str, Any]) -> dict[str, Any]:
        """Write a CallToolResult, and check that the value has the type that the signature promises."""
        output = self._output
        result = results.call_tool_result(value, promised=output is not None, lists=self._content_lists)
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


def _read_output(schema: Mapping[str, Any]) -> JsonType:
    """Read the schema that an author wrote for structured content (server/tools, "Output Schema").

    Raises:
        TypeError: the schema may not be published.
    """
    from mcp_functions.schemas import validation  # noqa: PLC0415 - few tools have a schema of their own

    if not isinstance(schema, dict):
        message = "output_schema is a JSON Schema, a dict"
        raise TypeError(message)
    return validation.read_schema(schema)
