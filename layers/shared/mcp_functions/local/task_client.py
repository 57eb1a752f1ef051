"""A small HTTP client that supports tasks: it calls, polls, answers and cancels. The official clients do not yet.

It supports rounds too, so it follows a call to its end in either form.
"""

from __future__ import annotations

import json
import time
from http.client import HTTPConnection, HTTPSConnection
from itertools import count
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from mcp_functions.protocol.constants import (
    APP_MIME_TYPE,
    CALLS,
    EXTENSION_APPS,
    EXTENSION_TASKS,
    META_CLIENT_CAPABILITIES,
    META_PROTOCOL_VERSION,
    PROTOCOL_VERSION,
    TASKS,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Answer = Callable[[str, Mapping[str, Any]], Mapping[str, Any]]  # (key, request) -> response

WITH_TASKS: dict[str, Any] = {
    "elicitation": {"form": {}, "url": {}},
    "sampling": {"tools": {}},
    "roots": {},
    "extensions": {EXTENSION_TASKS: {}, EXTENSION_APPS: {"mimeTypes": [APP_MIME_TYPE]}},
}
NAMED = CALLS | TASKS
ENDED = ("completed", "failed", "cancelled")


class Refused(Exception):
    """The server answered with a JSON-RPC error, or a task failed with one; `code` and `data` are the error's."""

    def __init__(self, error: Mapping[str, Any]) -> None:
        """Read message, code and data of a JSON-RPC error."""
        super().__init__(str(error.get("message")))
        self.code, self.data = error.get("code"), error.get("data")


class TaskClient:
    """One client of one server."""

    def __init__(  # noqa: PLR0913 - what a client decides
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        capabilities: Mapping[str, Any] = WITH_TASKS,
        timeout: float = 30,
        told: Callable[[Mapping[str, Any]], object] = lambda _task: None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Configure the client.

        Args:
            url: of the endpoint, "https://…/mcp".
            headers: of every request, e.g. with an access token.
            capabilities: that the client declares.
            timeout: seconds for one request.
            told: called with the task of every poll.
            sleep: waits for a number of seconds.
        """
        self._url, self._headers, self._capabilities = urlsplit(url), dict(headers or {}), capabilities
        self._timeout, self._on_poll, self._sleep, self._ids = timeout, told, sleep, count(1)

    def run(self, name: str, arguments: Mapping[str, Any], answer: Answer | None = None) -> dict[str, Any]:
        """Call a tool and follow it to its end, through rounds and as a task.

        Args:
            name: of the tool.
            arguments: by wire name.
            answer: returns the answer to a question, from its key and request; without it the tool may not ask.

        Returns:
            The tool's result.

        Raises:
            Refused: the call, or its task, ended with an error, or was cancelled.
        """
        result = self.call(name, arguments)
        while result["resultType"] == "input_required":
            state = {"requestState": result["requestState"]} if "requestState" in result else {}
            result = self.call(name, arguments, inputResponses=_answers(result, answer), **state)
        return self.follow(result, answer) if result["resultType"] == "task" else result

    def follow(self, task: Mapping[str, Any], answer: Answer | None = None) -> dict[str, Any]:
        """Follow a task to its end: poll at the server's interval, and answer its questions.

        Raises:
            Refused: the task failed, or was cancelled.
        """
        while task["status"] not in ENDED:
            if task["status"] == "input_required" and "inputRequests" in task:
                self.update(task["taskId"], _answers(task, answer))
            else:
                self._sleep(task.get("pollIntervalMs", 1000) / 1000)
            task = self.get(task["taskId"])
            self._on_poll(task)
        if task["status"] == "completed":
            return dict(task["result"])
        raise Refused(task.get("error", {"message": f"the task was {task['status']}"}))

    def call(self, name: str, arguments: Mapping[str, Any], **more: object) -> dict[str, Any]:
        """Call a tool once (`tools/call`), with `inputResponses` and `requestState` if it is a further round."""
        return self.request("tools/call", {"name": name, "arguments": dict(arguments), **more})

    def get(self, task_id: str) -> dict[str, Any]:
        """Get a task's status (`tasks/get`)."""
        return self.request("tasks/get", {"taskId": task_id})

    def update(self, task_id: str, responses: Mapping[str, Any]) -> None:
        """Answer questions of a task (`tasks/update`)."""
        self.request("tasks/update", {"taskId": task_id, "inputResponses": dict(responses)})

    def cancel(self, task_id: str) -> None:
        """Cancel a task (`tasks/cancel`)."""
        self.request("tasks/cancel", {"taskId": task_id})

    def request(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Send one request.

        Raises:
            Refused: the server answered with an error.
            OSError: the server did not answer.
        """
        meta = {META_PROTOCOL_VERSION: PROTOCOL_VERSION, META_CLIENT_CAPABILITIES: dict(self._capabilities)}
        sent = {"jsonrpc": "2.0", "id": next(self._ids), "method": method, "params": {**params, "_meta": meta}}
        message = self._posted(json.dumps(sent).encode(), method, params.get(NAMED.get(method, "")))
        if "error" in message:
            raise Refused(message["error"])
        result: dict[str, Any] = message["result"]
        return result

    def _posted(self, body: bytes, method: str, name: object) -> dict[str, Any]:
        connect = HTTPSConnection if self._url.scheme == "https" else HTTPConnection
        connection = connect(self._url.netloc, timeout=self._timeout)
        headers = {
            **self._headers,
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": PROTOCOL_VERSION,
            "Mcp-Method": method,
            **({"Mcp-Name": name} if isinstance(name, str) else {}),
        }
        try:
            connection.request("POST", self._url.path, body, headers)
            response = connection.getresponse()
            text, kind = response.read().decode(), response.headers.get_content_type()
        finally:
            connection.close()
        if kind == "text/event-stream":
            text = [line for line in text.splitlines() if line.startswith("data:")][-1].removeprefix("data:")
        message: dict[str, Any] = json.loads(text)
        return message


def _answers(asking: Mapping[str, Any], answer: Answer | None) -> dict[str, Any]:
    requests: Mapping[str, Any] = asking.get("inputRequests", {})
    if requests and answer is None:
        raise Refused({"message": f"this client has no answer to {', '.join(requests)}"})
    return {key: dict(answer(key, request)) for key, request in requests.items()} if answer else {}
