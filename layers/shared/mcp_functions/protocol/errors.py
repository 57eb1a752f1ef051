"""Every error that reaches the wire, with its code and its HTTP status.

An error is raised where it is known, and nobody maps it later: `gateway` reads `code` and `status` off it. One sentence
goes to the wire; `reason`, an enumerated word, goes to the log. Codes and statuses are those of the specification's
transport page. Where it leaves the status open, that is 200: the official TypeScript client reads JSON-RPC errors at
200 and 400 only.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Mapping

LONGEST_QUOTE = 200  # characters of what a client sent that an error may repeat


def shortened(text: str) -> str:
    """Return what an error may repeat of a text: a client may have sent megabytes."""
    return text if len(text) <= LONGEST_QUOTE else f"{text[:LONGEST_QUOTE]}…"


class McpError(Exception):
    """A JSON-RPC error: `code`, HTTP `status`, one sentence, and `data` if the specification asks for it.

    Attributes:
        ours: whether the server failed; otherwise the client asked for what it cannot have, and nobody is paged.

    """

    code: ClassVar[int] = -32603
    status: ClassVar[int] = 200
    sentence: ClassVar[str] = "Internal error"
    ours: ClassVar[bool] = False

    def __init__(
        self,
        message: str | None = None,
        data: object = None,
        *,
        reason: str | None = None,
        id: str | int | None = None,  # noqa: A002 - the wire's word
    ) -> None:
        """Remember what goes to the wire (`message`, `data`, `id` if it was read) and to the log (`reason`)."""
        super().__init__(message or self.sentence)
        self.headers: dict[str, str] = {}  # of the HTTP response that says it
        self.id = id
        self.message = message or self.sentence
        self.data = data
        self.reason = reason or type(self).__name__


class ParseError(McpError):
    """The body is not JSON that this server reads."""

    code, status, sentence = -32700, 400, "Parse error"


class InvalidRequest(McpError):
    """The JSON is not one JSON-RPC request or notification."""

    code, status, sentence = -32600, 400, "Invalid request"


class ContentTooLarge(InvalidRequest):
    """The body is over the size limit; nothing of it was read."""

    status, sentence = 413, "Request body too large"


class UnsupportedMediaType(InvalidRequest):
    """The body is something else than plain JSON."""

    status, sentence = 415, "The body must be application/json, not compressed"


class Unauthorized(InvalidRequest):
    """The access token is none for this server; which check it failed, only the log knows (`reason`)."""

    status, sentence = 401, "Invalid access token"

    def __init__(self, reason: str, challenge: str) -> None:
        """Take an enumerated `reason` for the log, and the `WWW-Authenticate` that says where tokens come from."""
        super().__init__(data={"reason": "invalid_token"}, reason=reason)
        self.headers = {"www-authenticate": challenge}


class InsufficientScope(InvalidRequest):
    """The access token is good and allows too little. The body names the scopes too: API Gateway renames the header."""

    status, sentence = 403, "The access token lacks a scope"

    def __init__(self, scope: str, challenge: str) -> None:
        """Take all scopes that this needs, and the `WWW-Authenticate` that asks for them."""
        super().__init__(data={"reason": "insufficient_scope", "scope": scope})
        self.headers = {"www-authenticate": challenge}


class MethodNotFound(McpError):
    """The method does not exist, or its capability was not advertised: HTTP 404 with a JSON-RPC body."""

    code, status, sentence = -32601, 404, "Method not found"


class InvalidParams(McpError):
    """The params do not have the shape that the method asks for."""

    code, status, sentence = -32602, 400, "Invalid params"


class UnknownName(InvalidParams):
    """A well-formed request names a tool, prompt or cursor that is not here: the protocol worked, so HTTP says 200."""

    status = 200


class InvalidArguments(InvalidParams):
    """An argument of a prompt or a variable of a URI is missing or does not fit; the protocol itself worked."""

    status = 200


class UnknownTask(UnknownName):
    """There is no such task, or no longer, or it is somebody else's: nobody can tell these apart."""

    sentence = "Unknown task"


class HandlerError(InvalidParams):
    """The user declined a question without whose answer a prompt or resource cannot go on."""

    status = 200


class ResourceNotFound(UnknownName):
    """No resource has this URI. "Servers SHOULD return … -32602", with the `uri` in `data`."""

    def __init__(self, uri: str) -> None:
        """Name the URI the client asked for."""
        super().__init__("Resource not found", {"uri": shortened(uri)})


class InvalidRequestState(InvalidParams):
    """One frozen answer for every `requestState` that is no good; why, only the log knows (`reason`)."""

    sentence = "Invalid or expired requestState"

    def __init__(self, reason: str) -> None:
        """Take an enumerated `reason` for the log; the wire always gets the same bytes."""
        super().__init__(data={"reason": "invalid_request_state"}, reason=reason)


class HeaderMismatch(McpError):
    """A header is missing, malformed, or says something else than the body."""

    code, status, sentence = -32020, 400, "Header mismatch"


class MissingRequiredClientCapability(McpError):
    """The client did not declare on this request what this request needs."""

    code, status, sentence = -32021, 400, "The client lacks a required capability"

    def __init__(
        self, required: Mapping[str, object], asks: Mapping[str, str] | None = None, *, earlier: bool = False
    ) -> None:
        """Say what is missing, and what would have been asked.

        Args:
            required: the `ClientCapabilities` object that would have been enough.
            asks: key of each question to its words, as `input_requests.in_words` writes them.
            earlier: whether `data` holds the questions too, for the door that writes to clients of 2025.

        """
        message = f"{self.sentence}: {', '.join(capability_names(required))}"
        if asks:
            message += f". The server would have asked: {' / '.join(asks.values())}"
        super().__init__(message, {"requiredCapabilities": required, **({"asks": asks} if asks and earlier else {})})


class UnsupportedProtocolVersion(McpError):
    """The request asks for a revision that this server does not speak."""

    code, status, sentence = -32022, 400, "Unsupported protocol version"

    def __init__(self, requested: str, supported: tuple[str, ...]) -> None:
        """Take the version asked for and those that would do."""
        super().__init__(data={"supported": list(supported), "requested": shortened(requested)})


class InternalError(McpError):
    """Something here is broken; the log says what."""

    ours = True


class Crash(InternalError):
    """An author's function raised what nobody expected, or broke a rule. A tool's becomes a result (`isError`)."""

    def __init__(self, message: str, cause: BaseException) -> None:
        """Take words that name the handler, and what it raised, whose text must not leave this process."""
        super().__init__(message, reason=type(cause).__name__)
        self.cause = cause


class OutcomeUnknown(InternalError):
    """The function did not answer; whether it acted, nobody knows. So this is not an invitation to try again."""

    sentence = "The function did not answer in time"


class ResultTooLarge(InternalError):
    """The result is over what Lambda can return; the client learns why instead of a gateway's 502."""

    def __init__(self, megabytes: int) -> None:
        """Take the limit."""
        super().__init__(f"The result is larger than this server can send ({megabytes} MB)")


class Misconfigured(InternalError):
    """The operator has to act: a missing setting, a denied key, a state too large. `reason` goes to the log."""

    status = 500

    def __init__(self, reason: str) -> None:
        """Take what the operator must know; the wire only hears "Internal error"."""
        super().__init__(reason=reason)


class StateTooLarge(Misconfigured):
    """The state does not fit into a token that this server would accept; `reason` says what to do about it."""


class TaskResultTooLarge(InternalError):
    """The result does not fit into the item that keeps a task."""

    sentence = "The result is larger than a task can keep (about 290 KB)"


class WorkerGaveUp(InternalError):
    """Worker after worker died at the same place; what killed them, the log of the worker's function says."""

    sentence = "The task was begun again and again, and never came further"


class TemporarilyUnavailable(McpError):
    """KMS or a table cannot answer now. The client keeps its state and tries again; nothing is lost."""

    code, status, sentence = -32603, 503, "Temporarily unavailable"
    ours = True

    def __init__(self, reason: str, *, retry_after: int = 2) -> None:
        """Take an enumerated `reason` for the log and the seconds for `Retry-After`."""
        super().__init__(data={"retryable": True}, reason=reason)
        self.retry_after = retry_after
        self.headers = {"retry-after": str(retry_after)}


class Busy(TemporarilyUnavailable):
    """The client itself has to slow down, or to wait for its own other request: nothing here is in trouble."""

    ours = False


class ToolError(Exception):
    """Raised by an author's function: the tool failed, and this text is what the model should know about it."""


class NotAnswered(Exception):
    """The user gave no answer: `Declined` or `Cancelled`. Uncaught, it is a tool error that the model can act on."""

    did = "did not answer"

    def __init__(self, key: str, message: str) -> None:
        """Take the question's key and the message the user saw."""
        super().__init__(f"The user {self.did}: {message}")
        self.key = key


class InputRequired(BaseException):
    """Ends a round: the client has to answer something first. `except Exception` lets it pass."""


class DeveloperError(Exception):
    """An author's function breaks a rule of the toolkit.

    `str()` of it names keys and values. They are made of arguments and answers, so it is not logged: only the author
    who runs the function locally is shown it.

    Attributes:
        rule: a text of the toolkit, with "…" in the place of each value: it may be logged.

    """

    def __init__(self, rule: str, **values: object) -> None:
        """Take the rule as a constant text, and a value for each `{name}` in it; without values braces are braces."""
        super().__init__(rule.format(**values) if values else rule)
        self.rule = re.sub(PLACEHOLDER, "…", rule) if values else rule


def is_ctrl_c(error: BaseException) -> bool:
    """Tell the interrupt of a terminal, which ends the process, from a KeyboardInterrupt that an author's code raises.

    Python raises it without a text. On Lambda there is no terminal.
    """
    import os  # noqa: PLC0415 - only for what nobody expected

    return isinstance(error, KeyboardInterrupt) and not error.args and "AWS_LAMBDA_RUNTIME_API" not in os.environ


PLACEHOLDER = r"\{[^{}]*\}"


def capability_names(required: Mapping[str, object]) -> list[str]:
    """Name what a `ClientCapabilities` object declares: `["elicitation.url", "sampling"]`."""
    return [
        f"{family}.{member}" if member else family
        for family, members in required.items()
        for member in (list(members) if isinstance(members, dict) and members else [""])
    ]
