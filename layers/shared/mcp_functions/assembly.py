"""Puts the endpoint of a Lambda function together: what answers its requests, and the features of its deployment.

    serve(add)              the function has handlers
    serve_catalog(path)     the function is the front door, which forwards requests to the functions with the handlers

Each function has an endpoint, which answers its HTTP requests (`http.exchange.Endpoint`). The front door is the
function in functions/mcp, whose endpoint is that of the whole server: clients know its URL.

Each optional feature is wired here, by its name. An operator may delete the folder of such a feature from the layer
(`settings.is_deployed`). A request then gets what the specification says of a server without the feature.
"""

from __future__ import annotations

import os
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from mcp_functions.handlers import lookup
from mcp_functions.http import identity
from mcp_functions.http.exchange import Endpoint
from mcp_functions.protocol.constants import WORKER_SUFFIX
from mcp_functions.settings import Settings, is_deployed
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Protocol, TypeAlias

    from mcp_functions.dialects import FrontDoorDialects, FunctionDialects
    from mcp_functions.dispatch.conversations import Conversations
    from mcp_functions.dispatch.dispatcher import Dispatcher
    from mcp_functions.dispatch.seal_factory import SealFactory
    from mcp_functions.handlers.base import Handler
    from mcp_functions.http.events import HttpRequest
    from mcp_functions.legacy import LegacyServer
    from mcp_functions.protocol.catalog_types import Catalog
    from mcp_functions.protocol.event_types import Response
    from mcp_functions.protocol.messages import AnyResult, ForwardedResponse, Request
    from mcp_functions.rounds.audit import AuditRecord
    from mcp_functions.seal.codec_adapter import Codec
    from mcp_functions.seal.kms import Wrapping
    from mcp_functions.skills import Skills
    from mcp_functions.tasks.methods import Tasks
    from mcp_functions.tasks.worker import Worker

    Answer: TypeAlias = Callable[[Request], AnyResult]

    class Answering(Protocol):
        """What answers requests about the handlers of a catalog: a `Dispatcher`, or a `FrontDoor`."""

        @property
        def catalog(self) -> Catalog:
            """The handlers."""

        def answer(self, request: Request) -> AnyResult:
            """Answer a request, or forward it to the function that serves it."""

        def showing(self, catalog: Catalog) -> Answering:
            """Return the same with another catalog."""

    class Forwarding(Answering, Protocol):
        """The front door, as its endpoint uses it (`front_door.FrontDoor`)."""

        def forward(self, function: str, request: Request) -> ForwardedResponse:
            """Forward a request to the function in a folder."""


class Options(NamedTuple):
    """The arguments of `serve` from which the endpoint is made. A front door has only `skills`."""

    handlers: Sequence[Handler[..., Any]] = ()
    audience: str | None = None
    wrapping: Sequence[Wrapping] | None = None
    codec: Codec | None = None
    audit: Callable[[AuditRecord], object] | None = None
    skills: str | os.PathLike[str] | None = None  # the path of skills.json


class Parts:
    """The parts of the endpoint of one Lambda function.

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
        from mcp_functions.dispatch.seal_factory import SealFactory

        return SealFactory(self.settings, self.service, self.options.wrapping, self.options.codec, now=self.now)

    def make_conversations(self, tasks: Tasks | None) -> Conversations:
        """Make what runs the rounds of handlers that ask, or that have steps."""
        from mcp_functions.dispatch.conversations import Conversations

        return Conversations(self.audience, self.seals, now=self.now, audit=self.options.audit, tasks=tasks)

    @cached_property
    def invoke_worker(self) -> Callable[[str, str | None], None]:
        """Invokes the worker of this function for the id and the owner of a task."""
        from mcp_functions.tasks.task_store import WorkerInvoker

        # The worker of the same version or alias (qualifier) is invoked: another version might not know these states.
        name = f"{self.settings.stack}_{self.folder}{WORKER_SUFFIX}{self.settings.qualifier}"
        return WorkerInvoker(name)


def read_settings() -> Settings:
    """Read the settings of this function from its environment. A warning in the log says if anybody may call."""
    settings = Settings(os.environ)
    identity.warn_if_open(settings)
    return settings


def assemble(parts: Parts, front_door: Forwarding | None = None) -> Endpoint:
    """Put the endpoint of a function together: with its handlers, or with a front door in their place."""
    settings = parts.settings
    tasks, worker = _make_tasks(parts)  # a tool has `task=…`

    answering: Answering = _make_dispatcher(parts, tasks) if front_door is None else front_door
    catalog = answering.catalog
    answer = answering.answer

    if "hidden" in catalog:  # handlers with `hide_without_scopes`
        from mcp_functions.visibility import PerCaller

        answer = PerCaller(catalog, settings, lambda shown: answering.showing(shown).answer).answer

    if parts.options.skills is not None and catalog.get("skills"):  # skills.json
        answer = _WithSkills(parts.options.skills, catalog, settings, answer).answer

    legacy = _ClientsOf2025(parts, catalog, answer) if settings.earlier_revisions else None

    # Dialects translate requests of their clients; a client of 2025 gets no dialect.
    dialects = _make_dialects(parts, catalog, answer, front_door) if settings.dialects else None

    return Endpoint(
        settings,
        answer=dialects.answer if dialects else answer,
        catalog=catalog,
        is_stopped=settings.stops(parts.folder),
        answer_legacy=legacy.respond if legacy else None,
        continue_dialect=dialects.continue_call if dialects else None,
        run_task=worker.work if worker else None,
    )


def _make_tasks(parts: Parts) -> tuple[Tasks, Worker] | tuple[None, None]:
    """Make what answers requests about tasks, and what continues a task, if a call may become one."""
    settings, handlers, now = parts.settings, parts.options.handlers, parts.now
    if not any(handler.task for handler in handlers) or not parts.seals or not is_deployed("tasks"):
        return None, None
    from mcp_functions.tasks.methods import Tasks
    from mcp_functions.tasks.task_store import TaskStore
    from mcp_functions.tasks.worker import Worker

    table = parts.seals.table(settings.max_task_ttl)
    store = TaskStore(table, parts.folder, parts.invoke_worker, max_open_tasks=settings.max_open_tasks, now=now)
    tasks = Tasks(handlers, settings, store, now=now)
    return tasks, Worker(tasks.tools, store, settings, now=now, audit=parts.options.audit)


def _make_dispatcher(parts: Parts, tasks: Tasks | None) -> Dispatcher:
    """Make what answers the requests of a function with handlers, and perhaps with `serve(skills=…)`."""
    from mcp_functions.dispatch.dispatcher import Dispatcher

    handlers, skills = parts.options.handlers, parts.options.skills
    with_skills = None
    if skills is not None and is_deployed("skills"):
        from mcp_functions.handlers import catalog
        from mcp_functions.skills import Bundle

        with_skills = Bundle(skills).add_to(catalog.build(handlers))
    return Dispatcher(handlers, parts.settings, partial(parts.make_conversations, tasks), tasks, with_skills)


class _WithSkills:
    """Answers requests about skills, and passes all others on. The first one imports what only they need."""

    def __init__(
        self, file: str | os.PathLike[str], catalog: Catalog, settings: Settings, answer_other: Answer
    ) -> None:
        self._file = file
        self._catalog = catalog
        self._settings = settings
        self._answer_other = answer_other

    def answer(self, request: Request) -> AnyResult:
        is_about_skills = lookup.asks_for_skill(request.method, request.params)
        return self._skills.answer(request) if is_about_skills else self._answer_other(request)

    @cached_property
    def _skills(self) -> Skills:
        from mcp_functions.skills import Bundle, Skills

        return Skills(Bundle(self._file), self._catalog, self._settings, self._answer_other)


class _ClientsOf2025:
    """Responds to clients of 2025. The first one imports what only they need."""

    def __init__(self, parts: Parts, catalog: Catalog, answer: Answer) -> None:
        self._parts = parts
        self._catalog = catalog
        self._answer = answer

    def respond(self, http: HttpRequest) -> Response | None:
        return self._server.respond(http)

    @cached_property
    def _server(self) -> LegacyServer:
        from mcp_functions.legacy import LegacyServer

        parts = self._parts
        return LegacyServer(parts.settings, self._answer, self._catalog, parts.seals, now=parts.now)


def _make_dialects(
    parts: Parts, catalog: Catalog, answer: Answer, front_door: Forwarding | None
) -> FrontDoorDialects | FunctionDialects:
    """Make what translates the requests of dialects for `answer`, in a front door or in a function with handlers."""
    from mcp_functions import dialects

    loaded = dialects.load(parts.settings.dialects)
    if front_door is not None:
        return dialects.FrontDoorDialects(loaded, catalog, answer, front_door.forward)
    context = dialects.DialectContext(
        answer_current=answer,
        folder=parts.folder,
        settings=parts.settings,
        audience=parts.audience,
        states=(parts.seals or parts.make_seals()).states,
        answer_within=max((handler.answer_within for handler in parts.options.handlers), default=1),
        now=parts.now,
    )
    return dialects.FunctionDialects(loaded, context)
