"""Makes a Lambda function of one or more handlers, which are tools, prompts and resources.

    @tool
    def add(a: int, b: int) -> int: ...

    handler = serve(add)        # template.yaml: `Handler: app.handler`

When the author's module loads, `serve` imports the modules that requests will need, because Lambda gives a full CPU
while a function starts. At the first event, `EndpointFactory` makes the endpoint, which answers HTTP requests.
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
from mcp_functions.handlers.base import Handler
from mcp_functions.handlers.function_handler import FunctionHandler
from mcp_functions.handlers.lazy_values import lazy_function
from mcp_functions.handlers.runner import read_errors
from mcp_functions.http import identity, metadata
from mcp_functions.http.events import folder_of
from mcp_functions.http.exchange import Endpoint
from mcp_functions.http.gateway import LambdaFunction
from mcp_functions.protocol.constants import ENDPOINT_FOLDER, WORKER_SUFFIX
from mcp_functions.protocol.errors import Misconfigured
from mcp_functions.protocol.json_reader import GcPause
from mcp_functions.settings import Settings
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from mcp_functions.dispatch.conversations import Conversations
    from mcp_functions.dispatch.seal_factory import SealFactory
    from mcp_functions.handlers.hooks import Call
    from mcp_functions.http.gateway import Clock
    from mcp_functions.legacy import LegacyServer
    from mcp_functions.observability.lines import Logger
    from mcp_functions.protocol.wire_types import Model, ServerInfo
    from mcp_functions.rounds.audit import AuditRecord
    from mcp_functions.seal.codec_adapter import Codec
    from mcp_functions.seal.kms import Wrapping
    from mcp_functions.tasks import Tasks, TaskStore, Worker


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
    now: Clock = time.time,
) -> LambdaFunction:
    """Make the Lambda entry point of one or more handlers.

    A handler may ask its user in the middle of a call. The call then takes several requests, and the client carries a
    sealed (encrypted) state from each of them to the next. One request of a call is a round.

    Args:
        handlers: what `@tool`, `@prompt` and `@resource` make; each with its own name.
        audience: a name for functions that share states. Functions with the same audience open each other's states, and
            the policies of their roles must name it. Without it, a state belongs to this function.
        wrapping: services that wrap (encrypt) data keys, instead of the KMS keys in MCP_KMS_KEYS. The first entry wraps
            data keys for sealing; every entry unwraps them for opening.
        codec: replaces the seal. The toolkit still binds each state to the caller, the request and the time.
        audit: a function that is called once in every round of a handler that may ask, before the response is sent. It
            gets the user, the questions and the answers. If it raises an exception, the round ends with an internal
            error.
        errors: exceptions whose text the model may read, added to the `errors` of each tool. Subclasses are not
            included.
        logger: writes the line of each request, with its fields as keys. It is a Logger of Powertools or of `logging`.
            Without it, the package's logger `mcp_functions` writes the line. During a request, API Gateway's request
            id is the correlation id of a Powertools Logger.
        instructions: a text that tells a model how to use these handlers. On a server of several functions, it comes
            after the instructions of the whole server, which are an argument of `serve_catalog`.
        server_info: title, description, website and icons of the server, if this function is the whole server.
            Otherwise they are an argument of `serve_catalog`. Every result repeats them.
        around: a hook. It gets the `Call` before each round, and returns a context manager inside which the round runs.
            It may raise a ToolError, which the model gets instead of the result or of another exception.
        now: the clock, unix seconds, for tests.

    Returns:
        The function that the template names with `Handler: app.handler`: an MCP endpoint for these handlers.

    Raises:
        TypeError: an argument is not a handler, or both `wrapping` and `codec` are given.
        ValueError: two handlers have the same name.
    """
    about = catalog.describe_server(instructions, server_info)
    if wrapping is not None and codec is not None:
        message = "serve() takes wrapping or codec: a codec wraps its own keys"
        raise TypeError(message)
    served = _add_options(handlers, errors, around, about)
    catalog.build(served)  # a check: it refuses two handlers with the same name now, and not at the first event
    options = ServeOptions(handlers=served, audience=audience, wrapping=wrapping, codec=codec, audit=audit)
    with GcPause():  # imports leave no garbage, and looking for it would take 4 ms of a cold start
        _import_needed(options)
    return LambdaFunction(partial(_make_endpoint, options), served, now=now, logger=logger)


class ServeOptions(NamedTuple):
    """The arguments of `serve` from which the endpoint is made at the first event."""

    handlers: tuple[Handler[..., Any], ...]
    audience: str | None
    wrapping: Sequence[Wrapping] | None
    codec: Codec | None
    audit: Callable[[AuditRecord], object] | None

    @property
    def needs_state(self) -> bool:
        """Whether a call of a handler may take several requests, so that the function seals states."""
        return any(handler.needs_state for handler in self.handlers)

    @property
    def needs_table(self) -> bool:
        """Whether a handler needs the DynamoDB table (MCP_TABLE)."""
        return any(handler.needs_table for handler in self.handlers)

    @property
    def has_tasks(self) -> bool:
        """Whether calls of a tool may become tasks."""
        return any(handler.task for handler in self.handlers)


def _make_endpoint(options: ServeOptions, function_name: str, now: Clock) -> Endpoint:
    """Make the endpoint of the Lambda function with this name."""
    return EndpointFactory(options, Settings(os.environ), function_name, now).make()


class EndpointFactory:
    """Makes the endpoint of one Lambda function from the arguments of `serve` and the settings.

    A function whose calls may become tasks has a worker: a second Lambda function with the same code, which runs them.

        stack "shop", function "shop_booking" or its worker "shop_booking-worker", stage "prod":

        folder      "booking"               the folder in functions/; that of the function also for its worker
        service     "shop/booking"          shares data keys; an `audience` replaces it
        audience    "shop/booking/prod"     shares states
    """

    def __init__(self, options: ServeOptions, settings: Settings, function_name: str, now: Clock) -> None:
        """Find out which function this is, and what it may use.

        Args:
            options: the arguments of `serve`.
            settings: the settings of the deployment.
            function_name: the name of the Lambda function.
            now: the clock, unix seconds.

        Raises:
            Misconfigured: a handler needs the table, and the environment names no table or no key.
        """
        self._folder = folder_of(function_name, settings)
        if options.has_tasks:
            self._folder = self._folder.removesuffix(WORKER_SUFFIX)
        self._service = options.audience or f"{settings.stack}/{self._folder}"
        self._audience = f"{self._service}/{settings.stage}"
        # The endpoint of the server keeps sessions and questions of clients of 2025 in the table.
        needs_table = options.needs_table or self._folder == ENDPOINT_FOLDER
        self._settings = settings.allowing(keys=needs_table or options.needs_state, table=needs_table)
        self._options = options
        self._now = now
        self._has_keys = bool(options.codec or options.wrapping or self._settings.kms_keys)
        if options.needs_table and not (self._has_keys and self._settings.table):
            raise Misconfigured(
                reason="MCP_TABLE or MCP_KMS_KEYS is not set: single_use and tasks need the table, the key and their"
                " policies, which mcp-functions block --write NAME writes into template.yaml"
            )

    def make(self) -> Endpoint:
        """Make the endpoint, which checks each HTTP request before the dispatcher gets it."""
        settings = self._settings
        identity.warn_if_open(settings)  # writes a warning if anybody may call
        tasks = None
        run_task = None
        if self._options.has_tasks:
            store = self._make_task_store()
            tasks = self._make_tasks(store)
            run_task = self._make_worker(tasks, store).work
        # The `Conversations` are made when a request first needs them.
        make_conversations = partial(self._make_conversations, tasks)
        dispatcher = Dispatcher(self._options.handlers, settings, make_conversations, tasks)
        handle_legacy = None
        if settings.earlier_revisions:  # the server for clients of 2025 is made when such a client first calls
            handle_legacy = lazy_function(partial(self._make_legacy_server, dispatcher))
        endpoint = Endpoint(
            settings,
            handle_request=dispatcher.answer,
            documents=metadata.documents(settings, dispatcher.catalog.get("scopes", ())),
            header_parameters=lookup.cors_headers(dispatcher.catalog, settings),
            is_stopped=self._folder in settings.stopped_functions,
            run_task=run_task,
            handle_legacy=handle_legacy,
        )
        if settings.dialects:
            return self._add_dialects(endpoint)
        return endpoint

    @cached_property
    def _seals(self) -> SealFactory:
        """Makes the seals that encrypt states, and the table, whose items are sealed too."""
        from mcp_functions.dispatch.seal_factory import SealFactory  # noqa: PLC0415 - many functions seal nothing

        options = self._options
        return SealFactory(self._settings, self._service, options.wrapping, options.codec, now=self._now)

    def _make_conversations(self, tasks: Tasks | None) -> Conversations:
        """Make the object that runs the rounds of handlers."""
        from mcp_functions.dispatch.conversations import Conversations  # noqa: PLC0415 - not every function needs it

        seals = self._seals if self._has_keys else None
        return Conversations(self._audience, seals, now=self._now, audit=self._options.audit, tasks=tasks)

    def _make_task_store(self) -> TaskStore:
        """Make the store of tasks. A new task invokes the worker."""
        from mcp_functions.tasks import TaskStore, WorkerInvoker, lambda_client  # noqa: PLC0415 - few functions have tasks

        settings = self._settings
        # The worker of the same version or alias (qualifier) is invoked: another version might not know these states.
        name = f"{settings.stack}_{self._folder}{WORKER_SUFFIX}{settings.qualifier}"
        invoke_worker = WorkerInvoker(name, lambda_client)
        table = self._seals.table(settings.max_task_ttl)
        limit = settings.max_open_tasks
        return TaskStore(table, self._folder, invoke_worker, max_open_tasks=limit, now=self._now)

    def _make_tasks(self, store: TaskStore) -> Tasks:
        """Make the object that answers requests about tasks."""
        from mcp_functions.tasks import Tasks  # noqa: PLC0415

        return Tasks(self._options.handlers, self._settings, store, now=self._now)

    def _make_worker(self, tasks: Tasks, store: TaskStore) -> Worker:
        """Make the object that runs tasks."""
        from mcp_functions.tasks import Worker  # noqa: PLC0415

        seconds = self._settings.task_lease
        return Worker(tasks.tools, store, now=self._now, lease_seconds=seconds, audit=self._options.audit)

    def _make_legacy_server(self, dispatcher: Dispatcher) -> LegacyServer:
        """Make the server for clients of 2025, at the first request of such a client. No other client needs it."""
        from mcp_functions.legacy import LegacyServer, ModernServer  # noqa: PLC0415

        seals = self._seals if self._has_keys else None
        modern = ModernServer(dispatcher.answer, dispatcher.catalog, forwards=False)
        return LegacyServer(self._settings, modern, seals, now=self._now)

    def _add_dialects(self, endpoint: Endpoint) -> Endpoint:
        """Let an endpoint answer the messages of dialects, which are proposals for the protocol."""
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


def _add_options(
    handlers: tuple[Handler[..., Any], ...],
    errors: Sequence[type[Exception]],
    around: Callable[[Call], AbstractContextManager[object]] | None,
    about: Mapping[str, Any],
) -> tuple[Handler[..., Any], ...]:
    """Return copies of the handlers, each with those options of `serve` that a handler needs.

    Raises:
        TypeError: an argument is not a handler, or `around` or `errors` is wrong.
    """
    for handler in handlers:
        if not isinstance(handler, Handler):
            message = f"serve() takes what @tool, @prompt or @resource made, not {handler!r}"
            raise TypeError(message)
    error_classes = read_errors(errors)
    if around is not None:
        _check_hook(around, handlers)
        import_module("mcp_functions.handlers.hooks")
    copies = tuple(copy(handler) for handler in handlers)  # another `serve` may take the same handlers
    for handler in copies:
        if isinstance(handler, FunctionHandler):
            handler.around = around
        handler.server_description = {**handler.server_description, **about}
        if handler.kind == "tool":
            handler.errors |= error_classes
    return copies


def _check_hook(around: object, handlers: Sequence[Handler[..., Any]]) -> None:
    """Refuse a hook that cannot be called, or a handler of another library's server (`adopt`), with a TypeError."""
    if not callable(around):
        message = "around is a function that takes a Call and returns a context manager"
        raise TypeError(message)
    if any(not isinstance(handler, FunctionHandler) for handler in handlers):
        message = "around is for @tool, @prompt and @resource: an adopted server has the middleware of its library"
        raise TypeError(message)


def _import_needed(options: ServeOptions) -> None:
    """Import the modules that requests to these handlers will use, and prepare calls to AWS; no call is made."""
    modules: list[str] = []
    services: list[str] = []
    if any(handler.needs_round for handler in options.handlers):
        modules += ["dispatch.conversations"]
    if options.needs_state:
        modules += ["dispatch.seal_factory", "seal.data_keys", "seal.envelope"]
        if options.wrapping is None and options.codec is None:
            services += ["kms"]
    # A server of another library (`adopt`) reads the answers to its questions itself.
    if any(handler.needs_state and isinstance(handler, FunctionHandler) for handler in options.handlers):
        modules += ["schemas.annotations", "schemas.class_types"]
        if "pydantic" in sys.modules:  # the author may have a form that is a pydantic model
            modules += ["schemas.pydantic_types"]
    if options.needs_table:
        modules += ["dispatch.single_use"]
        services += ["dynamodb"]
    if options.has_tasks:
        modules += ["tasks"]
    for module in modules:
        import_module(f"mcp_functions.{module}")
    for service in services:
        from mcp_functions import aws  # noqa: PLC0415 - a tool that never asks calls no service of AWS

        aws.prepare(service)
