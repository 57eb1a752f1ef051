"""Puts the endpoint of a Lambda function together: what answers its requests, and the features of its deployment.

    serve(add)              the function has handlers
    serve_catalog(path)     the function is a front door, which forwards requests to the functions with the handlers

Each optional feature is wired here, by its name. An operator may delete the folder of such a feature from the layer
(`settings.is_deployed`). A request then gets what the specification says of a server without the feature.
"""

from __future__ import annotations

import os
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

from mcp_functions.handlers import lookup
from mcp_functions.http import identity
from mcp_functions.http.exchange import Endpoint
from mcp_functions.protocol.constants import WORKER_SUFFIX
from mcp_functions.settings import Settings, is_deployed
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Protocol

    from mcp_functions.dialects import FrontDoorDialects, FunctionDialects
    from mcp_functions.dispatch.conversations import Conversations
    from mcp_functions.dispatch.seal_factory import SealFactory
    from mcp_functions.handlers.base import Handler
    from mcp_functions.legacy import LegacyServer
    from mcp_functions.protocol.catalog_types import Catalog
    from mcp_functions.protocol.messages import AnyResult, ForwardedResponse, Request
    from mcp_functions.rounds.audit import AuditRecord
    from mcp_functions.seal.codec_adapter import Codec
    from mcp_functions.seal.kms import Wrapping
    from mcp_functions.skills import Skills

    class Forwarder(Protocol):
        """What a front door is to its endpoint (`front_door.FrontDoor`)."""

        @property
        def catalog(self) -> Catalog:
            """The handlers of all functions."""

        def answer(self, request: Request) -> AnyResult:
            """Answer a request, or forward it to the function that serves it."""

        def forward(self, function: str, request: Request) -> ForwardedResponse:
            """Forward a request to the function in a folder."""

        def showing(self, catalog: Catalog) -> Forwarder:
            """Return a front door with another catalog."""


class Options(NamedTuple):
    """The arguments of `serve` from which the endpoint is made."""

    handlers: Sequence[Handler[..., Any]] = ()
    audience: str | None = None
    wrapping: Sequence[Wrapping] | None = None
    codec: Codec | None = None
    audit: Callable[[AuditRecord], object] | None = None
    skills: str | os.PathLike[str] | None = None  # the path of skills.json, also of a front door


class Parts:
    """What the endpoint of one Lambda function is made of.

    Attributes:
        settings: the settings of the deployment, as far as this function has the permissions for them.
        folder: the folder in functions/: "booking" for the function "shop_booking" of the stack "shop".
        now: the clock, in unix seconds.
        options: the arguments of `serve`.
        service: functions with the same service share data keys: "shop/booking".
        audience: functions with the same audience share states: "shop/booking/prod" in the stage "prod".
    """

    def __init__(
        self, settings: Settings, folder: str, now: Callable[[], float], options: Options | None = None
    ) -> None:
        """Keep the parts; nothing is called yet."""
        self.settings = settings
        self.folder = folder
        self.now = now
        self.options = options or Options()
        self.service = self.options.audience or f"{settings.stack}/{folder}"
        self.audience = f"{self.service}/{settings.stage}"

    @cached_property
    def seals(self) -> SealFactory | None:
        """What encrypts the states that clients carry, and the items of the table; None if the function has no keys."""
        if self.options.codec or self.options.wrapping or self.settings.kms_keys:
            return self.make_seals()
        return None

    def make_seals(self) -> SealFactory:
        """Make what encrypts. If the function has no keys, its first use fails."""
        # many functions seal nothing
        from mcp_functions.dispatch.seal_factory import SealFactory

        return SealFactory(self.settings, self.service, self.options.wrapping, self.options.codec, now=self.now)

    @cached_property
    def invoke_worker(self) -> Callable[[str, str | None], None]:
        """Invokes the worker of this function for the id and the owner of a task."""
        # few functions have tasks
        from mcp_functions.tasks.task_store import WorkerInvoker

        # The worker of the same version or alias (qualifier) is invoked: another version might not know these states.
        name = f"{self.settings.stack}_{self.folder}{WORKER_SUFFIX}{self.settings.qualifier}"
        return WorkerInvoker(name)


def read_settings() -> Settings:
    """Read the settings of this function from its environment. A warning in the log says if anybody may call."""
    settings = Settings(os.environ)
    identity.warn_if_open(settings)
    return settings


def assemble(parts: Parts, front_door: Forwarder | None = None) -> Endpoint:
    """Put the endpoint of a function together, with its handlers, or with a front door in their place."""
    settings, now, audit, handlers = parts.settings, parts.now, parts.options.audit, parts.options.handlers

    # Tasks: a tool has `task=…`.
    tasks = run_task = None
    if any(handler.task for handler in handlers) and parts.seals and is_deployed("tasks"):
        # few functions have tasks
        from mcp_functions.tasks import methods, task_store, worker

        table = parts.seals.table(settings.max_task_ttl)
        store = task_store.TaskStore(
            table, parts.folder, parts.invoke_worker, max_open_tasks=settings.max_open_tasks, now=now
        )
        tasks = methods.Tasks(handlers, settings, store, now=now)
        run_task = worker.Worker(tasks.tools, store, settings, now=now, audit=audit).work

    # Handlers that ask, or that have steps: conversations, imported when the first request needs them.
    def make_conversations() -> Conversations:
        from mcp_functions.dispatch.conversations import Conversations

        return Conversations(parts.audience, parts.seals, now=now, audit=audit, tasks=tasks)

    server: Any = front_door
    if front_door is None:
        # `serve` has imported it at init
        from mcp_functions.dispatch.dispatcher import Dispatcher

        server = Dispatcher(handlers, settings, make_conversations, tasks, _catalog_with_skills(parts))

    # Handlers with `hide_without_scopes`, and skills.
    listed = server.catalog
    answer = _answer_with_skills(_answer_per_caller(server, settings), listed, parts)

    # Clients of 2025: MCP_EARLIER_REVISIONS. The first of them imports what only they need.
    @cache
    def legacy_server() -> LegacyServer:
        from mcp_functions.legacy import LegacyServer

        return LegacyServer(settings, answer, listed, parts.seals, now=now)

    # Dialects: MCP_DIALECTS. They translate requests of their clients; a client of 2025 gets no dialect.
    translator = _make_translator(parts, answer, listed, front_door) if settings.dialects else None

    return Endpoint(
        settings,
        answer=translator.answer if translator else answer,
        catalog=listed,
        is_stopped=settings.stops(parts.folder),
        answer_legacy=(lambda http: legacy_server().respond(http)) if settings.earlier_revisions else None,
        continue_dialect=translator.continue_call if translator else None,
        run_task=run_task,
    )


def _make_translator(
    parts: Parts, answer: Callable[[Request], AnyResult], catalog: Catalog, front_door: Forwarder | None
) -> FrontDoorDialects | FunctionDialects:
    """Make what translates the requests of dialects for `answer`, in a front door or in a function with handlers."""
    # few deployments have one
    from mcp_functions import dialects

    loaded = dialects.load(parts.settings.dialects)
    if front_door is not None:
        return dialects.FrontDoorDialects(loaded, catalog, answer, front_door.forward)
    context = dialects.DialectContext(
        answer_modern=answer,
        folder=parts.folder,
        settings=parts.settings,
        audience=parts.audience,
        states=(parts.seals or parts.make_seals()).states,
        answer_within=max((handler.answer_within for handler in parts.options.handlers), default=1),
        now=parts.now,
    )
    return dialects.FunctionDialects(loaded, context)


def _catalog_with_skills(parts: Parts) -> Catalog | None:
    """Return the catalog of a function with `serve(skills=…)`; None for any other function."""
    if parts.options.skills is None or not is_deployed("skills"):
        return None
    # few functions have skills
    from mcp_functions.handlers import catalog
    from mcp_functions.skills import Bundle

    return Bundle(parts.options.skills).add_to(catalog.build(parts.options.handlers))


# one of two
def _answer_per_caller(server: Any, settings: Settings) -> Callable[[Request], AnyResult]:  # noqa: ANN401
    """Return what answers requests of a dispatcher or a front door; each caller sees what its scopes let it see."""
    answer: Callable[[Request], AnyResult] = server.answer
    if "hidden" in server.catalog:
        # few deployments hide anything
        from mcp_functions.visibility import PerCaller

        answer = PerCaller(server.catalog, settings, lambda shown: server.showing(shown).answer).answer
    return answer


def _answer_with_skills(
    answer_other: Callable[[Request], AnyResult], catalog: Catalog, parts: Parts
) -> Callable[[Request], AnyResult]:
    """Return what answers requests about skills, and all others with `answer_other`."""
    file = parts.options.skills
    if file is None or not catalog.get("skills"):
        return answer_other

    @cache
    def skills() -> Skills:
        """Load the skills when a client first asks for one. No other request needs their modules."""
        from mcp_functions.skills import Bundle, Skills

        return Skills(Bundle(file), catalog, parts.settings, answer_other)

    def answer(request: Request) -> AnyResult:
        is_about_skills = lookup.asks_for_skill(request.method, request.params)
        return skills().answer(request) if is_about_skills else answer_other(request)

    return answer
