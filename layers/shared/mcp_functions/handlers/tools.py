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
from mcp_functions.handlers.base import P, R, RepeatPolicy, TaskSupport, to_seconds
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
    from mcp_functions.protocol.wire_types import ListEntry, Model, Params, ResultObject, ToolAnnotations
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
        self.single_use = single_use
        self._check_task()
        self._check_single_use()
        self.errors = read_errors(errors)
        self.is_app_only = bool(visibility) and "model" not in visibility
        self.has_answer_tool = self.needs_state
        self.may_show_form = form and not app  # a host shows only one app for a tool
        if requires or ask_in_words or app or visibility:
            self._read_rare_options(requires, ask_in_words, app, visibility)
        self._annotations = _read_annotations(annotations)
        self._arguments = self._read_parameters(input_schema)
        self.header_arguments = header_parameters.find(self._arguments.schema)
        returns = self._signature.returns
        self._returns_content_list = return_types.returns_content_list(returns)
        self._output = _read_output(output_schema, returns)
        written_as = self._output or return_types.read_plain_type(returns)
        self._write = partial(return_types.write_returned, self.name, written_as)

    def _read_rare_options(
        self, requires: Sequence[str], ask_in_words: Sequence[str], app: str, visibility: Sequence[str]
    ) -> None:
        from mcp_functions.handlers import tool_options

        self.requires = tool_options.read_requires(requires)
        self.ask_in_words = tool_options.read_keys(ask_in_words)
        ui = tool_options.read_app(app, visibility)
        if ui:
            self._entry["_meta"] = {**(self._entry["_meta"] or {}), "ui": ui}

    def _read_parameters(self, input_schema: Mapping[str, Any] | None) -> Arguments | RawArguments:
        parameters = self._signature.client_parameters
        if input_schema is None:
            return read_arguments(parameters, camel_case=self.camel_case)
        return read_raw_arguments(parameters, input_schema)

    def _check_task(self) -> None:
        if not callable(self.task) and self.task not in TASK_SUPPORT:
            raise TypeError(
                'task is "allowed", "required" or None, or a function of the arguments that returns one of them'
            )
        if self.task_ttl < 1:
            raise TypeError("task_ttl is a timedelta or seconds, 1 or more")

    def _check_single_use(self) -> None:
        if self.single_use is None:
            return
        if self.single_use not in get_args(RepeatPolicy):
            raise TypeError(f'single_use is "replay" or "reject", not {self.single_use!r}')
        if not self.needs_state:
            raise TypeError("single_use needs several rounds: add an `elicit` or `step` parameter after *")
        # The first request of a call has no state. Its round ends before the first step, and the client gets one.
        if self.max_sheds < 1:
            raise TypeError("single_use needs max_sheds=1 or more: the first round must stop, and a second continue")

    def describe(self) -> ListEntry:
        """Write its entry of `tools/list`."""
        output_schema = self._output.output_schema if self._output else None
        return self.write_entry(
            inputSchema=self._arguments.schema, outputSchema=output_schema, annotations=self._annotations
        )

    def call(self, params: Params, round_: Round | None) -> ResultObject:
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
            raise DeveloperError(
                "{name} promises structured content in its signature and returned none", name=self.name
            )
        return result

    def _read_arguments(self, params: Params) -> dict[str, Any]:
        return self._arguments.bind(params.get("arguments") or {})

    def task_support(self, params: Params) -> TaskSupport | None:
        """Tell whether a call may or must become a task, or None; DeveloperError if `task` returned something else."""
        decided: TaskSupport | None = self.task(**self._read_arguments(params)) if callable(self.task) else self.task
        if decided not in TASK_SUPPORT:
            raise DeveloperError(
                '{name}: task=… returned {decided!r}, and not "allowed", "required" or None',
                name=self.name,
                decided=decided,
            )
        return decided

    def require_declared_answers(self, params: Params, round_: Round) -> None:
        """Ask the questions of the signature before a task begins; raise InputRequired if an answer is missing."""
        arguments = self._read_arguments(params)  # wrong ones begin no task, questions or not
        if self._signature.injection:
            self._signature.injection.ask_questions(arguments, round_)


def _read_annotations(given: ToolAnnotations | Model | None) -> ToolAnnotations | None:
    if given is None:
        return None
    from mcp_functions.protocol import hints

    return hints.read_tool_annotations(given)


def _read_output(schema: Mapping[str, Any] | None, returns: object) -> JsonType | None:
    """Read the type of the structured content from `output_schema`, or else from the return annotation."""
    if schema is None:
        return return_types.read_structured_type(returns)
    from mcp_functions.schemas import validation

    if not isinstance(schema, dict):
        raise TypeError("output_schema is a JSON Schema, a dict")
    return validation.read_schema(schema)
