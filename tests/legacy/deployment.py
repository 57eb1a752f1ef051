"""A deployment with clients of 2025, in one process: a test sets its clock and the failures of its table and of KMS.

The handlers live in one Lambda. Clients reach this Lambda directly or through the front door (`PLACEMENTS`).
The seal is the real one. Its KMS is in memory and records its calls, and so does the table.
"""

from __future__ import annotations

import io
import itertools
import json
import os
from typing import TYPE_CHECKING, Any

from mcp_functions.assembly import assemble
from mcp_functions.dispatch.seal_factory import SealFactory
from mcp_functions.front_door import FrontDoor
from mcp_functions.handlers import catalog
from mcp_functions.http.gateway import LambdaFunction
from mcp_functions.store import DynamoDbTable, SealedTable
from mcp_functions_harness.testing.dynamodb import MemoryTable
from tests.legacy.clients import ISSUER, RESOURCE, Client
from tests.support import wire
from tests.support.dispatching import make_parts
from tests.support.endpoints import Answering
from tests.support.placements import PLACEMENTS
from tests.support.settings import make_settings
from tests.support.strict_kms import Clock

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_functions.handlers.base import Handler
    from mcp_functions_harness.testing import MemoryBucket
    from mcp_functions_harness.testing.dynamodb import Fault

START = 1_785_000_000.0
LAMBDA_MS = 28_000


class MemoryKms:
    """Wraps data keys as a `Wrapping` must, and records the calls."""

    id = "arn:aws:kms:eu-west-1:111122223333:key/0a"

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.failure: Exception | None = None
        self._keys: dict[bytes, tuple[bytes, dict[str, str]]] = {}

    def generate(self, context: dict[str, str]) -> tuple[bytes, bytes]:
        self._record("generate")
        plaintext, wrapped = os.urandom(32), os.urandom(184)
        self._keys[wrapped] = (plaintext, context)
        return plaintext, wrapped

    def unwrap(self, wrapped: bytes, context: dict[str, str]) -> bytes:
        self._record("unwrap")
        plaintext, sealed_context = self._keys[wrapped]
        assert sealed_context == context
        return plaintext

    def _record(self, operation: str) -> None:
        self.calls.append(operation)
        if self.failure:
            raise self.failure


class MemorySealFactory(SealFactory):
    """A seal factory whose table is in memory, and so is the bucket for large payloads, if there is one."""

    memory: MemoryTable
    bucket: MemoryBucket | None

    def _make_table(self, max_age: int) -> Any:  # noqa: ANN401 - a Table
        from mcp_functions import store

        rows = DynamoDbTable(self.memory.name, lambda: self.memory)
        seal = self.seal(store.LABEL, max_age=max_age)
        blobs = None
        if self.bucket:
            blobs = store.BlobStore(self.bucket, self.seal(store.BLOB_LABEL, max_age=max_age), self._service)
        return SealedTable(rows, seal, self._service, max_age=max_age, blobs=blobs, now=self._now)


class Deployment:
    """Handlers, their table, their KMS and their clock.

    Attributes:
        clock: the one clock; a test advances it.
        table: the table in memory; `table.weather` decides which requests fail.
        kms: the KMS in memory; `kms.failure` is raised by every call.
        on_round: called when a function begins a round; the function dies in this round if it returns True.
        rounds_run: how many rounds functions have begun.

    """

    def __init__(
        self,
        *handlers: Handler[..., Any],
        placement: str = PLACEMENTS[0],
        has_key: bool = True,
        bucket: MemoryBucket | None = None,
        **options: Any,  # noqa: ANN401 - more settings
    ) -> None:
        """Deploy some handlers.

        Args:
            handlers: the handlers of the one Lambda.
            placement: whether clients reach the Lambda directly or through the front door.
            has_key: False for a deployment without a key, which seals nothing.
            bucket: for payloads that do not fit into an item of the table; None for a deployment without a bucket.
            options: more settings; with `table=""` nothing is stored.
        """
        self.handlers = handlers
        self.placement = placement
        self.has_key = has_key
        self.bucket = bucket
        self.clock = Clock(START)
        self.table = MemoryTable()
        self.kms = MemoryKms()
        defaults: dict[str, Any] = {
            "auth_mode": "jwt",
            "jwt_issuer": ISSUER,
            "jwt_audiences": (RESOURCE,),
            "resource_url": RESOURCE,
            "server_name": "tested",
            "table": self.table.name,
        }
        self.settings = make_settings(**{**defaults, **options})
        self.rounds_run = 0
        self.on_round: Callable[[], bool] = lambda: False
        self.replace_containers()

    def replace_containers(self) -> None:
        """Replace every Lambda container by a new one, which has no data key and no other memory."""
        self._function = self._make_function()
        self._endpoint = self._function if self.placement == "direct" else self._make_front_door()

    def __call__(self, event: Mapping[str, Any], context: Any) -> dict[str, Any]:  # noqa: ANN401 - Lambda's context object
        """Answer one event as API Gateway does: a function that died becomes a 503."""
        if "requestContext" in event:
            event = {**event, "requestContext": {**event["requestContext"], "timeEpoch": int(self.clock() * 1000)}}
        try:
            return self._endpoint(event, context)
        except FunctionDiedError:
            return {"statusCode": 503, "headers": {"content-type": "application/json"}, "body": '{"message":null}'}

    def client(self, name: str = "alice") -> Client:
        """Make a client for a user."""
        function = "local_all" if self.placement == "direct" else "local_mcp"
        user = None if self.settings.auth_mode == "none" else name
        return Client(self, user, context=wire.Context(function, LAMBDA_MS), now=self.clock)

    def initialized_client(self, name: str = "alice") -> Client:
        """Make a client for a user and let it initialize."""
        client = self.client(name)
        client.initialize()
        return client

    def invoke_function(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """Run the function behind the front door."""
        assert event["headers"]["mcp-protocol-version"] == "2026-07-28"
        return self._function(event, wire.Context("local_all", LAMBDA_MS))

    def fail_table(self, *faults: Fault) -> None:
        """Let the next requests to the table fail in this order; None is a request that succeeds."""
        remaining = list(faults)
        self.table.weather = lambda _operation: remaining.pop(0) if remaining else None

    def fail_every_table_request(self, fault: Fault) -> None:
        """Let all requests to the table fail until `restore_table`."""
        self.table.weather = lambda _operation: fault

    def restore_table(self) -> None:
        """Let all requests to the table succeed."""
        self.fail_table()

    def before_write(self, function: Callable[[], Any], *, number: int = 1) -> None:
        """Call a function before the next write to the table, or a later one, as a concurrent request would run."""
        writes = itertools.count(1)

        def weather(operation: str) -> Fault:
            if operation == "PutItem" and next(writes) == number:
                function()
            return None

        self.table.weather = weather

    def _make_seal_factory(self, folder: str) -> MemorySealFactory:
        seal_factory = MemorySealFactory(self.settings, f"local/{folder}", [self.kms], now=self.clock)
        seal_factory.memory = self.table
        seal_factory.bucket = self.bucket
        return seal_factory

    def _make_function(self) -> LambdaFunction:
        seal_factory = self._make_seal_factory("all")
        server = assemble(make_parts(self.handlers, self.settings, "all", seal_factory, now=self.clock))

        def answer(request: Any) -> Any:  # noqa: ANN401 - as Dispatcher.answer has them
            if request.message["method"] in ("tools/call", "prompts/get", "resources/read"):
                self.rounds_run += 1
                if self.on_round():
                    raise FunctionDiedError
            return server.answer(request)

        return self._make_legacy("all", Answering(answer, server.catalog), seal_factory)

    def _make_front_door(self) -> LambdaFunction:
        offered = catalog.build(self.handlers, "all")
        offered["endpoint"] = {"instructions": "Be nice"}
        front = FrontDoor(offered, self.settings, lambda: Invoke(self), now=self.clock)
        return self._make_legacy("mcp", front, self._make_seal_factory("mcp"))

    def _make_legacy(self, folder: str, server: Any, seal_factory: SealFactory) -> LambdaFunction:  # noqa: ANN401
        parts = make_parts((), self.settings, folder, seal_factory if self.has_key else None, now=self.clock)
        endpoint = assemble(parts, server)
        return LambdaFunction(lambda _name, _now: endpoint, now=self.clock)


class FunctionDiedError(KeyboardInterrupt):
    """Lambda has ended a function, so the function sends no response."""


class Invoke:
    """Lambda's Invoke API."""

    def __init__(self, deployment: Deployment) -> None:
        self._deployment = deployment

    def invoke(self, *, FunctionName: str, Payload: bytes) -> dict[str, Any]:  # noqa: N803 - boto3's names
        assert FunctionName == "local_all"
        try:
            response = self._deployment.invoke_function(json.loads(Payload))
        except FunctionDiedError:
            error = {"errorType": "Sandbox.Timedout", "errorMessage": "Task timed out"}
            return {"StatusCode": 200, "FunctionError": "Unhandled", "Payload": io.BytesIO(json.dumps(error).encode())}
        return {"StatusCode": 200, "Payload": io.BytesIO(json.dumps(response).encode())}


class CallOnce:
    """Calls a function the first time it is called itself, and nothing afterwards.

    As `on_round` it makes a function die if its own function returns True.
    """

    def __init__(self, function: Callable[[], Any]) -> None:
        self._function: Callable[[], Any] | None = function

    def __call__(self) -> bool:
        function, self._function = self._function, None
        return function is not None and function() is True
