"""A tool: a function that a model calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp_functions import arguments, headers, observing, results
from mcp_functions.arguments import InvalidArgument
from mcp_functions.errors import DeveloperError, NotAnswered, ToolError
from mcp_functions.handlers.base import Handler, P, R

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import timedelta
    from typing import Literal, TypeAlias

    from mcp_functions.arguments import Arguments, RawArguments
    from mcp_functions.kinds import Kind
    from mcp_functions.rounds import Round
    from mcp_functions.schema import ToolAnnotations
    from mcp_functions.signatures import Signature

    TaskSupport: TypeAlias = "Literal['allowed', 'required'] | None"

TASK_SUPPORT = ("allowed", "required")
TASK_TTL_SECONDS = 24 * 3600


class Tool(Handler[P, R]):
    """A function that a model calls.

    Attributes:
        task: whether a call may, or must, become a task; or who decides that by the arguments of the call.
        task_ttl: seconds for which a task is kept, from its creation.

    """

    kind = "tool"

    def __init__(
        self,
        function: Callable[P, R],
        *,
        annotations: ToolAnnotations | None = None,
        input_schema: Mapping[str, Any] | None = None,
        task: TaskSupport | Callable[..., TaskSupport] = None,
        task_ttl: int | timedelta = TASK_TTL_SECONDS,
        **options: Any,  # noqa: ANN401 - checked by Handler
    ) -> None:
        """Take the function and, besides what every handler has, hints about what it does and a schema of one's own."""
        self._annotations = annotations
        self._input_schema = input_schema
        self.task: Any = task
        self.task_ttl = task_ttl if isinstance(task_ttl, int) else int(task_ttl.total_seconds())
        super().__init__(function, **options)

    def _check_options(self) -> None:
        super()._check_options()
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
        self.repeated = headers.declared(self._accepts.schema)
        self._output = signature.returns

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
            return self._result(self._run(self._accepts.bind(params.get("arguments") or {}), round_))
        except (InvalidArgument, ToolError, NotAnswered) as error:
            return self.failed(str(error))

    def _result(self, value: Any) -> dict[str, Any]:  # noqa: ANN401 - what the function returns
        result = results.call_tool_result(value, promised=self._output is not None)
        if self._output and not result.get("isError"):
            self._check_output(result)
        return result

    def support(self, params: Mapping[str, Any]) -> TaskSupport:
        """Say whether this call may become a task, or must.

        Raises:
            InvalidArgument: the arguments do not fit, so that nothing need be decided.
            DeveloperError: who decides decided something else.

        """
        if not callable(self.task):
            return self.task  # type: ignore[no-any-return]  # checked when it was decorated
        decided: TaskSupport = self.task(**self._accepts.bind(params.get("arguments") or {}))
        if decided not in (None, *TASK_SUPPORT):
            message = f'{self.name}: task=… returned {decided!r}, and not "allowed", "required" or None'
            raise DeveloperError(message)
        return decided

    def ask_first(self, params: Mapping[str, Any], round_: Round) -> None:
        """Ask what the signature declares, and do not run the function: before a call becomes a task.

        Raises:
            InputRequired: something of it has no answer yet.
            NotAnswered: the user will not answer.

        """
        self._signature.ask(self._accepts.bind(params.get("arguments") or {}), round_, camel_case=self.camel_case)

    def failed(self, reason: str) -> dict[str, Any]:
        """Say that the tool failed, to the model."""
        return results.tool_error(reason)

    def _check_output(self, result: Mapping[str, Any]) -> None:
        # If there is an output schema, "servers MUST provide structured results that conform to this schema".
        if "structuredContent" not in result or self._output is None:
            message = f"{self.name} promises structured content in its signature and returned none"
            raise DeveloperError(message)
        self._check_value(self._output, result["structuredContent"])

    def _check_value(self, promised: Kind, value: object) -> None:
        try:
            promised.check(value)
        except ValueError as error:
            told = observing.redacted(str(error), value)
            message = f"{self.name} returned something else than its signature promises: it {told}"
            raise DeveloperError(message) from None
