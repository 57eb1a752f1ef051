"""Runs one round of a handler, which is one request of a call, and turns its end into a result.

    the function returned a value             the result of the value
    it asked its user                         None; the round (`Round`) holds the questions
    it raised an error for the model          a result that reports the error; a prompt or resource raises HandlerError
    it raised anything else                   a Crash: the log gets the exception's type and frames, and never its text

A function asks by an exception, `InputRequired`. If it catches that exception and goes on, the round has still ended.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from mcp_functions import observability
from mcp_functions.protocol import results
from mcp_functions.protocol.errors import Crash, HandlerError, McpError, NotAnswered, is_ctrl_c

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_functions.handlers.base import Handler
    from mcp_functions.protocol.wire_types import Params, ResultObject
    from mcp_functions.rounds.round import Round

# The packages that define a ToolError. An author who ports a server may still raise that of the old library.
TOOL_ERROR_PACKAGES = ("mcp_functions", "mcp", "fastmcp")


def run_round(
    handler: Handler[..., Any], params: Params, round_: Round | None, call: Callable[..., ResultObject] | None = None
) -> ResultObject | None:
    """Run one round of a handler; return None if the round ended without a result.

    The round is None if no call of the handler needs one. For a call that may become a task, `call` takes the place of
    `handler.call`.

    Raises:
        McpError: the request has no result. It may be a Crash, for which `crash_result` writes a result.
    """
    call = call or handler.call
    result: ResultObject | None = None
    error: BaseException | None = None
    try:
        result = call(params, round_)
    except BaseException as raised:  # an author's `sys.exit()` too must get an answer
        if is_ctrl_c(raised):
            raise
        error = raised
    if round_:
        round_.close()
        if round_.error or round_.continues:
            # The round ended before the function did. What the function returned or raised afterwards does not count.
            result, error = None, round_.error
    if error is None:
        results.drop_own_meta(result)
        return result
    return _result_of_error(handler, error)


def _result_of_error(handler: Handler[..., Any], error: BaseException) -> ResultObject:
    """Write the result for an exception that is meant for the model; raise any other, as an McpError."""
    if isinstance(error, McpError):
        raise error
    text = _text_for_model(handler, error)
    if text is None:
        # `from None` keeps the author's text out of tracebacks. `Crash.cause` has the exception.
        raise Crash(crash_message(handler), error) from None
    return error_result(handler, text)


def _text_for_model(handler: Handler[..., Any], error: BaseException) -> str | None:
    """Return the text of an exception that is meant for the model; None if the exception is not."""
    if isinstance(error, BaseExceptionGroup):  # of an asyncio.TaskGroup
        texts = [_text_for_model(handler, each) for each in error.exceptions]
        return None if None in texts else texts[0]
    # A subclass of an error is not listed: pydantic's ValidationError is a ValueError, and quotes the caller's values.
    is_listed = type(error) in handler.errors
    if is_listed or isinstance(error, NotAnswered) or _is_tool_error(error):
        return str(error) or type(error).__name__
    return None


def _is_tool_error(error: BaseException) -> bool:
    """Tell whether an exception is a ToolError of one of the packages, or a subclass of one.

    `isinstance` would need an import of the packages. So the name and the module of each base class are compared.
    """
    bases = [base for base in type(error).__mro__ if base.__name__ == "ToolError"]
    return any(base.__module__.partition(".")[0] in TOOL_ERROR_PACKAGES for base in bases)


def crash_message(handler: Handler[..., Any]) -> str:
    """Return a message about a crash, without the text of the exception."""
    kind = handler.kind.partition("_")[0]  # a client calls a "resource_template" a resource
    return f"The {kind} {handler.name} failed unexpectedly. The server's log says why."


def crash_result(handler: Handler[..., Any], crash: Crash) -> ResultObject:
    """Add a crash to the log line, and write a result that reports it; raise it for a prompt or a resource."""
    observability.current().add_crash(crash.cause)
    if handler.kind != "tool":
        raise crash
    return error_result(handler, crash.message)


def error_result(handler: Handler[..., Any], text: str) -> ResultObject:
    """Write a result that reports an error to the model; HandlerError for a prompt or a resource, which have none."""
    if handler.kind != "tool":
        raise HandlerError(message=text) from None
    return results.tool_error(text)


def read_errors(errors: object) -> frozenset[type[Exception]]:
    """Read the option `errors` of `@tool` and of `serve`, a collection of exception classes, or raise a TypeError."""
    classes: list[Any] = list(errors) if isinstance(errors, Iterable) else [errors]
    for each in classes:
        if not (isinstance(each, type) and issubclass(each, Exception)):
            rule = "errors is a tuple of exception classes, errors=(ValueError, LookupError)"
            raise TypeError(f"{rule}, not of {each!r}")
    return frozenset(classes)
