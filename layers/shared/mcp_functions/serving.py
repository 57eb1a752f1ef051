"""Makes the Lambda function of one or more handlers: `handler = serve(my_tool)`.

    1. When the author's module loads, `serve` imports what the handlers need, because Lambda gives a full CPU at init.
    2. At the first event, `EndpointFactory` reads the settings and makes the endpoint, which answers HTTP requests.
    3. At the first state, the function calls KMS for the key that seals it.

A handler is a tool, a prompt or a resource. A call of a handler that asks its user takes several requests, and a round
is one of them. The client carries a sealed (encrypted) state from each round to the next.
"""

from __future__ import annotations

import os
import sys
import time
from copy import copy
from functools import cached_property, partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from mcp_functions.dispatch.dispatcher import Dispatcher
from mcp_functions.handlers import catalog, lookup
from mcp_functions.handlers.base import FunctionHandler, Handler
from mcp_functions.handlers.lazy_values import lazy_function
from mcp_functions.handlers.runner import read_errors
from mcp_functions.http import identity, metadata
from mcp_functions.http.exchange import Endpoint
from mcp_functions.http.gateway import LambdaFunction
from mcp_functions.protocol.constants import ENDPOINT, WORKER
from mcp_functions.protocol.errors import Misconfigured
from mcp_functions.protocol.json_reader import GcPause
from mcp_functions.settings import read as read_settings
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from mcp_functions.dispatch.conversations import Conversations
    from mcp_functions.dispatch.seal_factory import SealFactory
    from mcp_functions.handlers.hooks import Call
    from mcp_functions.legacy import LegacyServer
    from mcp_functions.observability.lines import Logger
    from mcp_functions.protocol.wire_types import Model, ServerInfo
    from mcp_functions.rounds.audit import AuditRecord
    from mcp_functions.seal.envelope import Codec
    from mcp_functions.seal.kms import Wrapping
    from mcp_functions.settings import Settings
    from mcp_functions.tasks import Tasks, Worker


def serve(  # noqa: PLR0913 - each is an option of the public API
    *handlers: Handler[..., Any],
    audience: str | None = None,
    wrapping: Sequence[Wrapping] | None = None,
    codec: Codec | None = None,
    audit: Callable[[AuditRecord], object] | None = None,
    errors: Sequence[type[Exception]] = (),
    logger: Logger | None = None,
    instructions: str | None = None,
    server_info: ServerInfo | Model | None = None,
    around: Callable[[Call], AbstractContextManager[object]] | None = None,
    now: Callable[[], float] = time.time,
) -> LambdaFunction:
    """Make the Lambda entry point of one or more handlers.

    Args:
        handlers: tools, prompts and resources; each with its own name.
        audience: a name for functions that share states. Functions with the same audience open each other's states, and
            the policies of their roles must name it. Without it, a state belongs to this function.
        wrapping: services that wrap data keys, in the place of the KMS keys in MCP_KMS_KEYS. The first entry wraps data
            keys for sealing; every entry unwraps them for opening.
        codec: replaces the seal altogether. The toolkit still writes what a state is bound to: the caller, the request
            and the time.
        audit: a function that is called once in every round of a handler that may ask, before the answer is sent. It
            gets the user, the questions and the answers. An exception that it raises ends the round as an internal
            error.
        errors: exceptions whose text is meant for the model, by exact type; they are added to those of each tool.
        logger: writes the line of each request, with its fields as keys. It is a Logger of Powertools or of `logging`.
            Without it, the package's logger `mcp_functions` writes the line. During a request, API Gateway's request
            id is the correlation id of a Powertools Logger.
        instructions: tell a model how to use these handlers. The endpoint of the whole server says them after its own,
            which `serve_catalog` takes.
        server_info: title, description, website and icons of the server, if this function is all of it. Each of its
            results repeats them. For a server of several functions, `serve_catalog` takes them.
        around: a function that gets the `Call` before each round; the round runs inside the context manager that it
            returns. It may raise a ToolError in place of a call or of another exception.
        now: the clock, unix seconds, for tests.

    Returns:
        The function that the template names with `Handler: app.handler`: an MCP endpoint for these handlers.

    Raises:
        TypeError: an argument is not a handler, or both `wrapping` and `codec` are given.
        ValueError: two handlers have the same name.
    """
    about = catalog.read_about(instructions, server_info)
    if wrapping is not None and codec is not None:
        message = "serve() takes wrapping or codec: a codec wraps its own keys"
        raise TypeError(message)
    served = _with_options(handlers, errors, around, about)
    catalog.build(served)  # it refuses two handlers of one name; the function's own catalog is built at the first event
    options = ServeOptions(handlers=served, audience=audience, wrapping=wrapping, codec=codec, audit=audit)
    with GcPause():  # imported modules stay in use: to look for garbage among them takes 4 ms of a cold start
        _import_needed(options)

    def make_endpoint(function_name: str, clock: Callable[[], float]) -> Endpoint:
        """Make the endpoint at the first event; `clock` is `now`, or a test's own."""
        settings = read_settings(os.environ)
        factory = EndpointFactory(options, settings, function_name, clock)
        identity.warn_if_open(settings)
        return factory.make()

    return LambdaFunction(make_endpoint, served, now=now, logger=logger)


class ServeOptions(NamedTuple):
    """The handlers of a function, and the options of `serve` (explained there) that its endpoint needs."""

    handlers: tuple[Handler[..., Any], ...]
    audience: str | None
    wrapping: Sequence[Wrapping] | None
    codec: Codec | None
    audit: Callable[[AuditRecord], object] | None

    @property
    def needs_state(self) -> bool:
        """Whether a handler can ask, so that the function seals states."""
        return any(handler.needs_state for handler in self.handlers)

    @property
    def needs_table(self) -> bool:
        """Whether a handler needs the table."""
        return any(handler.needs_table for handler in self.handlers)

    @property
    def has_tasks(self) -> bool:
        """Whether calls of a tool may become tasks."""
        return any(handler.task for handler in self.handlers)


class EndpointFactory:
    """Makes the endpoint of one Lambda function from the handlers and options of `serve`, and the settings.

    A function whose calls may become tasks has a worker: a second Lambda with the same code, which runs the tasks.
    """

    def __init__(self, options: ServeOptions, settings: Settings, function_name: str, now: Callable[[], float]) -> None:
        """Decide which function this is, and what it uses.

        Args:
            options: the handlers and options of `serve`.
            settings: the settings of the environment.
            function_name: the physical name of the Lambda, which contains the folder.
            now: the clock, unix seconds.

        Raises:
            Misconfigured: a handler needs a table, and the environment names no table or no key.
        """
        folder = settings.folder(function_name)
        # A worker opens what its function sealed, so it has the folder of that function.
        self._folder = folder.removesuffix(WORKER) if options.has_tasks else folder
        # The functions of one service open each other's states, if they are of the same stage.
        self._service = options.audience or f"{settings.stack}/{self._folder}"
        self._audience = f"{self._service}/{settings.stage}"
        # The endpoint of the whole server keeps sessions and questions of clients of 2025 in the table.
        needs_table = options.needs_table or self._folder == ENDPOINT
        needs_keys = needs_table or options.needs_state
        self._settings = settings.without_unused_resources(needs_keys=needs_keys, needs_table=needs_table)
        self._options = options
        self._now = now
        self._has_keys = bool(options.codec or options.wrapping or self._settings.kms_keys)
        if options.needs_table and not (self._has_keys and settings.table):
            from mcp_functions.dispatch.single_use import NO_TABLE  # noqa: PLC0415 - imported at init where needed

            raise Misconfigured(NO_TABLE)

    def make(self) -> Endpoint:
        """Make the endpoint, which checks each HTTP request before the dispatcher gets it.

        Four of its parts depend on the handlers and the settings:

            run_task          runs a task in the worker, if calls may become tasks
            documents         the metadata of OAuth, if callers have access tokens (MCP_AUTH_MODE)
            handle_legacy     responds to clients of 2025, if they are allowed (MCP_EARLIER_REVISIONS)
            dialects          translate the messages of proposals for the protocol (MCP_DIALECTS)
        """
        settings = self._settings
        tasks, worker = self._make_tasks() if self._options.has_tasks else (None, None)
        # The first request that needs a round makes the conversations.
        conversations = partial(self._make_conversations, tasks)
        dispatcher = Dispatcher(self._options.handlers, settings, conversations, tasks)
        handle_legacy = lazy_function(lambda: self._make_legacy_server(dispatcher))
        endpoint = Endpoint(
            settings,
            dispatcher.answer,
            documents=metadata.documents(settings, dispatcher.catalog.get("scopes", ())),
            header_parameters=lookup.cors_headers(dispatcher.catalog, settings),
            is_stopped=self._folder in settings.stopped_functions,
            run_task=worker.work if worker else None,
            handle_legacy=handle_legacy if settings.earlier_revisions else None,
        )
        return self._add_dialects(endpoint) if settings.dialects else endpoint

    @cached_property
    def _seals(self) -> SealFactory:
        """The part that makes the seals of states, and the table."""
        from mcp_functions.dispatch.seal_factory import SealFactory  # noqa: PLC0415 - many functions seal nothing

        options = self._options
        return SealFactory(self._settings, self._service, options.wrapping, options.codec, now=self._now)

    def _make_conversations(self, tasks: Tasks | None) -> Conversations:
        """Make the part that runs rounds."""
        from mcp_functions.dispatch.conversations import Conversations  # noqa: PLC0415 - imported at init where needed

        seals = self._seals if self._has_keys else None
        return Conversations(self._audience, seals, now=self._now, audit=self._options.audit, tasks=tasks)

    def _make_tasks(self) -> tuple[Tasks, Worker]:
        """Make the part that answers requests about tasks, and the part that runs tasks in the worker."""
        from mcp_functions.tasks import Tasks, Worker, WorkerInvoker, lambda_client  # noqa: PLC0415 - few functions have tasks

        settings = self._settings
        now = self._now
        # The worker has the same qualifier (version or alias): another version might not know these states.
        name = f"{settings.function_name(self._folder)}{WORKER}{settings.qualifier}"
        invoke_worker = WorkerInvoker(name, lambda_client)
        table = self._seals.table(settings.max_task_ttl)
        tasks = Tasks(self._options.handlers, settings, self._folder, table, invoke_worker, now=now)
        audit = self._options.audit
        worker = Worker(tasks.tools, tasks.store, now=now, lease_seconds=settings.task_lease, audit=audit)
        return tasks, worker

    def _make_legacy_server(self, dispatcher: Dispatcher) -> LegacyServer:
        """Make the server for clients of 2025, at the first request of one. Other clients never need this module."""
        from mcp_functions.legacy import LegacyServer, ModernServer  # noqa: PLC0415

        seals = self._seals if self._has_keys else None
        modern = ModernServer(dispatcher.answer, dispatcher.catalog, forwards=False)
        return LegacyServer(self._settings, modern, seals, now=self._now)

    def _add_dialects(self, endpoint: Endpoint) -> Endpoint:
        """Add the dialects to an endpoint: proposals for the protocol that clients may declare."""
        from mcp_functions import dialects  # noqa: PLC0415 - few deployments have one

        longest_wait = max((handler.answer_within for handler in self._options.handlers), default=1)
        context = dialects.DialectContext(
            answer_modern=endpoint.handle_request,
            folder=self._folder,
            settings=self._settings,
            audience=self._audience,
            states=self._seals.states,
            answer_within=longest_wait,
            now=self._now,
        )
        return dialects.add_to_function(endpoint, context)


def _with_options(
    handlers: tuple[Handler[..., Any], ...],
    errors: Sequence[type[Exception]],
    around: Callable[[Call], AbstractContextManager[object]] | None,
    about: Mapping[str, Any],
) -> tuple[Handler[..., Any], ...]:
    """Return copies of the handlers with the options of `serve` that each handler keeps.

    Raises:
        TypeError: an argument is not a handler, or `around` or `errors` is wrong.
    """
    for handler in handlers:
        if not isinstance(handler, Handler):
            message = f"serve() takes what @tool, @prompt or @resource made, not {handler!r}"
            raise TypeError(message)
    for_model = read_errors(errors)
    if around is not None:
        from mcp_functions.handlers import hooks  # noqa: PLC0415 - most functions have none

        hooks.check(around, handlers)
    changed = tuple(copy(handler) for handler in handlers)  # another `serve` may take the same handlers
    for handler in changed:
        if isinstance(handler, FunctionHandler):
            handler.around = around
        handler.server_description = {**handler.server_description, **about}
        if handler.kind == "tool":
            handler.errors |= for_model
    return changed


def _import_needed(options: ServeOptions) -> None:
    """Import the modules that requests to these handlers will use, and prepare calls to AWS; no call is made."""
    modules: list[str] = []
    if not all(handler.only_returns for handler in options.handlers):
        modules += ["dispatch.conversations"]
    if options.needs_state:
        modules += ["dispatch.seal_factory", "seal.data_keys", "seal.envelope"]
    # An adopted server (of another library) reads its own forms.
    if any(handler.needs_state and not handler.is_adopted for handler in options.handlers):
        modules += ["schemas.annotations", "schemas.class_types"]
        if "pydantic" in sys.modules:
            modules += ["schemas.pydantic_types"]
    if options.needs_table:
        modules += ["dispatch.single_use"]
    if options.has_tasks:
        modules += ["tasks"]
    for module in modules:
        import_module(f"mcp_functions.{module}")
    if options.needs_state and options.wrapping is None and options.codec is None:
        _prepare_calls("kms")
    if options.needs_table:
        _prepare_calls("dynamodb")


def _prepare_calls(service: str) -> None:
    """Load what a call to a service of AWS needs; nothing is sent."""
    from mcp_functions import aws  # noqa: PLC0415 - a tool that only returns calls no service of AWS

    aws.prepare(aws.find_endpoint(os.environ, service))
