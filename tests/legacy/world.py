"""A deployment for clients of 2025, in one process: its clock and its table do what a test says.

Handlers live in one function, which is asked directly, or through the front door; each request can find new containers.
The seal is the real one, and KMS a box that counts.
"""

from __future__ import annotations

import io
import json
import os
from typing import TYPE_CHECKING, Any

from mcp_functions.dispatch.seal_factory import SealFactory
from mcp_functions.front_door import FrontDoor
from mcp_functions.handlers import catalog
from mcp_functions.http.exchange import Endpoint
from mcp_functions.http.gateway import LambdaFunction
from mcp_functions.legacy import LegacyServer, ModernServer
from mcp_functions.settings import Settings
from mcp_functions.store import DynamoDbTable, SealedTable
from mcp_functions.testing.dynamodb import MemoryTable
from tests.legacy.clients import ISSUER, RESOURCE, Client
from tests.support import wire
from tests.support.dispatching import dispatcher
from tests.support.strict_kms import Clock

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_functions.handlers.base import Handler

START = 1_785_000_000.0
DOORS = ["direct", "behind the front door"]
LAMBDA_MS = 28_000


class Kms:
    """Wraps data keys as a `Wrapping` must, and records the calls."""

    id = "arn:aws:kms:eu-west-1:111122223333:key/0a"

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.failure: Exception | None = None
        self._keys: dict[bytes, tuple[bytes, dict[str, str]]] = {}

    def generate(self, context: dict[str, str]) -> tuple[bytes, bytes]:
        self._ask("generate")
        plaintext, wrapped = os.urandom(32), os.urandom(184)
        self._keys[wrapped] = (plaintext, context)
        return plaintext, wrapped

    def unwrap(self, wrapped: bytes, context: dict[str, str]) -> bytes:
        self._ask("unwrap")
        plaintext, known = self._keys[wrapped]
        assert known == context
        return plaintext

    def _ask(self, operation: str) -> None:
        self.asked.append(operation)
        if self.failure:
            raise self.failure


class KeptSealFactory(SealFactory):
    """A seal factory whose table is in memory."""

    memory: MemoryTable

    def _make_table(self, max_age: int) -> Any:  # noqa: ANN401 - a Table
        from mcp_functions import store  # noqa: PLC0415

        rows = DynamoDbTable(self.memory.name, lambda: self.memory)
        return SealedTable(rows, self.seal(store.LABEL, max_age=max_age), self._service, max_age=max_age, now=self._now)


class World:
    """One deployment.

    Attributes:
        clock: of everybody.
        table: whose weather a test decides.
        kms: that everybody asks.
        died: asked before each round whether its function dies in it.
        ran: rounds that functions ran.

    """

    def __init__(self, *handlers: Handler[..., Any], door: str = "direct", keys: bool = True, **options: Any) -> None:  # noqa: ANN401 - more settings
        """Deploy some handlers; without `keys` nothing can be sealed, and with `table=""` nothing kept."""
        self.handlers, self.door, self.keys = handlers, door, keys
        self.clock, self.table, self.kms = Clock(START), MemoryTable(), Kms()
        self.slept: list[float] = []
        known: dict[str, Any] = {"auth_mode": "jwt", "jwt_issuer": ISSUER, "jwt_audiences": (RESOURCE,)}
        known |= {"table": self.table.name, "server_name": "tested"}
        self.settings = Settings(stack="local", resource_url=RESOURCE, **{**known, **options})
        self.ran = 0
        self.died: Callable[[], bool] = lambda: False
        self.anew()

    def anew(self) -> None:
        """Let every container be a new one: nothing read, nothing kept."""
        self._function = self._functions()
        self._endpoint = self._front() if self.door != "direct" else self._function

    def __call__(self, event: Mapping[str, Any], context: Any) -> dict[str, Any]:  # noqa: ANN401 - Lambda's context object
        """Answer one event as API Gateway does: a function that died becomes a 503."""
        if "requestContext" in event:
            event = {**event, "requestContext": {**event["requestContext"], "timeEpoch": int(self.clock() * 1000)}}
        try:
            return self._endpoint(event, context)
        except Died:
            return {"statusCode": 503, "headers": {"content-type": "application/json"}, "body": '{"message":null}'}

    def client(self, name: str | None = "alice", **options: Any) -> Client:  # noqa: ANN401 - see Client
        """Make a client for a user."""
        context = wire.Context("local_mcp" if self.door != "direct" else "local_all", LAMBDA_MS)
        signed = None if self.settings.auth_mode == "none" else name
        return Client(self, signed, context=context, now=self.clock, **options)

    def _vault(self, folder: str) -> KeptSealFactory:
        seal_factory = KeptSealFactory(self.settings, f"local/{folder}", [self.kms], now=self.clock)
        seal_factory.memory = self.table
        return seal_factory

    def _functions(self) -> LambdaFunction:
        seal_factory = self._vault("all")
        server = dispatcher(
            self.handlers, self.settings, "local/all/prod", seal_factory.states, seal_factory.table, now=self.clock
        )

        def answer(request: Any) -> Any:  # noqa: ANN401 - as Dispatcher.answer has them
            if request.message["method"] in ("tools/call", "prompts/get", "resources/read"):
                self.ran += 1
                if self.died():
                    raise Died
            return server.answer(request)

        modern = ModernServer(answer, catalog.build(self.handlers))
        kept = seal_factory if self.keys else None
        legacy = LegacyServer(self.settings, modern, kept, now=self.clock, sleep=self._sleep)
        own = legacy if self.door == "direct" else None
        return LambdaFunction(lambda _name, _now: Endpoint(self.settings, answer, handle_legacy=own), now=self.clock)

    def _front(self) -> LambdaFunction:
        offered = catalog.build(self.handlers, "all")
        front = FrontDoor(offered, self.settings, lambda: Invoke(self), {"instructions": "Be nice"}, now=self.clock)
        vault = self._vault("mcp") if self.keys else None
        legacy = LegacyServer(
            self.settings, ModernServer(front.answer, offered), vault, now=self.clock, sleep=self._sleep
        )
        return LambdaFunction(
            lambda _name, _now: Endpoint(self.settings, front.answer, handle_legacy=legacy), now=self.clock
        )

    def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.clock.advance(seconds)

    def invoke(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """Run the function behind the front door."""
        assert event["headers"]["mcp-protocol-version"] == "2026-07-28"
        return self._function(event, wire.Context("local_all", LAMBDA_MS))


class Died(KeyboardInterrupt):
    """Lambda has ended a function, so it sends no response."""


class Invoke:
    """Lambda's Invoke API."""

    def __init__(self, world: World) -> None:
        self._world = world

    def invoke(self, *, FunctionName: str, Payload: bytes) -> dict[str, Any]:  # noqa: N803 - boto3's names
        assert FunctionName == "local_all"
        try:
            response = self._world.invoke(json.loads(Payload))
        except Died:
            told = {"errorType": "Sandbox.Timedout", "errorMessage": "Task timed out"}
            return {"StatusCode": 200, "FunctionError": "Unhandled", "Payload": io.BytesIO(json.dumps(told).encode())}
        return {"StatusCode": 200, "Payload": io.BytesIO(json.dumps(response).encode())}
