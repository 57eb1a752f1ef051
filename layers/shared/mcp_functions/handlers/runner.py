"""Runs one round of a handler: one request of a call that may take several.

    the function returned a value         -> its result
    it asked (signal `InputRequired`)     -> None: the round has ended, and holds the question
    it raised an error for the model      -> a result that reports the error; a prompt or resource raises `HandlerError`
    it raised anything else               -> `Crash`: the log gets its type and frames; its text stays in this process

An ended round stays ended, even if the author's code catches the signal.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from mcp_functions import observability
from mcp_functions.protocol.errors import Crash, McpError, NotAnswered, is_ctrl_c

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_functions.handlers.base import Handler
    from mcp_functions.rounds.round import Round

TOOL_ERROR_PACKAGES = ("mcp_functions", "mcp", "fastmcp")  # a ported server still raises the ToolError of another one


def run_round(
    handler: Handler[..., Any],
    params: Mapping[str, Any],
    round_: Round | None,
    call: Callable[[Mapping[str, Any], Round], dict[str, Any]] | None = None,
) -> dict[str, Any] | None:
    """Run one round of a handler; return None if the round ended without a result.

    Args:
        handler: runs the author's function.
        params: the params of the request.
        round_: the round; a handler that only returns needs none.
        call: a function that runs in the place of `handler.call`, and may begin a task.

    Raises:
        McpError: the request has no result. `crash_result` writes one for a `Crash`.
    """
    result: dict[str, Any] | None = None
    error: BaseException | None = None
    try:
        result = call(params, round_) if call and round_ else handler.call(params, round_)
    except BaseException as raised:  # an author's `sys.exit()` too must get an answer
        if is_ctrl_c(raised):
            raise
        error = raised
    if round_:
        round_.close()
    if round_ and (round_.has_ended or round_.error):
        # The cause of the end counts, and not what the function did after it caught the signal.
        result = None
        error = round_.error
    return result if error is None else _error_result(handler, error)


def crash_result(handler: Handler[..., Any], crash: Crash) -> dict[str, Any]:
    """Note a crash for the log, and write the result that reports it; a prompt or a resource has none."""
    observability.current().add_crash(crash.cause)
    if handler.kind != "tool":
        raise crash
    return handler.error_result(crash.message)


def crash_message(handler: Handler[..., Any]) -> str:
    """Return a message about a crash, without the text of the exception."""
    kind = handler.kind.partition("_")[0]  # a "resource_template" is a resource for clients
    return f"The {kind} {handler.name} failed unexpectedly. The server's log says why."


def _error_result(handler: Handler[..., Any], error: BaseException) -> dict[str, Any]:
    """Write the result for an exception that is meant for the model; raise any other."""
    if isinstance(error, McpError):
        raise error
    text = _text_for_model(handler, error)
    if text is None:
        # `from None` keeps the author's text out of tracebacks. `Crash.cause` has the exception.
        raise Crash(crash_message(handler), error) from None
    return handler.error_result(text)


def read_errors(errors: object) -> frozenset[type[Exception]]:
    """Read the option `errors` of `@tool` and of `serve`: a collection of exception classes.

    Raises:
        TypeError: it is something else.
    """
    classes: list[Any] = list(errors) if isinstance(errors, Iterable) else [errors]
    for each in classes:
        if not (isinstance(each, type) and issubclass(each, Exception)):
            message = f"errors is a tuple of exception classes, errors=(ValueError, LookupError), not of {each!r}"
            raise TypeError(message)
    return frozenset(classes)


def _text_for_model(handler: Handler[..., Any], error: BaseException) -> str | None:
    """Return the text of an exception that is meant for the model; None if it is not."""
    if isinstance(error, BaseExceptionGroup):  # of several asyncio tasks: meant for the model if all exceptions are
        texts = [_text_for_model(handler, each) for each in error.exceptions]
        return None if None in texts else texts[0]
    # By exact type: pydantic's ValidationError is a ValueError too, and it quotes the caller's values.
    if type(error) in handler.errors or isinstance(error, NotAnswered) or _is_tool_error(error):
        return str(error) or type(error).__name__
    return None


def _is_tool_error(error: BaseException) -> bool:
    """Tell whether an exception is a ToolError: ours, or in a ported server one of the package `mcp` or `fastmcp`.

    The other packages are not imported to find out: the name and the package of each base class tell.
    """
    for base in type(error).__mro__:
        if base.__name__ == "ToolError" and base.__module__.partition(".")[0] in TOOL_ERROR_PACKAGES:
            return True
    return False
