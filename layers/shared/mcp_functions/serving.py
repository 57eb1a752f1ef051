"""Handlers become a Lambda function: `handler = serve(my_tool)`.

Loading reads signatures only. The first event reads the environment and wires what this function needs; KMS is called
when a state is first sealed or opened. What signatures prove will be needed, an asking function's cryptography, is
imported at init, where Lambda gives a full CPU.
"""

from __future__ import annotations

import os
import sys
import time
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from mcp_functions import settings
from mcp_functions.dispatch.dispatcher import Server
from mcp_functions.dispatch.vault import Vault
from mcp_functions.handlers import catalog
from mcp_functions.http import identity, metadata
from mcp_functions.http.gateway import Endpoint, LambdaFunction, lazy_value
from mcp_functions.protocol.constants import WORKER
from mcp_functions.protocol.errors import Misconfigured
from mcp_functions.protocol.json_reader import gc_paused

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mcp_functions.handlers import Handler
    from mcp_functions.http.events import HttpRequest
    from mcp_functions.http.lambda_types import Response
    from mcp_functions.legacy import Legacy
    from mcp_functions.observability import Logger
    from mcp_functions.rounds.round import AuditRecord
    from mcp_functions.seal.data_keys import Wrapping
    from mcp_functions.seal.envelope import Codec
    from mcp_functions.settings import Settings
    from mcp_functions.tasks import Tasks


def serve(  # noqa: PLR0913 - each is an option of a deployment
    *handlers: Handler[..., Any],
    audience: str | None = None,
    wrapping: Sequence[Wrapping] | None = None,
    codec: Codec | None = None,
    audit: Callable[[AuditRecord], object] | None = None,
    errors: Sequence[type[Exception]] = (),
    logger: Logger | None = None,
    now: Callable[[], float] = time.time,
) -> LambdaFunction:
    """Make the Lambda entry point of one or more handlers.

    Args:
        handlers: tools, prompts and resources; each with its own name.
        audience: who shares states, if not this function alone: functions that name the same audience open each
            other's. Their roles' policies must name it too.
        wrapping: another KMS than the keys of MCP_KMS_KEYS: who wraps data keys, the first sealing, all opening.
        codec: another seal altogether. Claims and binding stay the toolkit's.
        audit: called once in every round of a handler that may ask, before the answer goes out, with what was asked of
            whom and how it was answered; what it raises ends the round as an internal error.
        errors: exceptions whose text is meant for the model, by exact type; they are added to those of each tool.
        logger: writes the line of each request, with its fields as keys: Powertools' Logger, or one of `logging`. For
            the time of a request, Powertools' has API Gateway's request id as its correlation id. The package's own
            logger `mcp_functions`, if left out.
        now: the clock, unix seconds; tests bring their own.

    Returns:
        What the template's `Handler: app.handler` names. It is an MCP endpoint of its own for these handlers.

    Raises:
        TypeError: something else than handlers was given, or two ways to seal.
        ValueError: two handlers have the same name.

    """
    if wrong := next((handler for handler in handlers if not hasattr(handler, "kind")), None):
        message = f"serve() takes what @tool, @prompt or @resource made, not {wrong!r}"
        raise TypeError(message)
    if wrapping is not None and codec is not None:
        message = "serve() takes wrapping or codec: a codec that is one's own wraps its own keys"
        raise TypeError(message)
    if errors:
        from mcp_functions.handlers.tools import Tool, exceptions  # noqa: PLC0415 - a prompt does not need tools

        named = exceptions(errors)
        handlers = tuple(each.adding(named) if isinstance(each, Tool) else each for each in handlers)
    offered = catalog.of(handlers)  # two of one name: say so now, not at the first event
    with gc_paused():  # modules are made here and stay: collecting among them takes 4 ms of a cold start
        _prepare(handlers, kms=wrapping is None and codec is None)

    def wire(function_name: str) -> Endpoint:
        found = settings.read(os.environ)
        folder = function_name.removeprefix(f"{found.stack}-")
        if offered.get("tasks"):
            folder = folder.removesuffix(WORKER)  # a worker is its function once more, and opens what that sealed
        service = audience or f"{found.stack}/{folder}"
        seals = codec or wrapping or found.kms_keys
        vault = Vault(found, service, wrapping, codec, now=now)
        if any(handler.keeps for handler in handlers) and not (seals and found.table):
            from mcp_functions.dispatch.single_use import NO_TABLE  # noqa: PLC0415 - who keeps something has imported it

            raise Misconfigured(NO_TABLE)
        identity.announce(found)
        states = vault.states if seals else None
        tasks, work = _tasks(handlers, found, folder, vault, now, audit) if offered.get("tasks") else (None, None)
        service = f"{service}/{found.stage}"
        server = Server(handlers, found, service, states, vault.table, now=now, audit=audit, tasks=tasks)
        documents = metadata.documents(found, offered.get("scopes", ()))
        parameters = catalog.parameters(offered) if found.allowed_origins else []
        earlier = _earlier(found, server, offered, vault if seals else None, now) if found.earlier_revisions else None
        endpoint = Endpoint(found, server.answer, documents, parameters, work, legacy=earlier)
        if not found.dialects:
            return endpoint
        from mcp_functions import dialects  # noqa: PLC0415 - of few deployments

        waits = max((handler.answer_within for handler in handlers), default=1)
        place = dialects.Place(folder, found, service, vault.states, waits, now, os.urandom)
        return dialects.at_function(endpoint, place)

    recreate = partial(
        serve, *handlers, audience=audience, wrapping=wrapping, codec=codec, audit=audit, errors=errors, logger=logger
    )
    return LambdaFunction(wire, handlers, now=now, recreate=recreate, logger=logger)


def _prepare(handlers: Sequence[Handler[..., Any]], *, kms: bool) -> None:
    """Import what signatures prove will be needed, where Lambda gives a full CPU; no call is made for it."""
    asks = any(handler.asks for handler in handlers)
    needed = (
        (("dispatch.conversations",), not all(handler.alone for handler in handlers)),
        (
            ("seal.envelope", "schemas.class_types", "schemas.limits", "schemas.record_types"),
            asks,
        ),  # the last three read forms
        (("schemas.pydantic_types",), asks and "pydantic" in sys.modules),
        (("dispatch.single_use",), any(handler.keeps for handler in handlers)),
        (("tasks",), any(handler.task for handler in handlers)),
    )
    for modules in (modules for modules, are_needed in needed if are_needed):
        for module in modules:
            import_module(f"mcp_functions.{module}")
    if asks and kms:
        _prepare_calls("kms")
    if any(handler.keeps for handler in handlers):
        _prepare_calls("dynamodb")


def _prepare_calls(service: str) -> None:
    from mcp_functions import aws  # noqa: PLC0415 - a tool that only returns calls no service of AWS

    aws.prepare(aws.find(os.environ, service))


def _earlier(
    found: Settings, server: Server, offered: Mapping[str, Any], vault: Vault | None, now: Callable[[], float]
) -> Callable[[HttpRequest, Mapping[str, Any], Any], Response | None]:
    """Make what answers clients of 2025, when the first of them comes."""

    @lazy_value
    def door() -> Legacy:
        from mcp_functions.legacy import Legacy  # noqa: PLC0415 - not on the way of 2026-07-28

        return Legacy(found, server.answer, offered, vault, now=now, forwards=False)

    return lambda http, event, context: door()(http, event, context)  # noqa: PLW0108 - made when it is needed


def _tasks(  # noqa: PLR0913, PLR0917 - what tasks need of a deployment
    handlers: Sequence[Handler[..., Any]],
    found: Settings,
    folder: str,
    vault: Vault,
    now: Callable[[], float],
    audit: Callable[[AuditRecord], object] | None,
) -> tuple[Tasks, Callable[[Mapping[str, Any], Any], None]]:
    from mcp_functions.tasks import Summons, Tasks, Worker, lambda_client  # noqa: PLC0415 - of few functions

    # by the same qualifier: a worker of another version might not know what this one has sealed, or asks
    summon = Summons(f"{found.stack}-{folder}{WORKER}{found.qualifier}", lambda_client)
    tasks = Tasks(handlers, found, folder, vault.table(found.max_task_ttl), summon, now=now)
    worker = Worker(tasks.tools, tasks.store, summon, now=now, lease_seconds=found.task_lease, audit=audit)
    return tasks, worker.work
