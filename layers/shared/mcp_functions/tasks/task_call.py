"""A call that may become a task: it asks the questions of the signature in rounds, and then becomes a task."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_functions.handlers.tools import Tool
    from mcp_functions.protocol.messages import Request
    from mcp_functions.rounds.round import Round


class TaskCall:
    """Runs one round of a tool that may become a task. It is a `Runnable`, like the tool."""

    def __init__(
        self, tool: Tool[..., Any], request: Request, begin: Callable[[Tool[..., Any], Request, Round], dict[str, Any]]
    ) -> None:
        """Use a tool, the request that calls it, and the function that turns the call into a task."""
        self._tool, self._request, self._begin = tool, request, begin
        self.label = tool.label

    def call(self, params: Mapping[str, Any], round_: Round) -> dict[str, Any]:
        """Run the round, or begin the task after the questions of the signature have their answers.

        Tasks extension: "A server MUST NOT return CreateTaskResult to a client that did not declare the extension on
        the request."
        """
        try:
            support = self._tool.task_support(params)
            if support == "required":
                self._request.must_take_tasks()
            # A form of a host cannot follow a task, and a task cannot show a form.
            is_asked_in_form = support == "allowed" and self._tool.asks and round_.request.has_app
            if not support or not self._request.takes_tasks or is_asked_in_form:
                return self._tool.call(params, round_)
            self._tool.ask_declared(self._tool.bind(params), round_)
        except Exception as error:
            text = self._tool.text_for_model(error)
            if text is None:
                raise
            return self._tool.error_result(text)
        return self._begin(self._tool, self._request, round_)

    def error_result(self, reason: str) -> dict[str, Any]:
        """Return the result of a call that cannot be completed."""
        return self._tool.error_result(reason)

    def text_for_model(self, error: BaseException) -> str | None:
        """Return the text of an exception that is meant for the model; None for other exceptions."""
        return self._tool.text_for_model(error)
