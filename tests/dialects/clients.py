"""Small clients of the three dialects, written from the text of each proposal."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

from tests.support import wire

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.dialects.wires import Reply, Wire

    Answer = Callable[[Mapping[str, Any]], Mapping[str, Any]]  # a request of the server -> its result

EVERYTHING: dict[str, Any] = {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}}
VERSION = {"mcp-protocol-version": wire.VERSION, "content-type": "application/json"}
STREAMS = {"accept": "application/json, text/event-stream"}
RELATED = "io.modelcontextprotocol/related-task"


class Client:
    """A client of the released revision that says on every request which dialect it speaks besides."""

    def __init__(self, over: Wire, dialect: str | None, wish: Mapping[str, Any] | None = None) -> None:
        self.over, self.ids = over, count(1)
        experimental = {"experimental": {dialect: dict(wish or {})}} if dialect else {}
        self.capabilities: dict[str, Any] = EVERYTHING | experimental
        self.replies: list[Reply] = []

    def request(self, method: str, params: Mapping[str, Any], **beside: Any) -> Reply:  # noqa: ANN401 - JSON
        """Send one request; `beside` holds members at the top level of the message, beside its params."""
        meta = params.get("_meta", {})
        sent = wire.message(method, params, id=next(self.ids), capabilities=self.capabilities, meta=meta)
        named = None if method.startswith("tasks/") else params.get(wire.NAME_PARAMETERS.get(method, ""))
        headers = {"mcp-method": method, **({"mcp-name": wire.header(named)} if named else {})}
        return self.post({**sent, **beside}, headers)

    def post(self, body: object, headers: Mapping[str, str] | None = None) -> Reply:
        self.replies.append(self.over.post(body, {**VERSION, **STREAMS, **(headers or {})}))
        return self.replies[-1]


class MultiTurnClient(Client):
    """SEP-1858: buffers its answers from `buffer_input` on, and POSTs them when `input_required` ends the stream."""

    def __init__(self, over: Wire) -> None:
        super().__init__(over, "sep-1858")

    def run(self, method: str, params: Mapping[str, Any], answer: Answer) -> dict[str, Any]:
        """See a call to its end; return the last message."""
        reply = self.request(method, params)
        while (turn := self.turn(reply)) is not None:
            requests, event_id = turn
            buffered = [{"jsonrpc": "2.0", "id": one["id"], "result": dict(answer(one))} for one in requests]
            reply = self.answer(buffered, event_id)
        return reply.messages[-1]

    def answer(self, responses: object, event_id: str) -> Reply:
        """POST a JSON array of the buffered responses, "**including** a `Last-Event-ID` header"."""
        return self.post(responses, {"last-event-id": event_id})

    @staticmethod
    def turn(reply: Reply) -> tuple[list[dict[str, Any]], str] | None:
        """Return the requests of a turn and the id of the event that ended it; None if there is nothing to answer."""
        if reply.headers["content-type"] != "text/event-stream":
            return None
        names = [event["event"] for event in reply.events]
        if names[-1] != "input_required":
            return None
        requests = [message for message in reply.messages if "id" in message]
        assert names[names.index("buffer_input") :] == ["buffer_input", *["message"] * len(requests), "input_required"]
        return requests, reply.events[-1]["id"]


class StateClient(Client):
    """SEP-1685: sends `state` back as it came, with each response, or once for a round."""

    def __init__(self, over: Wire, option: int = 0, *, objects: bool = False, echoes: bool = True) -> None:
        wish: dict[str, Any] = ({"option": option} if option else {}) | ({"state": "object"} if objects else {})
        super().__init__(over, "sep-1685", wish)
        self.option, self.echoes = option, echoes

    def run(self, method: str, params: Mapping[str, Any], answer: Answer, *, turns: int = 10) -> dict[str, Any]:
        """See a call to its end, or to as many turns; return the last message."""
        last = self.request(method, params).messages[-1]
        for _ in range(turns):
            if "dependent_requests" in last:
                responses = self.responses(last["dependent_requests"], answer)
                last = self.request(method, params, dependent_responses=responses).messages[-1]
            elif "method" in last:
                last = self.post(self.response(last, answer)).messages[-1]
            else:
                break
        return last

    def response(self, request: Mapping[str, Any], answer: Answer) -> dict[str, Any]:
        """Answer one request of the server."""
        result = {} if request["method"] == "ping" else dict(answer(request))
        return {"jsonrpc": "2.0", "id": request["id"], **self.echo(request), "result": result}

    def responses(self, asked: Mapping[str, Any], answer: Answer) -> dict[str, Any]:
        """Answer all requests of a round."""
        answers = [
            {**self.echo(one), "result": {} if one["method"] == "ping" else dict(answer(one))}
            for one in asked["requests"]
        ]
        return {**self.echo(asked), "responses": answers}

    def echo(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        return {"state": asked["state"]} if self.echoes and "state" in asked else {}


class PersistentClient(Client):
    """SEP-2322's persistent workflow: wishes for a task, polls it, and asks for its result when there is one."""

    def __init__(self, over: Wire) -> None:
        super().__init__(over, "sep-2322-tasks")

    def call(self, name: str, arguments: Mapping[str, Any] | None = None, ttl: int | None = 60_000) -> dict[str, Any]:
        wish = {"task": {} if ttl is None else {"ttl": ttl}}
        return self.told("tools/call", {"name": name, "arguments": dict(arguments or {}), **wish})

    def get(self, task_id: str) -> dict[str, Any]:
        return self.told("tasks/get", {"taskId": task_id})

    def result(self, task_id: str) -> dict[str, Any]:
        return self.told("tasks/result", {"taskId": task_id})

    def cancel(self, task_id: str) -> dict[str, Any]:
        return self.told("tasks/cancel", {"taskId": task_id})

    def answer(self, task_id: str, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
        """Send answers: `inputResponses`, and `requestState` if there was one."""
        return self.told("tasks/input_response", {**more, "_meta": {RELATED: {"taskId": task_id}}})

    def told(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return the result, or the error, of one request."""
        (message,) = self.request(method, params).messages
        told: dict[str, Any] = message["result"] if "result" in message else message["error"]
        return told


def accept(**content: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    """Fill in a form."""
    return {"action": "accept", "content": content}
