"""An HTTP client of MCP 2026-07-28 with tasks, which the official clients do not support yet.

A call does not always return its result at once. The client continues by the `resultType` of the response:

input_required    the response asks questions: send the call again with the answers
task              the response names a task: poll the task, and answer its questions, until it ends
any other         the response is the result
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Self, cast

from mcp_functions.protocol.constants import APP_MIME_TYPE, EXTENSION_APPS, EXTENSION_TASKS
from mcp_functions.protocol.wire_types import (
    ClientCapabilities,
    InputRequest,
    InputResponses,
    JSONRPCMessage,
    Params,
    ResultObject,
)
from mcp_functions_harness.client import messages
from mcp_functions_harness.client.http import Response, send

Answer = Callable[[str, InputRequest], Mapping[str, Any]]  # (key, question) -> its answer

# Every capability of the core protocol.
EVERYTHING: ClientCapabilities = {"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}, "roots": {}}
EXTENSIONS: dict[str, Any] = {EXTENSION_TASKS: {}, EXTENSION_APPS: {"mimeTypes": [APP_MIME_TYPE]}}
WITH_TASKS: ClientCapabilities = {**EVERYTHING, "extensions": EXTENSIONS}
ENDED = ("completed", "failed", "cancelled")  # the statuses of a task that does not go on


class Refused(Exception):
    """The server answered with a JSON-RPC error, or a task failed with one; `code` and `data` are the error's."""

    def __init__(self, message: str, code: int | None = None, data: object = None) -> None:
        """Keep the members of a JSON-RPC error; without a code, the client itself ended the call."""
        super().__init__(message)
        self.code = code
        self.data = data

    @classmethod
    def by(cls, error: Mapping[str, Any]) -> Self:
        """Read a JSON-RPC error of a server, which may lack members."""
        return cls(str(error.get("message")), error.get("code"), error.get("data"))


@dataclass(eq=False)
class TaskClient:
    """One client of one server.

    Attributes:
        url: the URL of the endpoint, "https://…/mcp".
        headers: more headers for every request, e.g. an access token.
        capabilities: the capabilities that the client declares.
        timeout: seconds for one request.
        told: called with the task after every poll.
        sleep: waits for a number of seconds.
    """

    url: str
    headers: Mapping[str, str] | None = field(default=None, kw_only=True, repr=False)
    capabilities: ClientCapabilities = field(default_factory=lambda: WITH_TASKS, kw_only=True)
    timeout: float = field(default=30, kw_only=True)
    told: Callable[[ResultObject], object] = field(default=lambda _task: None, kw_only=True)
    sleep: Callable[[float], None] = field(default=time.sleep, kw_only=True)
    _ids: Iterator[int] = field(default_factory=lambda: count(1), init=False)  # the ids of requests

    def run(self, name: str, arguments: Mapping[str, Any], answer: Answer | None = None) -> ResultObject:
        """Call a tool, answer its questions, and wait for its task if it becomes one, as `converse` does."""
        return self.converse("tools/call", {"name": name, "arguments": dict(arguments)}, answer)

    def converse(
        self,
        method: str,
        params: Params,
        answer: Answer | None = None,
        header_parameters: Sequence[tuple[str, str]] = (),
    ) -> ResultObject:
        """Send a request of any method, and continue like `run` until there is a result.

        Args:
            method: the method of the protocol, e.g. "prompts/get".
            params: the method's params without `_meta`.
            answer: answers a question; without it the server may not ask.
            header_parameters: each argument that a header repeats, and the header (`x-mcp-header` of the schema).

        Raises:
            Refused: the call, or its task, ended with an error, or was cancelled.
        """
        result = self.request(method, params, header_parameters)
        while result.get("resultType") == "input_required":
            next_params: Params = {**params, "inputResponses": _answer_all(result, answer)}
            if "requestState" in result:  # the client returns it unchanged
                next_params["requestState"] = result["requestState"]
            result = self.request(method, next_params, header_parameters)
        if result.get("resultType") == "task":
            return self.follow(result, answer)
        return result

    def follow(self, task: ResultObject, answer: Answer | None = None) -> ResultObject:
        """Poll a task at the server's interval, and answer its questions, until it ends; return the call's result.

        Raises:
            Refused: the task failed, or was cancelled.
            OSError, ValueError: as `request` raises them; a ValueError also for a completed task without a result.
        """
        while task["status"] not in ENDED:
            if task["status"] == "input_required" and task.get("inputRequests"):
                self.update(task["taskId"], _answer_all(task, answer))
            else:
                self.sleep(task.get("pollIntervalMs", 1000) / 1000)
            task = self.get(task["taskId"])
            self.told(task)
        if task["status"] != "completed":
            error = task.get("error")
            raise Refused.by(error) if error else Refused(f"the task was {task['status']}")
        match task:
            case {"result": dict(result)}:
                return result
        raise ValueError("the task is completed, and has no result")

    def call(self, name: str, arguments: Mapping[str, Any], **inputs: object) -> ResultObject:
        """Send one `tools/call`; a later request of the same call has `inputResponses` and `requestState` too."""
        params: Any = {"name": name, "arguments": dict(arguments), **inputs}
        return self.request("tools/call", params)

    def get(self, task_id: str) -> ResultObject:
        """Get a task's status (`tasks/get`)."""
        return self.request("tasks/get", {"taskId": task_id})

    def update(self, task_id: str, responses: Mapping[str, Any]) -> None:
        """Answer questions of a task (`tasks/update`)."""
        self.request("tasks/update", {"taskId": task_id, "inputResponses": dict(responses)})

    def cancel(self, task_id: str) -> None:
        """Cancel a task (`tasks/cancel`)."""
        self.request("tasks/cancel", {"taskId": task_id})

    def request(self, method: str, params: Params, header_parameters: Sequence[tuple[str, str]] = ()) -> ResultObject:
        """Send one request, and return its result.

        Raises:
            Refused: the server answered with an error.
            OSError: the server did not answer.
            ValueError: the answer is no JSON-RPC response.
        """
        message = messages.message(method, params, next(self._ids), self.capabilities)
        response = self._send(message, header_parameters)
        if response.failed:
            raise OSError(str(response))
        if response.error is not None:
            raise Refused.by(response.error)
        if response.result is None:
            raise ValueError(str(response))
        return response.result

    def _send(self, message: JSONRPCMessage, header_parameters: Sequence[tuple[str, str]]) -> Response:
        """Send a JSON-RPC request; the client of the command `call` sends it with its user's credentials."""
        request = messages.write(message, header_parameters)
        return send(self.url, request, (self.headers or {}).items(), seconds=self.timeout)


def _answer_all(result_or_task: ResultObject, answer: Answer | None) -> InputResponses:
    """Answer each question of a result or of a task. A result may ask none: the server only wants another request."""
    questions = result_or_task.get("inputRequests") or {}
    if questions and answer is None:
        raise Refused(f"this client has no answer to {', '.join(questions)}")
    answers = {key: answer(key, question) for key, question in questions.items()} if answer else {}
    return cast("InputResponses", answers)
