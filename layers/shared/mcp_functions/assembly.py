"""Puts the endpoint of a Lambda function together: what answers its requests, and the features of its deployment.

    serve(add)              the function has handlers
    serve_catalog(path)     the function is a front door, and forwards to the functions with the handlers

Each optional feature is wired here, by its name. The folder of such a feature may be deleted from the layer
(`settings.is_deployed`). A request then gets what the specification says of a server without the feature.
"""

from __future__ import annotations

from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

from mcp_functions.http import identity
from mcp_functions.http.exchange import Endpoint
from mcp_functions.protocol.constants import WORKER_SUFFIX
from mcp_functions.settings import is_deployed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Protocol

    from mcp_functions.dispatch.seal_factory import SealFactory
    from mcp_functions.handlers.base import Handler
    from mcp_functions.http.events import HttpRequest, Response
    from mcp_functions.legacy import LegacyServer
    from mcp_functions.protocol.messages import AnyResult, ForwardedResponse, Request
    from mcp_functions.rounds.audit import AuditRecord
    from mcp_functions.seal.codec_adapter import Codec
    from mcp_functions.seal.kms import Wrapping
    from mcp_functions.settings import Settings

    class Forwarder(Protocol):
        """What a front door is to its endpoint (`front_door.FrontDoor`)."""

        catalog: Mapping[str, Any]

        def answer(self, request: Request) -> AnyResult:
            """Answer a request, or forward it to the function that serves it."""

        def forward(self, function: str, request: Request) -> ForwardedResponse:
            """Forward a request to the function in a folder."""


class Parts:
    """What the endpoint of one Lambda function is made of.

    Attributes:
        settings: the settings of the deployment, as far as this function has the permissions for them.
        folder: the folder in functions/: "booking" for the function "shop_booking" of the stack "shop".
        service: functions with the same service share data keys: "shop/booking".
        audience: functions with the same audience share states: "shop/booking/prod" in the stage "prod".
        now: the clock, in unix seconds.
        audit: the author's function that gets a record of each round.
        invoke_worker: invokes a worker for the id and the owner of a task.
    """

    def __init__(
        self,
        settings: Settings,
        folder: str,
        now: Callable[[], float],
        *,
        service: str | None = None,
        wrapping: Sequence[Wrapping] | None = None,
        codec: Codec | None = None,
        audit: Callable[[AuditRecord], object] | None = None,
        invoke_worker: Callable[[str, str | None], None] | None = None,
    ) -> None:
        """Keep the parts; nothing is called. `service`, `wrapping`, `codec` and `audit` are options of `serve`."""
        self.settings = settings
        self.folder = folder
        self.now = now
        self.service = service or f"{settings.stack}/{folder}"
        self.audience = f"{self.service}/{settings.stage}"
        self.audit = audit
        self.invoke_worker = invoke_worker
        self._wrapping = wrapping
        self._codec = codec

    @cached_property
    def seals(self) -> SealFactory | None:
        """What encrypts the states that clients carry, and the items of the table; None if the function has no keys."""
        if not (self._codec or self._wrapping or self.settings.kms_keys):
            return None
        return self.make_seals()

    def make_seals(self) -> SealFactory:
        """Make what encrypts. Without keys, its first use raises `Misconfigured`."""
        from mcp_functions.dispatch.seal_factory import SealFactory  # noqa: PLC0415 - many functions seal nothing

        return SealFactory(self.settings, self.service, self._wrapping, self._codec, now=self.now)


def assemble(parts: Parts, handlers: Sequence[Handler[..., Any]] = (), front_door: Forwarder | None = None) -> Endpoint:
    """Put the endpoint of a function together, with its handlers, or with a front door in their place."""
    settings, now = parts.settings, parts.now
    identity.warn_if_open(settings)  # writes a warning if anybody may call

    # Tasks: a tool has `task=…`.
    tasks = run_task = None
    if any(handler.task for handler in handlers) and parts.seals and is_deployed("tasks"):
        from mcp_functions.tasks import methods, task_store, worker  # noqa: PLC0415 - few functions have tasks

        # The worker of the same version or alias (qualifier) is invoked: another version might not know these states.
        worker_name = f"{settings.stack}_{parts.folder}{WORKER_SUFFIX}{settings.qualifier}"
        invoke = parts.invoke_worker or task_store.WorkerInvoker(worker_name)
        most = settings.max_open_tasks
        table = parts.seals.table(settings.max_task_ttl)
        store = task_store.TaskStore(table, parts.folder, invoke, max_open_tasks=most, now=now)
        tasks = methods.Tasks(handlers, settings, store, now=now)
        run_task = worker.Worker(tasks.tools, store, settings, now=now, audit=parts.audit).work

    server: Any = front_door
    if front_door is None:
        from mcp_functions.dispatch.dispatcher import Dispatcher  # noqa: PLC0415 - `serve` has imported it at init

        server = Dispatcher(handlers, settings, parts.audience, parts.seals, now=now, audit=parts.audit, tasks=tasks)

    @cache
    def legacy_server() -> LegacyServer:
        """Make the server for clients of 2025 when the first of them calls. No other client needs its modules."""
        from mcp_functions.legacy import LegacyServer  # noqa: PLC0415

        return LegacyServer(settings, server.answer, server.catalog, parts.seals, now=now)

    def answer_legacy(http: HttpRequest) -> Response | None:
        return legacy_server()(http)

    # Dialects: MCP_DIALECTS. They translate the requests of their clients for the server.
    translator: Any = None
    if settings.dialects:
        from mcp_functions import dialects  # noqa: PLC0415 - few deployments have one

        loaded = dialects.load(settings.dialects)
        if front_door is not None:
            translator = dialects.FrontDoorDialects(loaded, server.catalog, server.answer, front_door.forward)
        else:
            longest = max((handler.answer_within for handler in handlers), default=1)
            states = (parts.seals or parts.make_seals()).states
            translator = dialects.FunctionDialects(
                loaded,
                dialects.DialectContext(server.answer, parts.folder, settings, parts.audience, states, longest, now),
            )

    return Endpoint(
        settings,
        answer=translator.answer if translator else server.answer,
        catalog=server.catalog,
        is_stopped=settings.stops(parts.folder),
        # Clients of 2025: MCP_EARLIER_REVISIONS. They get no dialect.
        answer_legacy=answer_legacy if settings.earlier_revisions else None,
        continue_dialect=translator.continue_call if translator else None,
        run_task=run_task,
    )
