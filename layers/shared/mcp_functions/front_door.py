"""The front door of a server: the function in functions/mcp. Tools, prompts and resources are in other functions.

    client  ->  API Gateway  ->  front door  ->  function `booking`, with the tool "book"
                                             ->  function `notes`, with the resource "notes://today"

A client knows only the URL of the front door, which does one of two things with a request:

    server/discover, lists        it answers them from catalog.json, which describes all handlers
    calls, completions, tasks     it forwards the event, without credentials, to the function that has the handler

The function checks a forwarded request again, as if it came from the client. The front door needs a KMS key to seal
(encrypt) the sessions of clients of 2025, and their questions that wait for an answer (`legacy`).
"""

from __future__ import annotations

import json
import os
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from mcp_functions import aws, observability
from mcp_functions.assembly import Options, Parts, assemble, read_settings
from mcp_functions.handlers import lists, lookup
from mcp_functions.handlers.catalog import deployed_part, describe_server
from mcp_functions.http import forwarding
from mcp_functions.http.events import folder_of
from mcp_functions.http.gateway import LambdaFunction
from mcp_functions.protocol.constants import CALL_METHODS, DISCOVERY_METHODS, META_CLIENT_REVISION, TASK_METHODS
from mcp_functions.protocol.errors import FunctionStopped, MethodNotFound

if TYPE_CHECKING:
    from collections.abc import Callable
    from os import PathLike

    from mcp_functions.http.exchange import Endpoint
    from mcp_functions.http.gateway import Clock
    from mcp_functions.observability.lines import Logger
    from mcp_functions.protocol.catalog_types import Catalog, Server
    from mcp_functions.protocol.messages import AnyResult, ForwardedResponse, Request
    from mcp_functions.protocol.wire_types import Model, ServerInfo
    from mcp_functions.settings import Settings


def serve_catalog(
    path: str | PathLike[str],
    *,
    instructions: str | None = None,
    server_info: ServerInfo | Model | None = None,
    logger: Logger | None = None,
    now: Clock = time.time,
) -> LambdaFunction:
    """Make the Lambda entry point of the front door.

    Args:
        path: catalog.json, written by `python -m mcp_functions_harness catalog`.
        instructions: a text that tells a model how to use the whole server.
        server_info: title, description, website and icons of the server.
        logger: writes the line of each request, as in `serve`.
        now: the clock, unix seconds.

    Returns:
        The function that the template names with `Handler: app.handler`.
    """
    description = describe_server(instructions, server_info)
    aws.prepare("lambda")
    return LambdaFunction(partial(_make_endpoint, path, description), now=now, logger=logger)


def _make_endpoint(path: str | PathLike[str], description: Server, function_name: str, now: Clock) -> Endpoint:
    """Make the endpoint at the first event, with the settings of the environment."""
    settings = read_settings()
    # `open` and `os.path`, because the import of pathlib makes the start a fifth slower.
    with open(path, encoding="utf-8") as file:  # noqa: PTH123
        catalog: Catalog = json.load(file)
    catalog["front_door"] = description
    front_door = FrontDoor(catalog, settings, forwarding.CachedClient(forwarding.lambda_client), now=now)
    beside = os.path.join(os.path.dirname(path), "skills.json")  # noqa: PTH118, PTH120
    parts = Parts(settings, folder_of(function_name, settings), now, Options(skills=beside))
    return assemble(parts, front_door)


class FrontDoor:
    """Answers discovery and lists from a catalog, and forwards every other request to a function of the catalog."""

    def __init__(
        self, catalog: Catalog, settings: Settings, get_client: Callable[[], Any], *, now: Clock = time.time
    ) -> None:
        """Keep what the requests need; nothing is called. `get_client` returns the client of Lambda.

        The catalog is the content of catalog.json; its member "front_door", if any, describes the front door.
        """
        self.catalog = deployed_part(catalog)
        self._settings = settings
        self._get_client = get_client
        self._now = now
        self._lists = lists.Lists(self.catalog, settings)
        task_methods = TASK_METHODS if self.catalog.get("tasks") else ()
        # What answers each method; a later row counts more. No function has any other method.
        self._methods: dict[str, Callable[[Request], AnyResult]] = {
            **dict.fromkeys(DISCOVERY_METHODS, self._list),  # discovery and lists
            **dict.fromkeys(self.catalog.get("methods", ()), self._forward_extension),  # extensions
            **dict.fromkeys(task_methods, self._forward_task),  # tasks
            "completion/complete": self._forward_call,  # completions of arguments
            **dict.fromkeys(CALL_METHODS, self._forward_call),  # tools, prompts and resources
        }

    def showing(self, catalog: Catalog) -> FrontDoor:
        """Return a front door with another catalog."""
        return FrontDoor(catalog, self._settings, self._get_client, now=self._now)

    def answer(self, request: Request) -> AnyResult:
        """Answer discovery and lists, and forward every other request; McpError if no function can answer it."""
        if request.method not in self._methods:
            raise MethodNotFound
        return self._methods[request.method](request)

    def _list(self, request: Request) -> AnyResult:
        return self._lists.answer(request.method, request.params)

    def _forward_extension(self, request: Request) -> AnyResult:
        """Forward a request of an extension to the adopted server that has the extension."""
        return self.forward(self.catalog["methods"][request.method], request)

    def _forward_task(self, request: Request) -> AnyResult:
        """Forward a request about a task to the function that keeps the task."""
        from mcp_functions.tasks import task_requests

        task_id = task_requests.read_task_id(request)
        return self.forward(task_requests.function_of(self.catalog, task_id), request)

    def _forward_call(self, request: Request) -> AnyResult:
        """Forward a call or a completion, unless one of its headers differs from its arguments."""
        if lookup.asks_for_form(self.catalog, request.method, request.params):
            # The page in which apps show questions is the same for all tools.
            return lookup.form_result(self._settings.server_info)
        if request.method == "completion/complete":
            target = lookup.find_reference(self.catalog, request.params)
        else:
            target = lookup.find(self.catalog, request.method, request.params)
        observability.current().handler = lookup.name_of(self.catalog, target)
        # An answer tool takes the user's answers for a tool. No header repeats its arguments.
        if request.method == "tools/call" and not target.answer_tool:
            repeated = lookup.header_arguments(self.catalog, target.key)
            lookup.check_headers(repeated, request.params, request.headers)
        return self.forward(target.folder, request)

    def forward(self, function: str, request: Request) -> ForwardedResponse:
        """Forward the event of a request, which `legacy` may translate, to the function with this folder.

        Raises:
            FunctionStopped: the operator stopped the function (MCP_STOPPED_FUNCTIONS).
            McpError: the function could not be called, or did not respond in time.
        """
        if self._settings.stops(function):
            raise FunctionStopped
        name = f"{self._settings.stack}_{function}{self._settings.qualifier}"
        event = request.event
        if self._settings.earlier_revisions and META_CLIENT_REVISION in request.params["_meta"]:
            from mcp_functions.legacy import forwardable_event

            event = forwardable_event(request)
        seconds = request.gateway_deadline - self._now()
        began = time.perf_counter()
        try:
            return forwarding.forward(self._get_client, name, event, seconds=seconds)
        finally:
            observability.current().forward_seconds = time.perf_counter() - began
