"""One client in conversation with one function, round by round."""

from __future__ import annotations

import copy
import json
import logging
import os
from collections.abc import Mapping
from contextlib import contextmanager
from datetime import timedelta
from inspect import unwrap
from threading import get_ident
from typing import TYPE_CHECKING, Any, Self

from mcp_functions.local import environment
from mcp_functions.local.api_gateway.events import Moment, event
from mcp_functions.local.loopback import HttpRequest
from mcp_functions.observability import Notes, lines, listener
from mcp_functions.protocol.constants import (
    CALLS,
    EXTENSION_TASKS,
    META_CLIENT_CAPABILITIES,
    META_PROTOCOL_VERSION,
    PROTOCOL_VERSION,
    TASKS,
    WORKER,
)
from mcp_functions.protocol.messages import Principal
from mcp_functions.testing.containers import Cold, Context, Warm, orders

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from mcp_functions.http.gateway import LambdaFunction

METHODS = {"tool": "tools/call", "prompt": "prompts/get"}
EVERYTHING: dict[str, Any] = {"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}, "roots": {}}
RESOURCE = "https://mcp.example/mcp"  # that the tokens of principals are for
TOKEN_SECONDS = 3600
WITH_TASKS = EVERYTHING | {"extensions": {EXTENSION_TASKS: {}}}
NAMED = CALLS | TASKS
WORKER_MS = 900_000
PATIENCE = 10  # rounds that the official clients go on for
TEST_RUNNERS = ("_pytest", "hypothesis")  # which end a test by an exception of their own
OUTSIDE = ", and no deployment is around it: the fixture `converse` brings one, or `with deployed():`"


class Conversation:
    """One client talking to one function. Whatever it says returns the conversation, so that sayings can be chained.

    Attributes:
        function: the folder of the function.
        rounds: every event sent and response received so far.
        raised: what the function raised by accident in the last round, or the rule of the toolkit that it broke. The
            client hears nothing of it, and Lambda's log no word of its text.

    """

    def __init__(  # noqa: PLR0913 - who talks, with whom, and how
        self,
        handler: Callable[..., Any],
        *,
        function: str | None = None,
        principal: Principal | str | None = None,
        scopes: Sequence[str] = (),
        capabilities: Mapping[str, Any] = EVERYTHING,
        moment: Callable[[], Moment] | None = None,
        fresh: bool = False,
    ) -> None:
        """Sit down with a function.

        Args:
            handler: what `serve` made. Decorators around it, as of Powertools, are left out: call it with an event to
                try them.
            function: its folder; the first handler's name if left out.
            principal: who talks, as the authorizer of AuthMode `jwt` says; nobody, if left out.
            scopes: that the principal's access token grants.
            capabilities: what the client declares; everything, if left out.
            moment: gives each request its time and ids; the function's clock and fresh ids, if left out.
            fresh: whether every round is answered by a Python process of its own, so that nothing but the state goes
                from one to the next. For handlers that stand in a module, `handler = serve(…)`.

        Raises:
            ValueError: a fresh process could not find the handler.

        """
        self._principal, self._scopes = _principal(principal), tuple(scopes)
        self._moment = moment or (lambda: Moment.at(self._now()))
        self._capabilities = capabilities
        self.function = function or unwrap(handler).handlers[0].name
        self._method, self._params = "", dict[str, Any]()
        self._sent: dict[str, Any] = {}
        self._next_id = 1
        self._ahead = 0.0
        self.rounds: list[tuple[dict[str, Any], dict[str, Any]]] = []
        self._said: list[str] = []
        self.raised: BaseException | None = None
        self._fresh = fresh
        self.upgrade(handler)

    def __repr__(self) -> str:
        """Say what became of the last round: pytest shows this beside an assertion that fails."""
        raised = f", which raised {self.raised!r}" if self.raised else ""
        return f"<Conversation with {self.function}{raised}>"

    def call(self, name: str | None = None, /, **arguments: Any) -> Self:  # noqa: ANN401 - JSON values
        """Call a tool or get a prompt: the function's first, or the one named.

        Args:
            name: of the tool or prompt.
            arguments: by wire name.

        Raises:
            ValueError: the function has no such tool or prompt.

        """
        called = [handler for handler in self._handler.handlers if handler.kind in METHODS]
        found = next((handler for handler in called if name in (None, handler.name)), None)
        if found is None:
            names = ", ".join(handler.name for handler in called) or "none (a resource is read: talk.read(uri))"
            message = f"the function has no tool or prompt {name or ''}; it has: {names}"
            raise ValueError(message)
        return self._begin(METHODS[found.kind], {"name": found.name, "arguments": arguments})

    def get(self, name: str | None = None, /, **arguments: str) -> Self:
        """Get a prompt: `call` by the specification's word."""
        return self.call(name, **arguments)

    def read(self, uri: str) -> Self:
        """Read a resource."""
        return self._begin("resources/read", {"uri": uri})

    def accept(self, **answers: Any) -> Self:  # noqa: ANN401 - JSON values
        """Fill in forms: `accept(original={"id": 7})`. Of a form with one value, just that: `accept(agree=True)`."""
        filled = {key: self._filled(key, content) for key, content in answers.items()}
        return self.answer(**{key: {"action": "accept", "content": content} for key, content in filled.items()})

    def decline(self, *keys: str) -> Self:
        """Say no to the questions named, or to all of them."""
        return self.answer(**{key: {"action": "decline"} for key in keys or self.asked})

    def cancel(self, *keys: str) -> Self:
        """Close the questions named, or all of them, without answering."""
        return self.answer(**{key: {"action": "cancel"} for key in keys or self.asked})

    def answer(self, **responses: Mapping[str, Any]) -> Self:
        """Send the next round with these `inputResponses`, whatever they are, and the state as it came.

        In a task: answer with them (`tasks/update`), and poll.
        """
        if self.task_id:
            return self._about("tasks/update", inputResponses=dict(responses)).poll()
        return self._send(inputResponses=dict(responses), requestState=self.state)

    def go_on(self) -> Self:
        """Send the next round while the function ends rounds without a question, as clients do.

        Raises:
            AssertionError: it ended so many that the official clients would have given up.

        """
        for _ in range(PATIENCE):
            if self.done or self.asked:
                return self
            self.answer()
        message = f"the function ended {PATIENCE} rounds without a question: clients give up"
        raise AssertionError(message)

    def poll(self) -> Self:
        """Let the worker come that was called for the task, and ask how the task is (`tasks/get`)."""
        worker, raised = f"{environment.STACK}-{self.function}{WORKER}", list[BaseException]()
        for order in orders(worker):
            with environment.applied(self._signed_in()), _listening(raised):
                self._container(order, Context(worker, WORKER_MS))
        self._about("tasks/get")
        self.raised = raised[-1] if raised else self.raised
        return self

    def cancel_task(self) -> Self:
        """Say that the task is not wanted any more (`tasks/cancel`), and ask how it is."""
        return self._about("tasks/cancel").poll()

    def retry(self) -> Self:
        """Send the last round again, as a client does that lost the answer."""
        return self._send(**self._sent)

    def tamper(self, change: Callable[[str], str] = lambda token: f"{token}A") -> Self:
        """Send the next round with a state that somebody changed."""
        return self._send(inputResponses={}, requestState=change(self.state))

    def as_(self, principal: Principal | str) -> Self:
        """Hand a copy of the conversation, its state and all, to somebody else: `talk.as_("somebody else").accept(…)`.

        Raises:
            ValueError: it is nobody's conversation, so nobody is somebody else.

        """
        if self._principal is None:
            message = 'begin as somebody: Conversation(handler, principal="alice")'
            raise ValueError(message)
        theirs = copy.copy(self)
        theirs.rounds, theirs._principal = list(self.rounds), _principal(principal)  # noqa: SLF001 - one of us
        return theirs

    def later(self, *, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0) -> Self:
        """Let time pass before the next round, on the function's clock and API Gateway's."""
        self._ahead += timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds).total_seconds()
        return self.upgrade(self._handler)

    def upgrade(self, handler: Callable[..., Any]) -> Self:
        """Deploy another version: it answers from the next round on."""
        self._handler: LambdaFunction = unwrap(handler)
        if self._fresh:
            self._container: Callable[..., dict[str, Any]] = Cold(self._handler, lambda: self._ahead)
        else:
            self._container = Warm(self._handler, self._now) if self._ahead else Warm.of(self._handler)
        return self

    @property
    def done(self) -> bool:
        """Whether the last round was the last: a result, or an error."""
        if self.task_id and "status" in self.body.get("result", {}):
            return self.result["status"] not in ("working", "input_required")
        return bool(self.body.get("result", {}).get("resultType") != "input_required")

    @property
    def task_id(self) -> str:
        """The id of the task that the call became; "" if it became none."""
        created = [body["result"] for body in self._bodies() if body.get("result", {}).get("resultType") == "task"]
        return str(created[-1]["taskId"]) if created else ""

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
    def messages(self) -> dict[str, str]:
        """The words of the questions to the user that are open now."""
        return {key: asked["params"]["message"] for key, asked in self.requests.items() if "message" in asked["params"]}

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
        """The last result.

        Raises:
            AssertionError: there is none; it says what there is, and what the function's line says of it.

        """
        return self._last("result")

    @property
    def error(self) -> dict[str, Any]:
        """The last error.

        Raises:
            AssertionError: there is none, as above.

        """
        return self._last("error")

    @property
    def text(self) -> str:
        """The text of the last result: of a tool, a prompt or a resource."""
        match self.result:
            case {"content": list(blocks)} | {"result": {"content": list(blocks)}}:
                return "\n".join(block["text"] for block in blocks if block["type"] == "text")
            case {"messages": list(messages)}:
                return "\n".join(message["content"]["text"] for message in messages)
            case {"contents": list(contents)}:
                return "\n".join(content["text"] for content in contents)
        return ""

    def _last(self, part: str) -> dict[str, Any]:
        if part in (body := self.body):
            found: dict[str, Any] = body[part]
            return found
        there = json.dumps({name: body[name] for name in body if name not in ("jsonrpc", "id")}, ensure_ascii=False)
        why = "".join(f"; {line}" for line in self._said) + (f"; it raised {self.raised!r}" if self.raised else "")
        outside = "" if os.environ.get("MCP_STACK") else OUTSIDE
        message = f"no {part}, but HTTP {self.status} {there}{why}{outside}"
        raise AssertionError(message)

    def _filled(self, key: str, content: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON values
        if isinstance(content, Mapping):
            return dict(content)
        form = self.requests.get(key, {}).get("params", {}).get("requestedSchema", {})
        return {next(iter(form.get("properties", [key]))): content}

    def _bodies(self) -> list[dict[str, Any]]:
        return [_message(response) for _event, response in self.rounds]

    def _now(self) -> float:
        return self._handler.now() + self._ahead

    def _about(self, method: str, **more: Any) -> Self:  # noqa: ANN401 - JSON values
        called = self._method, self._params
        self._method, self._params = method, {"taskId": self.task_id, **more}
        try:
            return self._send()
        finally:
            self._method, self._params = called

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
        raised = list[BaseException]()
        with environment.applied(self._signed_in()), _listening(raised) as self._said:
            response = self._container(json.loads(json.dumps(sent)), context)
        self.raised = raised[-1] if raised else None
        if self.raised and _ends_test(self.raised):
            raise self.raised  # `pytest.fail()` in a function ends the test, as it does outside of one
        self.rounds.append((sent, response))
        return self

    def _signed_in(self) -> Mapping[str, str | None]:
        return environment.for_tokens(issuer=self._principal.iss, resource=RESOURCE) if self._principal else {}

    def _event(self, body: bytes) -> dict[str, Any]:
        headers = {
            "Host": "localhost",
            "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json",
            "MCP-Protocol-Version": PROTOCOL_VERSION,
            "Mcp-Method": self._method,
            "Mcp-Name": self._params[NAMED[self._method]],
        }
        route = f"/mcp/{self.function}"
        request = HttpRequest("POST", route, tuple(headers.items()), body)
        return event(request, route, self._moment(), self._authorizer())

    def _authorizer(self) -> dict[str, Any] | None:
        if (who := self._principal) is None:
            return None
        claims = {"iss": who.iss, "sub": who.sub, "client_id": who.client, "aud": RESOURCE}
        granted = {"exp": str(int(self._now()) + TOKEN_SECONDS), "scope": " ".join(self._scopes)}
        return {"jwt": {"claims": claims | granted, "scopes": None}}


@contextmanager
def _listening(raised: list[BaseException]) -> Iterator[list[str]]:
    """Hear what the lines of this thread's requests say of what went wrong: the wire is told nothing of it.

    Args:
        raised: is given what their functions raised by accident.

    """
    said, thread, log = list[str](), get_ident(), logging.getLogger("mcp_functions")
    # where nothing is set up, Python itself writes to stderr, but not where there is a handler such as this one
    last = None if log.hasHandlers() else logging.lastResort

    class Ear(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if last and record.levelno >= last.level:
                last.handle(record)
            if record.levelno >= logging.ERROR and record.thread == thread and not hasattr(record, "outcome"):
                said.append(record.getMessage())

    def hear(notes: Notes) -> None:  # by whatever logger the line of a request is written
        if lines.level_of(notes) == logging.ERROR:
            said.append(lines.message(notes))
        if notes.raised:
            raised.append(notes.raised)

    log.addHandler(ear := Ear())
    listening = listener.set(hear)
    try:
        yield said
    finally:
        listener.reset(listening)
        log.removeHandler(ear)


def _ends_test(error: BaseException) -> bool:
    return any(kind.__module__.partition(".")[0] in TEST_RUNNERS for kind in type(error).__mro__)


def _principal(who: Principal | str | None) -> Principal | None:
    return Principal("https://issuer.example", who, "client") if isinstance(who, str) else who


def _message(response: Mapping[str, Any]) -> dict[str, Any]:
    body = str(response["body"])
    if response["headers"].get("content-type") == "text/event-stream":
        body = [line for line in body.splitlines() if line.startswith("data: ")][-1].removeprefix("data: ")
    message: dict[str, Any] = json.loads(body)
    return message
