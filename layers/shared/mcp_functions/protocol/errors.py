"""The errors of requests: JSON-RPC errors for clients, with code, HTTP status and message, and those of authors.

Codes and statuses are those of the specification (basic/transports). If the specification does not set the status, it
is 200, because the official TypeScript client reads JSON-RPC errors only at the statuses 200 and 400.

    raise InvalidParams(message="params.name must be a string")    the client gets this message
    raise Misconfigured("kms:AccessDenied")                        only the log gets this reason
    raise ResourceNotFound("note://ann")                           the specification says what `data` holds
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.aws.errors import Failure
    from mcp_functions.protocol.wire_types import Error, JSONObject, JSONValue


class McpError(Exception):
    """A JSON-RPC error.

    It is written to three places: `code`, `message`, `data` and `id` to the JSON-RPC response, `status` and `headers`
    to the HTTP response around it, `reason` and `is_server_fault` to the log. An alarm counts the faults of the server.
    """

    code: int = -32603
    status: ClassVar[int] = 200
    default_message: ClassVar[str] = "Internal error"
    default_data: ClassVar[JSONValue] = None
    is_server_fault: ClassVar[bool] = False

    def __init__(
        self,
        reason: str | None = None,
        *,
        message: str | None = None,
        data: JSONValue = None,
        id: str | int | None = None,  # noqa: A002 - the name in JSON-RPC
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Make an error; without arguments, it has what its class sets.

        Args:
            reason: a constant text for the log, which the client does not get; default: the name of the class.
            message: the message for the client.
            data: the member `data` for the client; None if there is none.
            id: the id of the JSON-RPC request, if it was read before the error.
            headers: the headers of the HTTP response, beside those that every response has.
        """
        self.reason = reason or type(self).__name__
        self.message = message or self.default_message
        super().__init__(self.message)
        self.data = self.default_data if data is None else data
        self.id = id
        self.headers = headers or {}

    def to_json(self) -> Error:
        """Return the `error` member of a JSON-RPC response."""
        error: Error = {"code": self.code, "message": self.message}
        if self.data is not None:
            error["data"] = self.data
        return error


# ---- The request is not valid: the client sent what the specification does not allow


class ParseError(McpError):
    """The body is not JSON, or is ambiguous JSON."""

    code = -32700
    status = 400
    default_message = "Parse error"


class InvalidRequest(McpError):
    """The JSON is not one JSON-RPC request or notification."""

    code = -32600
    status = 400
    default_message = "Invalid request"


class ContentTooLarge(InvalidRequest):
    """The body is over the size limit. It was not parsed."""

    status = 413
    default_message = "Request body too large"


class UnsupportedMediaType(InvalidRequest):
    """The body is not plain JSON."""

    status = 415
    default_message = "The body must be application/json, not compressed"


class MethodNotFound(McpError):
    """The method does not exist, or the server did not advertise its capability."""

    code = -32601
    status = 404
    default_message = "Method not found"


class InvalidParams(McpError):
    """The params do not have the shape that the method requires."""

    code = -32602
    status = 400
    default_message = "Invalid params"


class HeaderMismatch(McpError):
    """A header is missing, is malformed, or differs from the body."""

    code = -32020
    status = 400
    default_message = "Header mismatch"


class MissingRequiredClientCapability(McpError):
    """The client does not declare a capability that this request requires."""

    code = -32021
    status = 400
    default_message = "The client lacks a required capability"

    def __init__(self, required: Mapping[str, JSONObject], text: str = "", **data: object) -> None:
        """Name the `ClientCapabilities` that would be enough; `text` ends the message, and `data` has more members."""
        message = f"{self.default_message}: {', '.join(capability_names(required))}{text}"
        super().__init__(message=message, data={"requiredCapabilities": required, **data})


class UnsupportedProtocolVersion(McpError):
    """The server does not implement the requested revision."""

    code = -32022
    status = 400
    default_message = "Unsupported protocol version"

    def __init__(self, requested: str, supported: tuple[str, ...]) -> None:
        """Name the requested revision and the supported ones."""
        super().__init__(data={"supported": list(supported), "requested": shortened(requested)})


# ---- The caller may not do this: the access token or the operator does not allow a valid request


class Unauthorized(InvalidRequest):
    """The access token is not valid for this server. Only the log says which check failed (`reason`)."""

    status = 401
    default_message = "Invalid access token"
    default_data: ClassVar[object] = {"reason": "invalid_token"}


class InsufficientScope(InvalidRequest):
    """The access token lacks a scope."""

    status = 403
    default_message = "The access token lacks a scope"


class CallerStopped(InvalidRequest):
    """The operator stopped this caller."""

    status = 403
    default_message = "The operator of this server has stopped this caller"


# ---- The request cannot be fulfilled: it is valid, but there is no such name, or its state is not valid


class InvalidRequestState(InvalidParams):
    """The `requestState` is not valid. The client gets the same bytes for every cause; the log has the reason."""

    default_message = "Invalid or expired requestState"
    default_data: ClassVar[object] = {"reason": "invalid_request_state"}


class UnknownName(InvalidParams):
    """No tool, prompt or cursor has this name."""

    status = 200


class UnknownTask(UnknownName):
    """The task does not exist, has expired, or belongs to another caller. A client cannot tell these cases apart."""

    default_message = "Unknown task"


class ResourceNotFound(UnknownName):
    """No resource has this URI. "Servers SHOULD return … -32602", with the `uri` in `data` (server/resources)."""

    default_message = "Resource not found"

    def __init__(self, uri: str) -> None:
        """Name the URI."""
        super().__init__(data={"uri": shortened(uri)})


class HandlerError(InvalidParams):
    """A prompt or resource cannot return a result, and says why; a tool returns `isError` instead."""

    status = 200


# ---- The server failed: an author's code, a setting, KMS or a table


class InternalError(McpError):
    """The server failed. The log says why."""

    is_server_fault = True


class Crash(InternalError):
    """An author's function raised an unexpected exception, or broke a rule of the toolkit."""

    def __init__(self, message: str, cause: BaseException) -> None:
        """Keep a message that names the handler, and the exception, whose text must not leave this process."""
        super().__init__(type(cause).__name__, message=message)
        self.cause = cause


class OutcomeUnknown(InternalError):
    """The function did not respond. It may have acted, so the error does not invite the client to retry."""

    default_message = "The function did not answer in time"


class ResultTooLarge(InternalError):
    """The result is over the size that Lambda can return (`http.responses`). Else the client would only see a 502."""

    default_message = "The result is larger than this server can send (6 MB)"


class Misconfigured(InternalError):
    """The operator must act: a setting is missing, a key is denied, a state is too large. Only the log says which."""

    status = 500


class StateTooLarge(Misconfigured):
    """The state does not fit into a token that this server would accept."""


class TemporarilyUnavailable(InternalError):
    """KMS or a table cannot answer now. Nothing is lost, and the client may send the same request again."""

    status = 503
    default_message = "Temporarily unavailable"
    default_data: ClassVar[object] = {"retryable": True}
    retry_after = 2  # seconds, after which the client may retry

    def __init__(self, reason: str | None = None, *, retry_after: int | None = None) -> None:
        """Keep the reason for the log, and the seconds of `Retry-After`."""
        super().__init__(reason, headers={"retry-after": str(retry_after or self.retry_after)})


class Busy(TemporarilyUnavailable):
    """The client must slow down, or wait for its own other request. The server has not failed."""

    is_server_fault = False


class FunctionStopped(Busy):
    """The operator stopped this function. Nothing ran, so that the client may retry."""

    default_message = "The operator of this server has stopped this function"
    retry_after = 300


# ---- Exceptions of an author's function: no JSON-RPC errors, but they become results, or end a round


class ToolError(Exception):
    """Raised by an author's tool: the tool failed, and the model should read this text."""


class NotAnswered(Exception):
    """The user gave no answer: `Declined` or `Cancelled`. If a tool does not catch it, the model reads its text."""

    text = "The user did not answer"  # of the exception, before the message of the question

    def __init__(self, key: str, message: str) -> None:
        """Keep the question's key, and the message that the user saw."""
        super().__init__(f"{self.text}: {message}")
        self.key = key


class InputRequired(BaseException):
    """Ends a run of an author's function with questions. An author's `except Exception` does not catch it."""


class DeveloperError(Exception):
    """An author's function broke a rule of the toolkit: for example, it asked two questions under one key.

        DeveloperError("the key {key} is used twice", key="trip")

    Its text is "the key trip is used twice". Such a text may quote keys and values of arguments or answers. So it is
    not logged; only an author who runs the function locally sees it.

    Attributes:
        rule: the text with "…" in place of each value: "the key … is used twice". It may be logged.
    """

    def __init__(self, rule: str, **values: object) -> None:
        """Format the rule with a value for each `{name}` in it; without values it is used as it is."""
        super().__init__(rule.format(**values) if values else rule)
        self.rule = re.sub(r"\{[^{}]*\}", "…", rule) if values else rule


# ---- Functions


def to_mcp_error(error: BaseException) -> McpError:
    """Return the error that a client gets for any exception.

    The text of an unexpected exception may quote arguments or answers, so neither the client nor the log may get it.
    """
    return error if isinstance(error, McpError) else Crash(InternalError.default_message, error)


def service_error(service: str, failure: Failure) -> McpError:
    """Return the error for a failed call of a service of AWS: an outage, or a problem of the operator."""
    reason = f"{service}:{failure.code}"
    return TemporarilyUnavailable(reason) if failure.is_outage else Misconfigured(reason)


MAX_QUOTE = 200  # characters


def shortened(text: str) -> str:
    """Shorten a client's text for an error that repeats it, because it may have megabytes."""
    return text if len(text) <= MAX_QUOTE else f"{text[:MAX_QUOTE]}…"


def is_ctrl_c(error: BaseException) -> bool:
    """Recognize Ctrl-C, which Python raises without a text, and not the KeyboardInterrupt of an author's code."""
    return isinstance(error, KeyboardInterrupt) and not error.args and not is_on_lambda()


def is_on_lambda() -> bool:
    """Tell whether the Lambda runtime runs this process, and not an author's test or harness."""
    return "AWS_LAMBDA_RUNTIME_API" in os.environ


def capability_names(required: Mapping[str, JSONObject]) -> list[str]:
    """Name the members of a `ClientCapabilities`: `["elicitation.url", "sampling"]`."""
    names: list[str] = []
    for family, members in required.items():
        names += [f"{family}.{member}" for member in members] or [family]
    return names
