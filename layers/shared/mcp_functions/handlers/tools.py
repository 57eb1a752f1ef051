"""A tool is a function that a model calls.

    @tool
    def add(a: int, b: int, *, log: Log) -> int: ...

    inputSchema     the JSON Schema of `a` and `b`, the parameters before `*`
    outputSchema    the JSON Schema of `int`, the return annotation

The arguments of a call are read as the `inputSchema` says. What the function returns is written as the `outputSchema`
says.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, get_args

from mcp_functions.handlers import return_types
from mcp_functions.handlers.base import P, R, RepeatPolicy, TaskSupport, require, to_seconds
from mcp_functions.handlers.function_handler import FunctionHandler
from mcp_functions.handlers.runner import read_errors
from mcp_functions.protocol import header_parameters, results
from mcp_functions.protocol.errors import DeveloperError
from mcp_functions.schemas.arguments import read_arguments, read_raw_arguments

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import timedelta
    from typing import Unpack

    from mcp_functions.handlers.function_handler import HandlerOptions
    from mcp_functions.protocol.wire_types import ListEntry, Model, Params, ToolAnnotations
    from mcp_functions.rounds.round import Round
    from mcp_functions.schemas.arguments import Arguments, RawArguments
    from mcp_functions.schemas.json_types import JsonType

    class ToolOptions(HandlerOptions, total=False):
        """The options of `@tool`."""

        annotations: ToolAnnotations | Model | None
        input_schema: Mapping[str, Any] | None
        output_schema: Mapping[str, Any] | None
        task: TaskSupport | Callable[..., TaskSupport | None] | None
        task_ttl: int | timedelta
        single_use: RepeatPolicy | None
        errors: Sequence[type[Exception]]
        requires: Sequence[str]
        ask_in_words: Sequence[str]
        app: str
        form: bool
        visibility: Sequence[str]


TASK_SUPPORT = (None, *get_args(TaskSupport))


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
        task: TaskSupport | Callable[..., TaskSupport | None] | None = None,
        task_ttl: int | timedelta = 24 * 3600,
        single_use: RepeatPolicy | None = None,
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
        self.task = task
        self.task_ttl = to_seconds(task_ttl)
        self._check_task()
        self.single_use = single_use
        self._check_single_use()
        self.errors = read_errors(errors)
        self.is_app_only = bool(visibility) and "model" not in visibility
        self.has_answer_tool = self.needs_state
        self.may_show_form = form and not app  # a host shows only one app for a tool
        if requires or ask_in_words or app or visibility:
            # few tools have these options
            from mcp_functions.handlers import tool_options

            self.requires = tool_options.read_requires(requires)
            self.ask_in_words = tool_options.read_keys(ask_in_words)
            self._entry["_meta"] = tool_options.add_app(self._entry["_meta"], app, visibility)
        self._annotations: dict[str, Any] | None = None
        if annotations is not None:
            # many tools have none
            from mcp_functions.protocol import hints

            self._annotations = hints.read_annotations(annotations, hints.TOOL_ANNOTATIONS)
        parameters = self._signature.client_parameters
        self._arguments: Arguments | RawArguments
        if input_schema is None:
            self._arguments = read_arguments(parameters, camel_case=self.camel_case)
        else:
            self._arguments = read_raw_arguments(parameters, input_schema)
        self.header_arguments = header_parameters.find(self._arguments.schema)
        self._returns_content_list = return_types.returns_content_list(self._signature.returns)
        self._output = _read_output(output_schema, self._signature.returns)
        self._output_schema = self._output.output_schema if self._output else None
        written_as = self._output or return_types.read_plain_type(self._signature.returns)
        self._write = partial(return_types.write_returned, self.name, written_as)

    def _check_task(self) -> None:
        rule = 'task is "allowed", "required" or None, or a function of the arguments that returns one of them'
        require(callable(self.task) or self.task in TASK_SUPPORT, rule)
        require(self.task_ttl >= 1, "task_ttl is a timedelta or seconds, 1 or more")

    def _check_single_use(self) -> None:
        if self.single_use is None:
            return
        is_policy = self.single_use in get_args(RepeatPolicy)
        require(is_policy, f'single_use is "replay" or "reject", not {self.single_use!r}')
        rule = "single_use needs several rounds: add an `elicit` or `step` parameter after *"
        require(self.needs_state, rule)
        # The first request of a call has no state. Its round ends before the first step, and the client gets one.
        rule = "single_use needs max_sheds=1 or more: the first round must stop, and a second continue"
        require(self.max_sheds > 0, rule)

    def describe(self) -> ListEntry:
        """Write its entry of `tools/list`."""
        return self.write_entry(
            inputSchema=self._arguments.schema, outputSchema=self._output_schema, annotations=self._annotations
        )

    def call(self, params: Params, round_: Round | None) -> dict[str, Any]:
        """Answer a `tools/call` with a CallToolResult.

        Raises:
            ToolError: an argument does not fit; its text tells the model why.
            DeveloperError: the value does not have the type of the return annotation.
        """
        returned = self.run(self._read_arguments(params), round_)
        result = results.call_tool_result(
            returned, self._write, promises_structured=bool(self._output), promises_list=self._returns_content_list
        )
        # "Servers MUST provide structured results that conform to this schema" (server/tools, "Output Schema").
        if self._output and "structuredContent" not in result and not result["isError"]:
            rule = "{name} promises structured content in its signature and returned none"
            raise DeveloperError(rule, name=self.name)
        return result

    def _read_arguments(self, params: Params) -> dict[str, Any]:
        return self._arguments.bind(params.get("arguments") or {})

    def task_support(self, params: Params) -> TaskSupport | None:
        """Decide whether a call may or must become a task; None if it may not.

        Raises:
            DeveloperError: the author's function for `task` returned something else.
        """
        decided: TaskSupport | None = self.task(**self._read_arguments(params)) if callable(self.task) else self.task
        if decided not in TASK_SUPPORT:
            rule = '{name}: task=… returned {decided!r}, and not "allowed", "required" or None'
            raise DeveloperError(rule, name=self.name, decided=decided)
        return decided

    def require_declared_answers(self, params: Params, round_: Round) -> None:
        """Ask the questions of the signature before a task begins; raise InputRequired if an answer is missing."""
        # also without questions: wrong arguments begin no task
        arguments = self._read_arguments(params)
        if self._signature.injection:
            self._signature.injection.ask_questions(arguments, round_)


def _read_output(schema: Mapping[str, Any] | None, returns: object) -> JsonType | None:
    """Read the type of the structured content from `output_schema`, or else from the return annotation.

    Raises:
        TypeError: the schema may not be published.
    """
    if schema is None:
        return return_types.read_structured_type(returns)
    # few tools have a schema of their own
    from mcp_functions.schemas import validation

    require(isinstance(schema, dict), "output_schema is a JSON Schema, a dict")
    return validation.read_schema(schema)
