"""A deployment of a function with tasks, in one process, and a client that calls the function.

task = alice.start_task("publish", title="Lisbon")   the function stores a task, and invokes a worker
deployment.run_workers()                             the invocation waits for this: now the worker runs
deployment.clock.advance(30)                         time passes only here
alice.get(task)                                      the client polls the task
"""

from __future__ import annotations

import base64
from collections import deque
from typing import TYPE_CHECKING, Any

from mcp_functions import store
from mcp_functions.assembly import assemble
from mcp_functions.http.gateway import LambdaFunction
from mcp_functions.seal.codec_adapter import CodecAdapter
from mcp_functions.seal.request_state import RequestStates
from mcp_functions.store import DynamoDbTable, SealedTable
from mcp_functions.tasks.task_store import TaskStore
from mcp_functions_harness.testing.dynamodb import MemoryTable
from tests.support import wire
from tests.support.dispatching import OwnStates, make_parts
from tests.support.settings import make_settings
from tests.support.strict_kms import Clock

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_functions.handlers.base import Handler
    from mcp_functions_harness.testing.dynamodb import Fault

RESOURCE, ISSUER = "https://mcp.example/mcp", "https://id.example"
FUNCTION = "work"


class TransparentSeal:
    """A seal that encrypts nothing; its tokens are as long as real ones, because the table has a limit."""

    def seal(self, payload: bytes, /) -> str:
        return base64.urlsafe_b64encode(payload).decode()

    def unseal(self, token: str, /) -> bytes:
        return base64.urlsafe_b64decode(token)


class Deployment:
    """One function with its table and its worker.

    Attributes:
        clock: the clock of the function, its workers and the table; a test advances it.
        table: the table in memory.
        store: the tasks in this table.
        invocations: the task id and the owner of each worker invocation that has not run yet.

    """

    def __init__(self, *handlers: Handler[..., Any], **options: Any) -> None:  # noqa: ANN401 - more settings
        """Deploy some handlers.

        Args:
            handlers: the tools.
            options: `audit`, the author's audit function; `seal`, which encrypts the items of the table; `clock`; and
                fields of `Settings`.
        """
        self._audit = options.pop("audit", None)
        seal = options.pop("seal", CodecAdapter(TransparentSeal(), store.LABEL))
        self.clock = options.pop("clock", None) or Clock()
        self.table = MemoryTable()
        self.invocations: deque[tuple[str, str | None]] = deque()
        self.state_seal = wire.PlainCodec()
        defaults: dict[str, Any] = {"auth_mode": "jwt", "jwt_issuer": ISSUER, "jwt_audiences": (RESOURCE,)}
        self.settings = make_settings(resource_url=RESOURCE, server_name="tested", **{**defaults, **options})
        self._items = SealedTable(
            DynamoDbTable(self.table.name, lambda: self.table),
            seal,
            f"local/{FUNCTION}",
            max_age=self.settings.max_task_ttl,
            now=self.clock,
        )
        limit = self.settings.max_open_tasks
        self.store = TaskStore(self._items, FUNCTION, self.invoke_worker, max_open_tasks=limit, now=self.clock)
        self.deploy(*handlers)

    def deploy(self, *handlers: Handler[..., Any]) -> None:
        """Replace the function by one with these handlers. The table keeps the tasks."""

        def states(lifetime: int) -> RequestStates:
            return RequestStates(CodecAdapter(self.state_seal, b""), now=self.clock, lifetime_seconds=lifetime)

        seals = OwnStates(self.settings, states)
        seals.table = lambda max_age: self._items  # type: ignore[method-assign]  # noqa: ARG005
        parts = make_parts(handlers, self.settings, FUNCTION, seals, now=self.clock, audit=self._audit)
        parts.audience = "local/work/test"
        parts.invoke_worker = self.invoke_worker
        self.endpoint = assemble(parts)
        self.function = LambdaFunction(lambda _name, _now: self.endpoint, handlers, now=self.clock)

    def before_table_operation(self, action: Callable[[str], Fault]) -> None:
        """Call a function with the name of each operation of the table before it runs; the fault it returns happens."""
        self.table.weather = action

    def repair_table(self) -> None:
        """Undo `before_table_operation`."""
        self.table.weather = lambda _operation: None

    def invoke_worker(self, task_id: str, owner: str | None) -> None:
        """Queue an invocation, as Lambda does for an asynchronous call."""
        self.invocations.append((task_id, owner))

    def run_workers(self, seconds: float = 900) -> int:
        """Run every queued worker, also those that the workers invoke; return how many ran.

        Args:
            seconds: what each worker has left of Lambda's timeout.
        """
        runs = 0
        while self.invocations:
            self.run_worker(self.invocations.popleft(), seconds)
            runs += 1
        return runs

    def run_worker(self, invocation: tuple[str, str | None], seconds: float = 900) -> None:
        """Run one worker, as Lambda does."""
        task_id, owner = invocation
        event = {"mcpTask": {"id": task_id, "owner": owner}}
        assert self.function(event, wire.Context("local_work-worker", int(seconds * 1000))) == {}


class Client:
    """A client of the function.

    Args:
        deployment: what it calls.
        name: the subject of its access token.
        capabilities: what it declares; tasks and every question by default.
        scope: the scopes of its access token, separated by spaces.

    Attributes:
        oauth_client: the OAuth client that has the token.
        address: the IP address of the client.
        response: the last HTTP response.
    """

    oauth_client = "c"
    address = "192.0.2.1"

    def __init__(
        self,
        deployment: Deployment,
        name: str = "alice",
        *,
        capabilities: Mapping[str, Any] = wire.TASK_CAPABILITIES,
        scope: str = "",
    ) -> None:
        self.deployment = deployment
        self.name = name
        self.capabilities = capabilities
        self.scope = scope
        self.response: dict[str, Any] = {}

    def send(self, method: str, params: Mapping[str, Any], **options: Any) -> dict[str, Any]:  # noqa: ANN401 - see wire
        """Send one request, and return the JSON-RPC message of the response, checked against the official types."""
        sent = wire.message(method, params, capabilities=self.capabilities)
        claims = {"iss": ISSUER, "sub": self.name, "aud": RESOURCE, "scope": self.scope}
        claims |= {"client_id": self.oauth_client, "exp": str(int(self.deployment.clock()) + 60)}
        http = {"method": "POST", "path": "/mcp", "sourceIp": self.address}
        context = {"authorizer": {"jwt": {"claims": claims}}, "http": http}
        self.response = self.deployment.function(
            wire.event(sent, context=context, **options), wire.Context("local_work", 28_000)
        )
        return wire.read(self.response, method)

    def call(self, name: str, /, **arguments: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
        """Call a tool, and return the result."""
        return self.result("tools/call", {"name": name, "arguments": arguments})

    def start_task(self, name: str, /, **arguments: Any) -> str:  # noqa: ANN401 - JSON
        """Call a tool that becomes a task; return the task's id."""
        result = self.call(name, **arguments)
        assert result["resultType"] == "task"
        return str(result["taskId"])

    def get(self, task_id: str) -> dict[str, Any]:
        """Poll a task. A poll also calls another worker, if the last one does not work any more."""
        return self.result("tasks/get", {"taskId": task_id})

    def update(self, task_id: str, **responses: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
        return self.result("tasks/update", {"taskId": task_id, "inputResponses": responses})

    def accept(self, task_id: str, **answers: dict[str, Any]) -> dict[str, Any]:
        """Fill in the forms of a task's questions: `accept(task, approve={"yes": True})`."""
        responses = {key: {"action": "accept", "content": content} for key, content in answers.items()}
        return self.update(task_id, **responses)

    def cancel(self, task_id: str) -> dict[str, Any]:
        return self.result("tasks/cancel", {"taskId": task_id})

    def result(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        message = self.send(method, params)
        assert "result" in message, message
        result: dict[str, Any] = message["result"]
        return result

    def error(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        message = self.send(method, params)
        assert "error" in message, message
        error: dict[str, Any] = message["error"]
        return error


def result_text(result: Mapping[str, Any]) -> str:
    """Return the text of a tool's result."""
    return str(result["content"][0]["text"])
