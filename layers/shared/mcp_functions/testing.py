"""For an author's tests: a conversation with a function, held as a client would hold it.

    with deployed():
        talk = Conversation(handler).call(workItemId=4522, fields={"System.State": "Resolved"})
        assert talk.asked == ["resolution"]
        talk.accept(resolution={"resolution": "Fixed"})
        assert "Fixed" in talk.text

Events go in and responses come out, as on AWS; KMS is the harness's.
"""

from __future__ import annotations

import json
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Self

from mcp_functions.local import environment, keyfile
from mcp_functions.local.events import Moment, event
from mcp_functions.local.kms import MAX_REQUEST, KmsApi
from mcp_functions.local.loopback import HttpRequest, Loopback
from mcp_functions.names import CALLS, META_CLIENT_CAPABILITIES, META_PROTOCOL_VERSION, PROTOCOL_VERSION

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from mcp_functions.gateway import LambdaFunction
    from mcp_functions.messages import Principal

METHODS = {"tool": "tools/call", "prompt": "prompts/get", "resource": "resources/read"}
EVERYTHING: dict[str, Any] = {"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}, "roots": {}}


@contextmanager
def deployed(**changes: str | None) -> Iterator[None]:
    """Surround functions with what a deployment gives them: the template's variables, and a KMS on loopback.

    Args:
        changes: variables that should be different; None unsets one.

    """
    with ExitStack() as stack:
        kms = stack.enter_context(Loopback(max_body=MAX_REQUEST))
        api = KmsApi(keyfile.load(Path(stack.enter_context(TemporaryDirectory()))))
        kms.start(api.answer)
        own = environment.settings(port=80, name="tested", key_arn=api.arn)
        pointed = environment.endpoints(kms=kms.url, invoke=kms.url)
        stack.enter_context(environment.applied(environment.CREDENTIALS | own | pointed | changes))
        yield


@dataclass
class Context:
    """Lambda's context object, as far as the toolkit reads it."""

    function_name: str = "local-function"
    remaining_ms: int = 29_000

    def get_remaining_time_in_millis(self) -> int:
        """Say how long the function may still run."""
        return self.remaining_ms


class Conversation:
    """One client talking to one function, round by round.

    Attributes:
        function: the folder of the function.
        rounds: every event sent and response received so far.

    """

    def __init__(
        self,
        handler: LambdaFunction,
        *,
        function: str | None = None,
        principal: Principal | None = None,
        capabilities: Mapping[str, Any] = EVERYTHING,
        moment: Callable[[], Moment] = lambda: Moment.at(time.time()),
    ) -> None:
        """Sit down with a function.

        Args:
            handler: what `serve` made.
            function: its folder; the first handler's name if left out.
            principal: who talks; with AuthMode `jwt`.
            capabilities: what the client declares; everything, if left out.
            moment: gives each request its time and ids.

        """
        self._handler, self._principal, self._moment = handler, principal, moment
        self._capabilities = capabilities
        self.function = function or handler.handlers[0].name
        self._method, self._params = "", dict[str, Any]()
        self._sent: dict[str, Any] = {}
        self._next_id = 1
        self.rounds: list[tuple[dict[str, Any], dict[str, Any]]] = []

    def call(self, name: str | None = None, /, **arguments: Any) -> Self:  # noqa: ANN401 - JSON values
        """Call a tool or get a prompt: the function's first, or the one named.

        Args:
            name: of the tool or prompt.
            arguments: by wire name.

        """
        found = next(h for h in self._handler.handlers if name in (None, h.name))
        return self._begin(METHODS[found.kind], {"name": found.name, "arguments": arguments})

    def read(self, uri: str) -> Self:
        """Read a resource."""
        return self._begin("resources/read", {"uri": uri})

    def accept(self, **answers: Mapping[str, Any]) -> Self:
        """Fill in forms: `accept(resolution={"resolution": "Fixed"})`."""
        return self.answer(**{key: {"action": "accept", "content": dict(content)} for key, content in answers.items()})

    def decline(self, *keys: str) -> Self:
        """Say no to the questions named, or to all of them."""
        return self.answer(**{key: {"action": "decline"} for key in keys or self.asked})

    def cancel(self, *keys: str) -> Self:
        """Close the questions named, or all of them, without answering."""
        return self.answer(**{key: {"action": "cancel"} for key in keys or self.asked})

    def answer(self, **responses: Mapping[str, Any]) -> Self:
        """Send the next round with these `inputResponses`, and the state as it came."""
        return self._send(inputResponses=dict(responses), requestState=self.state)

    def retry(self) -> Self:
        """Send the last round again, as a client does that lost the answer."""
        return self._send(**self._sent)

    def tamper(self, change: Callable[[str], str] = lambda token: f"{token}A") -> Self:
        """Send the next round with a state that somebody changed."""
        return self._send(inputResponses={}, requestState=change(self.state))

    @property
    def asked(self) -> list[str]:
        """The keys of the questions that are open now."""
        return list(self.requests)

    @property
    def requests(self) -> dict[str, Any]:
        """The questions that are open now."""
        requests: dict[str, Any] = self.body.get("result", {}).get("inputRequests", {})
        return requests

    @property
    def state(self) -> str:
        """The sealed state of the last round that left one."""
        states = [body["result"]["requestState"] for body in self._bodies() if "requestState" in body.get("result", {})]
        return str(states[-1])

    @property
    def status(self) -> int:
        """The HTTP status of the last response."""
        return int(self.rounds[-1][1]["statusCode"])

    @property
    def body(self) -> dict[str, Any]:
        """The last JSON-RPC message."""
        return self._bodies()[-1]

    @property
    def result(self) -> dict[str, Any]:
        """The last result."""
        result: dict[str, Any] = self.body["result"]
        return result

    @property
    def error(self) -> dict[str, Any]:
        """The last error."""
        error: dict[str, Any] = self.body["error"]
        return error

    @property
    def text(self) -> str:
        """The text of the last result: of a tool, a prompt or a resource."""
        match self.result:
            case {"content": list(blocks)}:
                return "\n".join(block["text"] for block in blocks if block["type"] == "text")
            case {"messages": list(messages)}:
                return "\n".join(message["content"]["text"] for message in messages)
            case {"contents": list(contents)}:
                return "\n".join(content["text"] for content in contents)
        return ""

    def _bodies(self) -> list[dict[str, Any]]:
        return [_message(response) for _event, response in self.rounds]

    def _begin(self, method: str, params: dict[str, Any]) -> Self:
        self._method, self._params = method, params
        return self._send()

    def _send(self, **more: Any) -> Self:  # noqa: ANN401 - JSON values
        self._sent = more
        meta = {META_PROTOCOL_VERSION: PROTOCOL_VERSION, META_CLIENT_CAPABILITIES: dict(self._capabilities)}
        params = {**self._params, **more, "_meta": meta}
        message = {"jsonrpc": "2.0", "id": self._next_id, "method": self._method, "params": params}
        self._next_id += 1
        sent = self._event(json.dumps(message, ensure_ascii=False).encode())
        context = Context(f"{environment.STACK}-{self.function}")
        self.rounds.append((sent, self._handler(json.loads(json.dumps(sent)), context)))
        return self

    def _event(self, body: bytes) -> dict[str, Any]:
        headers = {
            "Host": "localhost",
            "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json",
            "MCP-Protocol-Version": PROTOCOL_VERSION,
            "Mcp-Method": self._method,
            "Mcp-Name": self._params[CALLS[self._method]],
        }
        route = f"/mcp/{self.function}"
        made = event(HttpRequest("POST", route, tuple(headers.items()), body), route, self._moment())
        if self._principal:
            claims = {"iss": self._principal.iss, "sub": self._principal.sub, "client_id": self._principal.client}
            made["requestContext"]["authorizer"] = {"jwt": {"claims": claims, "scopes": None}}
        return made


def _message(response: Mapping[str, Any]) -> dict[str, Any]:
    body = str(response["body"])
    if response["headers"].get("content-type") == "text/event-stream":
        body = [line for line in body.splitlines() if line.startswith("data: ")][-1].removeprefix("data: ")
    message: dict[str, Any] = json.loads(body)
    return message
