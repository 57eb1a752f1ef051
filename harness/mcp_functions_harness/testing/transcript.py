"""The responses that a conversation's client has received, and the failures that the function reported.

A round is one request and its response. The properties read the last response:

    result with resultType "input_required"    asked, requests, messages: the open questions
    result of a call, or of a completed task   result, text
    error                                      error

A `result`, `error`, `state` or `status` that does not exist fails the test: the AssertionError shows the last message
and the function's log lines.
"""

import difflib
import json
import os
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, TypedDict, cast

from mcp_functions.protocol.constants import META_FORM
from mcp_functions.protocol.messages import value_at
from mcp_functions.protocol.wire_types import Error, InputRequest, InputRequestParams, JSONRPCMessage, ResultObject
from mcp_functions_harness.api_gateway.events import body_text, message_in
from mcp_functions_harness.testing.failures import Failures

if TYPE_CHECKING:
    from mcp_functions.protocol.event_types import Event, Response


# The end of the text of an AssertionError, if the function had no environment.
NO_DEPLOYMENT = ", and no deployment is around it: the fixture `converse` brings one, or `with deployed():`"
TASK_IN_PROGRESS = ("working", "input_required")  # the statuses of a task that has not ended
MAX_QUOTED = 200  # characters of the last message in the text of `check_asked`


class Form(TypedDict, total=False):
    """The form of an app (MCP Apps), which a host shows for a result."""

    tool: str  # which the form calls with the answers
    state: str
    questions: dict[str, InputRequestParams]  # by key
    asked: int  # when the call asked, in unix milliseconds
    expires: int  # when its state expires
    status: str  # in the result of the form's own requests


class Transcript:
    """The rounds of a conversation, and the properties of the last one.

    Attributes:
        rounds: every event sent and response received so far.
        raised: the exception that the function raised in the last round, or the toolkit's error for a rule that the
            function broke. None if there was none. Neither the client nor Lambda's log receives its text.
    """

    def __init__(self) -> None:
        """Start without rounds."""
        self.rounds: list[tuple[Event, Response]] = []
        self.raised: BaseException | None = None
        self._failures = Failures()

    @property
    def done(self) -> bool:
        """Whether the call has ended, with a result or an error."""
        result = self.body.get("result", {})
        if self.task_id and "status" in result:  # the result describes the task
            return result["status"] not in TASK_IN_PROGRESS
        if result.get("resultType") == "input_required":
            return False
        return "state" not in self.form  # a form that asks has the state of its call

    @property
    def task_id(self) -> str:
        """The id of the task that the call became; "" if it did not become one."""
        ids = [result["taskId"] for result in self._results() if result.get("resultType") == "task"]
        return str(ids[-1]) if ids else ""

    @property
    def asked(self) -> list[str]:
        """The keys of the open questions."""
        return list(self.requests)

    @property
    def requests(self) -> dict[str, InputRequest]:
        """The open questions, by key. In a form, each is written as an `elicitation/create` request."""
        return questions_in(self.body)

    @property
    def form(self) -> Form:
        """The form that the host shows for the last result (MCP Apps); {} if the result has none."""
        return _form_in(self.body)

    @property
    def messages(self) -> dict[str, str]:
        """The text of each open question that has one."""
        params = {key: request["params"] for key, request in self.requests.items()}
        return {key: value["message"] for key, value in params.items() if "message" in value}

    @property
    def state(self) -> str:
        """The sealed state of the last round that returned one."""
        __tracebackhide__ = True
        states = [result["requestState"] for result in self._results() if "requestState" in result]
        if not states:
            raise AssertionError(self._explain_missing("requestState", self.body))
        return str(states[-1])

    @property
    def status(self) -> int:
        """The HTTP status of the last response."""
        __tracebackhide__ = True
        if not self.rounds:
            raise AssertionError(self._explain_missing("response", {}))
        return int(self.rounds[-1][1]["statusCode"])

    @property
    def body(self) -> JSONRPCMessage:
        """The last JSON-RPC message; {} before the first round."""
        return message_of(self.rounds[-1][1]) if self.rounds else {}

    @property
    def result(self) -> ResultObject:
        """The last result."""
        __tracebackhide__ = True
        if "result" not in self.body:
            raise AssertionError(self._explain_missing("result", self.body))
        return self.body["result"]

    @property
    def error(self) -> Error:
        """The last error."""
        __tracebackhide__ = True
        if "error" not in self.body:
            raise AssertionError(self._explain_missing("error", self.body))
        return self.body["error"]

    @property
    def text(self) -> str:
        """The text of the last result: of a tool, a prompt or a resource."""
        __tracebackhide__ = True
        result = self.result
        if self.task_id and "result" in result:
            result = result["result"]  # a completed task contains the result of its tool
        match result:
            case {"content": list(blocks)}:
                return "\n".join(block["text"] for block in blocks if block["type"] == "text")
            case {"messages": list(messages)}:
                return "\n".join(message["content"]["text"] for message in messages)
            case {"contents": list(contents)}:
                return "\n".join(content["text"] for content in contents)
        return ""

    def check_asked(self, keys: Collection[str]) -> None:
        """Check that there is something to answer.

        A test may answer open questions (all of them, without keys), and earlier ones again.

        Raises:
            AssertionError: nothing was asked, or not this; the text has the open questions, or the last message.
        """
        __tracebackhide__ = True
        asked_earlier = {key for result in self._results() for key in result.get("inputRequests", {})}
        unknown = sorted(set(keys) - asked_earlier - set(self.requests))
        if unknown and self.requests:
            similar = difflib.get_close_matches(unknown[0], self.requests, n=1)
            hint = f"; did you mean {similar[0]}?" if similar else ""
            raise AssertionError(f"nobody asked {unknown[0]}, but {', '.join(self.requests)}{hint}")
        answers_again = bool(keys) and asked_earlier.issuperset(keys)
        tries_after_error = bool(asked_earlier) and "error" in self.body
        if self.requests or answers_again or tries_after_error:
            return
        text = self._explain_missing("question", self.body)
        beginning = text if len(text) <= MAX_QUOTED else f"{text[:MAX_QUOTED]}..."
        raise AssertionError(f"nothing was asked: {beginning}")

    def _results(self) -> list[ResultObject]:
        """Return the result of each round; {} for a round that has none."""
        return [message_of(response).get("result", {}) for _event, response in self.rounds]

    def _explain_missing(self, missing: str, body: JSONRPCMessage) -> str:
        """Say what came in the place of something, with the function's log lines and its exception."""
        if not self.rounds:
            return f"no {missing}, because nothing was sent"
        members = {name: value for name, value in body.items() if name not in ("jsonrpc", "id")}
        text = f"no {missing}, but HTTP {self.status} {json.dumps(members, ensure_ascii=False)}"
        text += "".join(f"; {line}" for line in self._failures.lines)
        if self.raised:
            text += f"; it raised {self.raised!r}"
        return text if os.environ.get("MCP_STACK") else text + NO_DEPLOYMENT


def questions_in(message: JSONRPCMessage) -> dict[str, InputRequest]:
    """Return the questions of a message, by key. In a form, each is written as an `elicitation/create` request."""
    requests = message.get("result", {}).get("inputRequests")
    if requests:
        return requests
    questions = _form_in(message).get("questions", {})
    return {key: {"method": "elicitation/create", "params": params} for key, params in questions.items()}


def _form_in(message: JSONRPCMessage) -> Form:
    form: Form | None = value_at(message, "result", "_meta", META_FORM)
    return form or {}


def message_of(event_or_response: Mapping[str, Any]) -> JSONRPCMessage:
    """Read the JSON-RPC message of an event or a response. In an event stream it is the last, after notifications."""
    return cast("JSONRPCMessage", message_in(body_text(event_or_response)))
