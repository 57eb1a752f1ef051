"""Makes a Lambda function of one or more handlers, which are tools, prompts and resources.

    @tool
    def add(a: int, b: int) -> int: ...

    handler = serve(add)        # template.yaml: `Handler: app.handler`

When the author's module loads, `serve` checks its arguments and imports the modules that requests will need, because
Lambda gives a full CPU while a function starts. The first event makes the endpoint (`assembly`), because only the event
has the name of the function. Until then, `Options` keeps the arguments.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any

from mcp_functions.assembly import Options, Parts, assemble, read_settings
from mcp_functions.dispatch import preparation
from mcp_functions.handlers import catalog
from mcp_functions.handlers.base import Handler
from mcp_functions.handlers.function_handler import FunctionHandler
from mcp_functions.handlers.runner import read_errors
from mcp_functions.http.events import folder_of
from mcp_functions.http.gateway import LambdaFunction
from mcp_functions.protocol.constants import ENDPOINT_FOLDER, WORKER_SUFFIX
from mcp_functions.protocol.errors import Misconfigured

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from mcp_functions.handlers.hooks import Call
    from mcp_functions.http.exchange import Endpoint
    from mcp_functions.http.gateway import Clock
    from mcp_functions.observability.lines import Logger
    from mcp_functions.protocol.wire_types import Model, ServerInfo
    from mcp_functions.rounds.audit import AuditRecord
    from mcp_functions.seal.codec_adapter import Codec
    from mcp_functions.seal.kms import Wrapping


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
        raise TypeError("serve() takes wrapping or codec: a codec wraps its own keys")
    _check_handlers(handlers, around)
    about = catalog.describe_server(instructions, server_info)
    error_classes = read_errors(errors)
    copies = tuple(handler.with_options(about, error_classes, around) for handler in handlers)
    # a check: it refuses two handlers with the same name now, and not at the first event
    catalog.build(copies)
    options = Options(copies, audience, wrapping, codec, audit, skills)
    preparation.prepare(copies, uses_kms=wrapping is None and codec is None)
    return LambdaFunction(partial(_make_endpoint, options), copies, now=now, logger=logger)


def _check_handlers(handlers: Sequence[object], around: object) -> None:
    """Refuse an argument that is no handler, and a hook that cannot run, with a TypeError."""
    for handler in handlers:
        if not isinstance(handler, Handler):
            raise TypeError(f"serve() takes what @tool, @prompt or @resource made, not {handler!r}")
        if around is not None and not isinstance(handler, FunctionHandler):
            raise TypeError(
                "around is for @tool, @prompt and @resource: an adopted server has the middleware of its library"
            )
    if around is not None and not callable(around):
        raise TypeError("around is a function that takes a Call and returns a context manager")


def _make_endpoint(options: Options, function_name: str, now: Clock) -> Endpoint:
    """Make the endpoint of the Lambda function with this name, with the settings of its environment.

    A function whose calls may become tasks has a worker: a second Lambda function with the same code, which runs them.
    Its name is "shop_booking-worker", and it has the same folder, "booking".

    Raises:
        Misconfigured: a handler needs the table, and the environment names no table or no key.
    """
    settings = read_settings()
    folder = folder_of(function_name, settings)
    if any(handler.task for handler in options.handlers):
        folder = folder.removesuffix(WORKER_SUFFIX)
    needs_table = any(handler.needs_table for handler in options.handlers)
    # The template names the key and the table in every environment, but gives the permissions only to functions that
    # need them. The endpoint of the server keeps sessions and questions of clients of 2025 in the table.
    if folder != ENDPOINT_FOLDER and not needs_table:
        settings.table = ""
        if not any(handler.needs_state for handler in options.handlers):
            settings.kms_keys = ()
    parts = Parts(settings, folder, now, options)
    if needs_table and not (parts.seals and settings.table):
        raise Misconfigured(
            reason="MCP_TABLE or MCP_KMS_KEYS is not set: single_use and tasks need the table, the key and their"
            " policies, which mcp-functions block --write NAME writes into template.yaml"
        )
    return assemble(parts)
