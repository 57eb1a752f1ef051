"""A deployment of functions with tasks, in one process. Its clock and its workers move only when a test moves them.

Events go in and responses come out. A worker invocation waits in a queue until the test runs the worker.
"""

from __future__ import annotations

import base64
from collections import deque
from typing import TYPE_CHECKING, Any

from mcp_functions import store
from mcp_functions.handlers import catalog, lookup
from mcp_functions.http.exchange import Endpoint
from mcp_functions.http.gateway import LambdaFunction
from mcp_functions.seal.codec_adapter import CodecAdapter
from mcp_functions.seal.request_state import RequestStates
from mcp_functions.settings import Settings
from mcp_functions.store import DynamoDbTable, SealedTable
from mcp_functions.tasks import Tasks, Worker
from mcp_functions.testing.dynamodb import MemoryTable
from tests.support import wire
from tests.support.dispatching import dispatcher
from tests.support.strict_kms import Clock, Repeatable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.handlers.base import Handler

RESOURCE, ISSUER = "https://mcp.example/mcp", "https://id.example"
FUNCTION = "work"


class Glass:
    """A seal that hides nothing and takes as much room as a real one: the table counts it."""

    def seal(self, payload: bytes, /) -> str:
        return base64.urlsafe_b64encode(payload).decode()

    def unseal(self, token: str, /) -> bytes:
        return base64.urlsafe_b64decode(token)


class World:
    """One function with its table and its worker.

    Attributes:
        clock: of everybody.
        table: whose weather a test decides.
        summoned: the orders of workers that have not come yet.

    """

    def __init__(self, *handlers: Handler[..., Any], **options: Any) -> None:  # noqa: ANN401 - more settings
        """Deploy some handlers. `audit` is the author's, `codec` seals the items by `clock`."""
        audit, seal = options.pop("audit", None), options.pop("seal", CodecAdapter(Glass(), store.LABEL))
        self.clock, self.table, self.rand = options.pop("clock", None) or Clock(), MemoryTable(), Repeatable()
        self.summoned: deque[tuple[str, str | None]] = deque()
        self.boxes, self.slept = wire.Boxes(), list[float]()
        known: dict[str, Any] = {"auth_mode": "jwt", "jwt_issuer": ISSUER, "jwt_audiences": (RESOURCE,)}
        self.settings = Settings(stack="local", resource_url=RESOURCE, server_name="tested", **{**known, **options})
        items = SealedTable(
            DynamoDbTable(self.table.name, lambda: self.table),
            seal,
            f"local/{FUNCTION}",
            max_age=self.settings.max_task_ttl,
            now=self.clock,
        )
        self.tasks = Tasks(handlers, self.settings, FUNCTION, items, self.summon, now=self.clock)
        self.worker = Worker(self.tasks.tools, self.tasks.store, now=self.clock, audit=audit, sleep=self.slept.append)

        def states(lifetime: int) -> RequestStates:
            return RequestStates(
                CodecAdapter(self.boxes, b""), now=self.clock, lifetime_seconds=lifetime, rand=self.rand
            )

        server = dispatcher(
            handlers, self.settings, "local/work/test", states, now=self.clock, tasks=self.tasks, audit=audit
        )
        parameters = lookup.header_names(catalog.build(handlers))
        self.endpoint = Endpoint(self.settings, server.answer, header_parameters=parameters, run_task=self.worker.work)
        self.function = LambdaFunction(lambda _name, _now: self.endpoint, handlers, now=self.clock)

    def summon(self, task_id: str, owner: str | None) -> None:
        self.summoned.append((task_id, owner))

    def work(self, seconds: float = 900) -> int:
        """Let every worker come that was summoned, and those that these summon; say how many came."""
        came = 0
        while self.summoned:
            self.come(self.summoned.popleft(), seconds)
            came += 1
        return came

    def come(self, summons: tuple[str, str | None], seconds: float = 900) -> None:
        """Let one worker come, as Lambda starts it."""
        task_id, owner = summons
        event = {"mcpTask": {"id": task_id, "owner": owner}}
        assert self.function(event, wire.Context("local_work-worker", int(seconds * 1000))) == {}


class Client:
    """A client that declares tasks."""

    def __init__(
        self, world: World, name: str = "alice", *, capabilities: Mapping[str, Any] = wire.WITH_TASKS, scope: str = ""
    ) -> None:
        self.world, self.name, self.capabilities, self.scope = world, name, capabilities, scope
        self.response: dict[str, Any] = {}

    def send(self, method: str, params: Mapping[str, Any], **options: Any) -> dict[str, Any]:  # noqa: ANN401 - see wire
        """Send one request, and return the JSON-RPC message that came back, judged."""
        sent = wire.message(method, params, capabilities=self.capabilities)
        claims = {"iss": ISSUER, "sub": self.name, "client_id": "c", "aud": RESOURCE, "scope": self.scope}
        claims["exp"] = str(int(self.world.clock()) + 60)
        context = {"authorizer": {"jwt": {"claims": claims}}}
        self.response = self.world.function(
            wire.event(sent, context=context, **options), wire.Context("local_work", 28_000)
        )
        return wire.read(self.response, method)

    def call(self, name: str, /, **arguments: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
        return self.result("tools/call", {"name": name, "arguments": arguments})

    def begin(self, name: str, /, **arguments: Any) -> str:  # noqa: ANN401 - JSON
        """Call a tool that becomes a task; return the task's id."""
        result = self.call(name, **arguments)
        assert result["resultType"] == "task"
        return str(result["taskId"])

    def get(self, task_id: str) -> dict[str, Any]:
        return self.result("tasks/get", {"taskId": task_id})

    def update(self, task_id: str, **responses: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
        return self.result("tasks/update", {"taskId": task_id, "inputResponses": responses})

    def accept(self, task_id: str, **answers: dict[str, Any]) -> dict[str, Any]:
        return self.update(
            task_id, **{key: {"action": "accept", "content": content} for key, content in answers.items()}
        )

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


def text(result: Mapping[str, Any]) -> str:
    """Return the text of a tool's result."""
    return str(result["content"][0]["text"])
