"""A client of 2025 without any SDK: it holds its session, reads JSON and event streams, and resumes with Last-Event-ID.

It imports nothing of the package. The official types of the negotiated revision check every message that it reads.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.support import wire

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

RESOURCE, ISSUER = "https://mcp.example/mcp", "https://id.example"
ALL_CAPABILITIES: dict[str, Any] = {"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}, "roots": {}}


class Event(NamedTuple):
    """One event of a stream."""

    id: str
    retry: int | None
    data: Any


def parse_events(body: str) -> list[Event]:
    """Read a stream, as the HTML standard says."""
    events = []
    for block in body.split("\n\n")[:-1]:
        fields = dict(line.split(": ", 1) for line in block.split("\n"))
        assert fields.get("event") == "message"
        data = json.loads(fields["data"]) if fields.get("data") else None
        retry = int(fields["retry"]) if "retry" in fields else None
        events.append(Event(fields.get("id", ""), retry, data))
    return events


def read_question(events: list[Event]) -> dict[str, Any]:
    """Return the server's request at the end of a stream, which begins with an event id to resume from."""
    assert events[0].data is None
    assert events[0].id
    assert events[0].retry
    question: dict[str, Any] = events[-1].data
    assert events[-1].id
    assert "method" in question
    return question


def read_retry(events: list[Event]) -> int:
    """Return when the client is to poll again, in milliseconds; the stream must hold no message."""
    (only,) = events
    assert only.data is None
    assert only.id
    assert only.retry
    return only.retry


def result_text(events: list[Event]) -> str:
    """Return the text of the tool result at the end of a stream."""
    return str(events[-1].data["result"]["content"][0]["text"])


def error_message(events: list[Event]) -> str:
    """Return the message of the JSON-RPC error at the end of a stream."""
    return str(events[-1].data["error"]["message"])


class Client:
    """A user with a client of 2025.

    Attributes:
        session: Mcp-Session-Id, once the server has sent one.
        version: the negotiated revision, sent as MCP-Protocol-Version by the revisions that have this header.
        event_ids: every event id that the client has read, in order.
        request_id: of the last request; a client that takes a session over in another process may use it again.
        oauth_client: the OAuth client that holds the user's access token.
        scope: the scopes of this token, separated by spaces.
        token_seconds: how long the token is still valid.

    """

    oauth_client = "c"
    scope = ""
    token_seconds = 60

    def __init__(
        self,
        function: Callable[[Mapping[str, Any], Any], dict[str, Any]],
        name: str | None = None,
        *,
        context: wire.Context | None = None,
        now: Callable[[], float] = lambda: 1_785_000_000.0,
    ) -> None:
        """Take the function that answers events, and the user who signs in (None: without signing in)."""
        self.function = function
        self.name = name
        self.now = now
        self.context = context or wire.Context("local_mcp")
        self.session: str | None = None
        self.version: str | None = None
        self.event_ids: list[str] = []
        self.request_id = 0
        self.response: dict[str, Any] = {}

    def http(self, method: str, body: Any = None, **headers: str | None) -> dict[str, Any]:  # noqa: ANN401 - JSON
        """Send one HTTP request without the headers that are None."""
        sent_headers: dict[str, str | None] = {
            "accept": "text/event-stream",
            "mcp-session-id": self.session,
            "mcp-protocol-version": self.version if self.version != "2025-03-26" else None,
        }
        if method == "POST":
            sent_headers["accept"] = "application/json, text/event-stream"
            sent_headers["content-type"] = "application/json"
        for name, value in headers.items():
            sent_headers[name.replace("_", "-")] = value
        event: dict[str, Any] = {
            "version": "2.0",
            "routeKey": "ANY /mcp",
            "rawPath": "/mcp",
            "rawQueryString": "",
            "headers": {name: value for name, value in sent_headers.items() if value is not None},
            "requestContext": {
                "http": {"method": method, "path": "/mcp", "sourceIp": "192.0.2.1"},
                **self.authorizer_context(),
            },
            "isBase64Encoded": False,
        }
        if body is not None:
            event["body"] = body if isinstance(body, str) else json.dumps(body)
        self.response = self.function(event, self.context)
        session = self.response["headers"].get("mcp-session-id")
        if session:  # as the TypeScript client takes it up
            self.session = session
        return self.response

    def authorizer_context(self) -> dict[str, Any]:
        """Return the claims of this user as the gateway's authorizer adds them to an event."""
        if not self.name:
            return {}
        claims = {"iss": ISSUER, "sub": self.name, "client_id": self.oauth_client, "aud": RESOURCE, "scope": self.scope}
        claims["exp"] = str(int(self.now()) + self.token_seconds)
        return {"authorizer": {"jwt": {"claims": claims}}}

    def initialize(
        self, version: str = "2025-11-25", capabilities: Mapping[str, Any] = ALL_CAPABILITIES, *, name: str = "tester"
    ) -> dict[str, Any]:
        """Do the handshake."""
        info = {"name": name, "version": "1"}
        params = {"protocolVersion": version, "capabilities": capabilities, "clientInfo": info}
        result = self.result("initialize", params)
        self.version = result["protocolVersion"]
        assert self.http("POST", {"jsonrpc": "2.0", "method": "notifications/initialized"})["statusCode"] == 202
        return result

    def send(self, method: str, params: Mapping[str, Any] | None = None, **headers: str | None) -> list[Event]:
        """Send one request; return the messages as events (without ids, if the body is JSON)."""
        self.request_id += 1
        request: dict[str, Any] = {"jsonrpc": "2.0", "id": self.request_id, "method": method}
        if params:
            request["params"] = params
        return self.read(self.http("POST", request, **headers))

    def read(self, response: Mapping[str, Any]) -> list[Event]:
        """Read the messages of a response."""
        assert response["statusCode"] == 200, response
        if response["headers"]["content-type"] == "application/json":
            return [Event("", None, json.loads(response["body"]))]
        assert response["headers"]["content-type"] == "text/event-stream"
        events = parse_events(response["body"])
        self.event_ids += [event.id for event in events if event.id]
        return events

    def message(self, method: str, params: Mapping[str, Any] | None = None, **headers: str | None) -> dict[str, Any]:
        """Send one request, and return its response."""
        last = self.send(method, params, **headers)[-1].data
        assert last["id"] == self.request_id
        response: dict[str, Any] = last
        return response

    def result(self, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Send one request, and return its result."""
        message = self.message(method, params)
        assert "result" in message, message
        result: dict[str, Any] = message["result"]
        return result

    def call(self, name: str, /, **arguments: Any) -> list[Event]:  # noqa: ANN401 - JSON
        """Call a tool."""
        return self.send("tools/call", {"name": name, "arguments": arguments})

    def resume(self, last: str | None = None) -> list[Event]:
        """Resume the stream after an event, by default after the last one."""
        return self.read(self.http("GET", last_event_id=last or self.event_ids[-1]))

    def answer(self, id_: str, result: Mapping[str, Any] | None = None, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
        """Send the response to a request of the server's."""
        response = {"result": result} if result is not None else {}
        return self.http("POST", {"jsonrpc": "2.0", "id": id_, **response, **more})

    def accept(self, id_: str, **content: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
        """Answer a form."""
        return self.answer(id_, {"action": "accept", "content": content})

    def cancel(self) -> dict[str, Any]:
        """Cancel the last request."""
        params = {"requestId": self.request_id}
        return self.http("POST", {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
