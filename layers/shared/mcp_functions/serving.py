"""Makes a Lambda function of one or more handlers, which are tools, prompts and resources.

    @tool
    def add(a: int, b: int) -> int: ...

    handler = serve(add)        # template.yaml: `Handler: app.handler`

When the author's module loads, `serve` checks its arguments and imports the modules that requests will need, because
Lambda gives a full CPU while a function starts. The first event makes the endpoint, which answers requests: only the
event has the name of the function. Until then, `ServeOptions` keeps the arguments.
"""

from __future__ import annotations

import os
import time
from functools import cache
from typing import TYPE_CHECKING, Any

from mcp_functions.dispatch import preparation
from mcp_functions.dispatch.dispatcher import Dispatcher
from mcp_functions.handlers import catalog
from mcp_functions.handlers.base import Handler
from mcp_functions.handlers.function_handler import FunctionHandler
from mcp_functions.handlers.runner import read_errors
from mcp_functions.http import identity
from mcp_functions.http.events import folder_of
from mcp_functions.http.exchange import Endpoint
from mcp_functions.http.gateway import LambdaFunction
from mcp_functions.protocol.constants import ENDPOINT_FOLDER, WORKER_SUFFIX
from mcp_functions.protocol.errors import Misconfigured
from mcp_functions.settings import Settings
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from mcp_functions.dispatch.conversations import Conversations
    from mcp_functions.dispatch.seal_factory import SealFactory
    from mcp_functions.handlers.hooks import Call
    from mcp_functions.http.events import HttpRequest, Response
    from mcp_functions.http.gateway import Clock
    from mcp_functions.legacy import LegacyServer
    from mcp_functions.observability.lines import Logger
    from mcp_functions.protocol.messages import AnyResult, Request
    from mcp_functions.protocol.wire_types import Model, ServerInfo
    from mcp_functions.rounds.audit import AuditRecord
    from mcp_functions.seal.codec_adapter import Codec
    from mcp_functions.seal.kms import Wrapping
    from mcp_functions.skills import Bundle
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
    skills: str | os.PathLike[str] | None = None,
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
        skills: skills.json, if this function is the whole server: `python -m mcp_functions_harness catalog` writes the
            skills of the project there.
        now: the clock, unix seconds, for tests.

    Returns:
        The function that the template names with `Handler: app.handler`: an MCP endpoint for these handlers.

    Raises:
        TypeError: an argument is not a handler, or both `wrapping` and `codec` are given.
        ValueError: two handlers have the same name.
    """
    if wrapping is not None and codec is not None:
        message = "serve() takes wrapping or codec: a codec wraps its own keys"
        raise TypeError(message)
    _check_handlers(handlers, around)
    about = catalog.describe_server(instructions, server_info)
    error_classes = read_errors(errors)
    copies = tuple(handler.with_options(about, error_classes, around) for handler in handlers)
    catalog.build(copies)  # a check: it refuses two handlers with the same name now, and not at the first event
    options = ServeOptions(copies, audience, wrapping, codec, audit, skills)
    preparation.prepare(copies, uses_kms=wrapping is None and codec is None)
    return LambdaFunction(options.make_endpoint, copies, now=now, logger=logger)


def _check_handlers(handlers: Sequence[object], around: object) -> None:
    """Refuse an argument that is no handler, and a hook that cannot run, with a TypeError."""
    for handler in handlers:
        if not isinstance(handler, Handler):
            message = f"serve() takes what @tool, @prompt or @resource made, not {handler!r}"
            raise TypeError(message)
        if around is not None and not isinstance(handler, FunctionHandler):
            message = "around is for @tool, @prompt and @resource: an adopted server has the middleware of its library"
            raise TypeError(message)
    if around is not None and not callable(around):
        message = "around is a function that takes a Call and returns a context manager"
        raise TypeError(message)


class ServeOptions(NamedTuple):
    """The arguments of `serve` from which the endpoint is made at the first event."""

    handlers: tuple[Handler[..., Any], ...]
    audience: str | None
    wrapping: Sequence[Wrapping] | None
    codec: Codec | None
    audit: Callable[[AuditRecord], object] | None
    skills: str | os.PathLike[str] | None = None

    def make_endpoint(self, function_name: str, now: Clock) -> Endpoint:
        """Make the endpoint of the Lambda function with this name, with the settings of its environment.

        A function whose calls may become tasks has a worker: a second Lambda function with the same code, which runs
        them.

            stack "shop", function "shop_booking" or its worker "shop_booking-worker", stage "prod":

            folder      "booking"               the folder in functions/; that of the function also for its worker
            service     "shop/booking"          shares data keys; an `audience` replaces it
            audience    "shop/booking/prod"     shares states

        Raises:
            Misconfigured: a handler needs the table, and the environment names no table or no key.
        """
        has_tasks = any(handler.task for handler in self.handlers)
        settings = Settings(os.environ)
        folder = folder_of(function_name, settings)
        if has_tasks:
            folder = folder.removesuffix(WORKER_SUFFIX)
        service = self.audience or f"{settings.stack}/{folder}"
        audience = f"{service}/{settings.stage}"

        self._remove_unused_keys(settings, folder)
        seals = None
        if self.codec or self.wrapping or settings.kms_keys:
            seals = self._make_seals(settings, service, now)
        if any(handler.needs_table for handler in self.handlers) and not (seals and settings.table):
            raise Misconfigured(
                reason="MCP_TABLE or MCP_KMS_KEYS is not set: single_use and tasks need the table, the key and their"
                " policies, which mcp-functions block --write NAME writes into template.yaml"
            )
        identity.warn_if_open(settings)  # writes a warning if anybody may call

        tasks = worker = None
        if has_tasks and seals:  # with tasks, there are seals
            tasks, worker = self._make_tasks(settings, folder, seals, now)

        def make_conversations() -> Conversations:
            from mcp_functions.dispatch.conversations import Conversations  # noqa: PLC0415 - not every function needs it

            return Conversations(audience, seals, now=now, audit=self.audit, tasks=tasks)

        answer, listed = self._make_answer(settings, make_conversations, tasks)

        @cache
        def legacy_server() -> LegacyServer:
            """Make the server for clients of 2025 when the first of them calls."""
            from mcp_functions.legacy import LegacyServer  # noqa: PLC0415 - no other client needs it

            return LegacyServer(settings, answer, listed, seals, now=now)

        def answer_legacy(http: HttpRequest) -> Response | None:
            """Respond to a client of 2025; None if the request is from another client."""
            return legacy_server()(http)

        endpoint = Endpoint(
            settings,
            answer,
            listed,
            folder,
            run_task=worker.work if worker else None,
            answer_legacy=answer_legacy if settings.earlier_revisions else None,
        )
        if settings.dialects:
            from mcp_functions import dialects  # noqa: PLC0415 - few deployments have one

            context = dialects.DialectContext(
                answer_modern=answer,
                folder=folder,
                settings=settings,
                audience=audience,
                states=(seals or self._make_seals(settings, service, now)).states,
                answer_within=max((handler.answer_within for handler in self.handlers), default=1),
                now=now,
            )
            translator = dialects.FunctionDialects(dialects.load(settings.dialects), context)
            endpoint = endpoint._replace(answer=translator.answer, continue_dialect=translator.continue_call)
        return endpoint

    def _make_answer(
        self, settings: Settings, make_conversations: Callable[[], Conversations], tasks: Tasks | None
    ) -> tuple[Callable[[Request], AnyResult], Mapping[str, Any]]:
        """Make what answers requests, and the catalog; with skills and hidden handlers, if this function has any."""
        listed: Mapping[str, Any] = catalog.build(self.handlers)
        bundle: Bundle | None = None
        if self.skills is not None:
            from mcp_functions.skills import Bundle  # noqa: PLC0415 - few functions have skills

            bundle = Bundle(self.skills)
            listed = bundle.add_to(listed)

        def answer_for(shown: Mapping[str, Any]) -> Callable[[Request], AnyResult]:
            return Dispatcher(self.handlers, settings, make_conversations, tasks, shown).answer

        answer: Callable[[Request], AnyResult]
        if "hidden" in listed:
            from mcp_functions.visibility import PerCaller  # noqa: PLC0415 - few functions hide anything

            answer = PerCaller(listed, settings, answer_for).answer
        else:
            answer = answer_for(listed)
        if bundle is not None:
            from mcp_functions.skills import Skills  # noqa: PLC0415

            answer = Skills(bundle, listed, settings, answer).answer
        return answer, listed

    def _remove_unused_keys(self, settings: Settings, folder: str) -> None:
        """Remove the keys and the table from the settings of a function that has no permissions for them.

        The template names them in every environment, but gives the permissions only to functions that need them.
        """
        # The endpoint of the server keeps sessions and questions of clients of 2025 in the table.
        if folder == ENDPOINT_FOLDER or any(handler.needs_table for handler in self.handlers):
            return
        settings.table = ""
        if not any(handler.needs_state for handler in self.handlers):
            settings.kms_keys = ()

    def _make_seals(self, settings: Settings, service: str, now: Clock) -> SealFactory:
        """Make the factory of seals, which encrypt the states that clients carry and the items of the table."""
        from mcp_functions.dispatch.seal_factory import SealFactory  # noqa: PLC0415 - many functions seal nothing

        return SealFactory(settings, service, self.wrapping, self.codec, now=now)

    def _make_tasks(self, settings: Settings, folder: str, seals: SealFactory, now: Clock) -> tuple[Tasks, Worker]:
        """Make what answers requests about tasks, and what runs them in the worker. A new task invokes the worker."""
        from mcp_functions.tasks import Tasks, TaskStore, Worker, WorkerInvoker  # noqa: PLC0415 - few have tasks

        # The worker of the same version or alias (qualifier) is invoked: another version might not know these states.
        invoker = WorkerInvoker(f"{settings.stack}_{folder}{WORKER_SUFFIX}{settings.qualifier}")
        table = seals.table(settings.max_task_ttl)
        store = TaskStore(table, folder, invoker, max_open_tasks=settings.max_open_tasks, now=now)
        tasks = Tasks(self.handlers, settings, store, now=now)
        worker = Worker(tasks.tools, store, settings, now=now, audit=self.audit)
        return tasks, worker
