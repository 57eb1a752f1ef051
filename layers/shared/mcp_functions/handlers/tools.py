"""A tool: a function that a model calls."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from typing import TYPE_CHECKING, Any

from mcp_functions.handlers import signatures
from mcp_functions.handlers.base import Handler, P, R, text_of
from mcp_functions.protocol import headers, results
from mcp_functions.protocol.errors import DeveloperError
from mcp_functions.schemas import arguments
from mcp_functions.schemas.arguments import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import timedelta
    from typing import Literal, Self, TypeAlias

    from mcp_functions.handlers.signatures import Signature
    from mcp_functions.protocol.errors import Crash
    from mcp_functions.protocol.foreign_types import Model
    from mcp_functions.protocol.wire_types import ToolAnnotations
    from mcp_functions.rounds.round import Round
    from mcp_functions.schemas.arguments import Arguments, RawArguments
    from mcp_functions.schemas.json_types import Kind

    TaskSupport: TypeAlias = "Literal['allowed', 'required'] | None"

TASK_SUPPORT = ("allowed", "required")
TASK_TTL_SECONDS = 24 * 3600


class Tool(Handler[P, R]):
    """A function that a model calls.

    Attributes:
        task: whether a call may, or must, become a task; or who decides that by the arguments of the call.
        task_ttl: seconds for which a task is kept, from its creation.
        errors: exceptions whose text is meant for the model, by exact type.

    """

    kind = "tool"

    def __init__(  # noqa: PLR0913 - each is an option of the decorator
        self,
        function: Callable[P, R],
        *,
        annotations: ToolAnnotations | Model | None = None,
        input_schema: Mapping[str, Any] | None = None,
        task: TaskSupport | Callable[..., TaskSupport] = None,
        task_ttl: int | timedelta = TASK_TTL_SECONDS,
        errors: Sequence[type[Exception]] = (),
        **options: Any,  # noqa: ANN401 - checked by Handler
    ) -> None:
        """Take the function and, besides what every handler has, hints about what it does and a schema of one's own."""
        self._annotations: Any = annotations
        self._input_schema = input_schema
        self.task: Any = task
        self.task_ttl = task_ttl if isinstance(task_ttl, int) else int(task_ttl.total_seconds())
        self._errors = errors
        super().__init__(function, **options)

    def _check_options(self) -> None:
        super()._check_options()
        if self._annotations is not None:
            from mcp_functions.protocol import hints  # noqa: PLC0415 - many tools have none

            self._annotations = hints.read_tool_annotations(self._annotations)
        self.errors = exceptions(self._errors)
        if not (self.task in (None, *TASK_SUPPORT) or callable(self.task)):
            message = (
                'task is "allowed" or "required", or a function of the arguments that returns one of them, or None'
            )
            raise TypeError(message)
        if self.task_ttl < 1:
            message = "task_ttl is a timedelta or seconds, 1 or more"
            raise TypeError(message)

    def _read_signature(self, signature: Signature) -> None:
        if self._input_schema is None:
            read = arguments.read(signature.sent, signature.hints, camel_case=self.camel_case)
            self._accepts: Arguments | RawArguments = read
        else:
            self._accepts = arguments.read_raw(signature.sent, self._input_schema)
        # "clients MUST reject a tool definition" that breaks the rules of these
        self.header_arguments = headers.declared(self._accepts.schema)
        self._output = signature.returns
        self._content_lists = signatures.returns_content_lists(signature.hints.get("return"))

    def _fields(self) -> dict[str, Any]:
        return {
            "inputSchema": self._accepts.schema,
            "outputSchema": self._output.schema if self._output else None,
            "annotations": self._annotations,
        }

    def call(self, params: Mapping[str, Any], round_: Round | None) -> dict[str, Any]:
        """Run one round of a `tools/call` (server/tools).

        "Tool execution errors", arguments that do not fit among them, are results that the model can read and act on.

        Raises:
            InputRequired: the round ends with a question.
            DeveloperError: the function broke a rule, or returned what it did not promise.

        """
        try:
            value = self._run(self._accepts.bind(params.get("arguments") or {}), round_)
        except Exception as error:
            if (text := self.text_for_model(error)) is None:
                raise
            return self.error_result(text)
        return self._result(value)

    def _result(self, value: Any) -> dict[str, Any]:  # noqa: ANN401 - what the function returns
        result = results.call_tool_result(value, promised=self._output is not None, lists=self._content_lists)
        if self._output and not result.get("isError"):
            self._check_output(result)
        return result

    def task_support(self, params: Mapping[str, Any]) -> TaskSupport:
        """Say whether this call may become a task, or must.

        Raises:
            InvalidArgument: the arguments do not fit, so that nothing need be decided.
            DeveloperError: who decides decided something else.

        """
        if not callable(self.task):
            return self.task  # type: ignore[no-any-return]  # checked when it was decorated
        decided: TaskSupport = self.task(**self._accepts.bind(params.get("arguments") or {}))
        if decided not in (None, *TASK_SUPPORT):
            rule = '{name}: task=… returned {decided!r}, and not "allowed", "required" or None'
            raise DeveloperError(rule, name=self.name, decided=decided)
        return decided

    def ask_declared(self, params: Mapping[str, Any], round_: Round) -> None:
        """Ask what the signature declares, and do not run the function: before a call becomes a task.

        Raises:
            InputRequired: something of it has no answer yet.
            NotAnswered: the user will not answer.

        """
        self._signature.ask(self._accepts.bind(params.get("arguments") or {}), round_, camel_case=self.camel_case)

    def text_for_model(self, error: BaseException) -> str | None:
        """Return the text of an exception that is meant for the model; None if it is not."""
        if isinstance(error, InvalidArgument):
            return str(error)
        # By exact type: pydantic's ValidationError is a ValueError too, and quotes what it was given.
        return text_of(error) if type(error) in self.errors else super().text_for_model(error)

    def with_errors(self, errors: frozenset[type[Exception]]) -> Self:
        """Return the same tool, with more exceptions whose text is meant for the model."""
        tool = copy(self)
        tool.errors = self.errors | errors
        return tool

    def crashed(self, crash: Crash) -> dict[str, Any]:
        """Say that the tool crashed: "tool execution errors" are results, and this one says no more than its name."""
        return results.tool_error(crash.message)

    def error_result(self, reason: str) -> dict[str, Any]:
        """Say that the tool failed, to the model."""
        return results.tool_error(reason)

    def _check_output(self, result: Mapping[str, Any]) -> None:
        # If there is an output schema, "servers MUST provide structured results that conform to this schema".
        if "structuredContent" not in result or self._output is None:
            rule = "{name} promises structured content in its signature and returned none"
            raise DeveloperError(rule, name=self.name)
        self._check_value(self._output, result["structuredContent"])

    def _check_value(self, promised: Kind, value: object) -> None:
        try:
            promised.check(value)
        except ValueError as error:
            rule = "{name} returned something else than its signature promises: it {problem}"
            raise DeveloperError(rule, name=self.name, problem=error) from None


def exceptions(errors: object) -> frozenset[type[Exception]]:
    """Check the option `errors` of `@tool` and of `serve`.

    Raises:
        TypeError: it is no collection of exception classes.

    """
    listed: list[Any] = list(errors) if isinstance(errors, Iterable) else [errors]
    if wrong := [each for each in listed if not (isinstance(each, type) and issubclass(each, Exception))]:
        message = f"errors is a tuple of exception classes, errors=(ValueError, LookupError), not of {wrong[0]!r}"
        raise TypeError(message)
    return frozenset(listed)
